"""Every engine that claims to be a CellStore. HBase joins here."""

from __future__ import annotations

from collections.abc import Callable

from belvedere.kv.cell import CellStore
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.kv.doubles.cells_faults import FaultyCells

STORES: dict[str, Callable[[], CellStore]] = {
    "memory": MemoryCells,
    "faulty at rest": lambda: FaultyCells(MemoryCells(), seed=0, share=0.0),
}
