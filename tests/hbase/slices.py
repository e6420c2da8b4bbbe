"""Many stores in one HBase database, so that a test gets an empty one without making tables.

A slice has its number after the first byte of every key. Ranges over several families then hold
rows of other slices too, which are left out here.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from functools import cache
from typing import Any

from belvedere.kv.cell import (
    Cells,
    CellScan,
    CheckAndMutate,
    Get,
    Increment,
    Mutate,
    SingleRow,
    perform_in_order,
)
from belvedere.kv.hbase.store import HBaseCells
from belvedere.kv.hbase.tables import TableLayout
from belvedere.kv.hbase.url import parse_url

GATEWAYS = "BELVEDERE_TEST_HBASE"
"""Environment variable: gateways, as hbase://host:port, on which tests of the row-atomic commit
run."""

_numbers = itertools.count(1)


class SlicedCells:
    """A CellStore of its own in a part of another."""

    def __init__(self, under: HBaseCells, number: int) -> None:
        self._under = under
        self._mark = number.to_bytes(4)

    def get(self, get: Get) -> Cells:
        return self._under.get(replace(get, row=self._inner(get.row)))

    def multi_get(self, gets: tuple[Get, ...]) -> tuple[Cells, ...]:
        return self._under.multi_get(tuple(replace(get, row=self._inner(get.row)) for get in gets))

    def scan(self, scan: CellScan) -> tuple[tuple[bytes, Cells], ...]:
        start = self._inner(scan.start)
        end = None if scan.end is None else self._inner(scan.end)
        if end is not None and end <= start:
            return ()
        within = scan.end is not None and scan.end[:1] == scan.start[:1]
        wanted = replace(scan, start=start, end=end, limit=scan.limit if within else None)
        rows = [
            (row[:1] + row[5:], cells)
            for row, cells in self._under.scan(wanted)
            if row[1:5] == self._mark
        ]
        return tuple(rows[: scan.limit])

    def mutate(self, mutate: Mutate) -> None:
        self._under.mutate(replace(mutate, row=self._inner(mutate.row)))

    def check_and_mutate(self, mutate: CheckAndMutate) -> bool:
        return self._under.check_and_mutate(replace(mutate, row=self._inner(mutate.row)))

    def increment(self, increment: Increment) -> int:
        return self._under.increment(replace(increment, row=self._inner(increment.row)))

    def execute_many(self, operations: tuple[SingleRow, ...]) -> tuple[Any, ...]:
        if any(isinstance(each, CellScan) for each in operations):
            return perform_in_order(self, operations)
        return self._under.execute_many(
            tuple(
                replace(each, row=self._inner(each.row))
                for each in operations
                if not isinstance(each, CellScan)
            )
        )

    def close(self) -> None:
        """The store under it is everybody's."""

    def _inner(self, row: bytes) -> bytes:
        return row[:1] + self._mark + row[1:]


def is_asked_for() -> bool:
    return GATEWAYS in os.environ


def open_slice() -> SlicedCells:
    """An empty store on the HBase that the environment names."""
    return SlicedCells(_open_shared_store(), next(_numbers))


@cache
def _open_shared_store() -> HBaseCells:
    url = parse_url(f"{os.environ[GATEWAYS]}/slices{os.getpid()}")
    return HBaseCells(url, TableLayout(rows_bytes=(0x10, 0x11)))
