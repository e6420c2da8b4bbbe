"""What it takes to list the locks of a transaction."""

from __future__ import annotations

from typing import Any

import pytest

from belvedere.config import Config
from belvedere.database import SQL_COMPILERS, Database
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.session.session import Session
from belvedere.txn.row_atomic import required_locks
from belvedere.txn.row_atomic.engine import CellStoreSetup


@pytest.mark.parametrize("rows", [10, 500])
def test_the_rows_of_a_transaction_are_laid_over_the_store_once(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = CellStoreSetup(MemoryCells(), sends_heartbeats=False)
    node = Database.on_cells(setup, Config(), **SQL_COMPILERS)
    session = Session(node.open_shared_state())
    session.execute("CREATE TABLE parent (id INT PRIMARY KEY)")
    session.execute(
        "CREATE TABLE child (id INT PRIMARY KEY, parent INT NOT NULL REFERENCES parent)"
    )
    session.execute("INSERT INTO parent VALUES (1), (2)")
    sizes: list[int] = []

    class CountingReader(required_locks.OverlayReader):
        def __init__(self, under: Any, overlay: Any, *more: Any) -> None:
            sizes.append(len(overlay))
            super().__init__(under, overlay, *more)

    monkeypatch.setattr(required_locks, "OverlayReader", CountingReader)
    session.execute("INSERT INTO child SELECT i, 1 + i % 2 FROM generate_series(1, ?) i", (rows,))
    # For the locks, again once they are held, and, with the entries of the foreign key, for checks.
    assert sizes == [rows, rows, 2 * rows]
    [(count,)] = session.execute("SELECT count(*) FROM child").rows
    assert count == rows
    node.close()
