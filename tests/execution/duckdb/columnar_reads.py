"""A store whose small tables have copies too, and how both ways of reading are compared."""

from __future__ import annotations

from typing import Any

from belvedere.config import Config
from belvedere.database import SQL_COMPILERS, Database
from belvedere.execution.duckdb.columnar_cache import ColumnarCache
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.session.session import Session
from belvedere.txn.row_atomic.engine import CellStoreSetup
from belvedere.txn.row_atomic.node import NodeSettings

BAG = "SELECT * FROM t AS k WHERE (SELECT count(*) FROM t) >= 0"
"""All rows, in a form that is not a plain scan."""


KINDS = ("rows", "cells")
"""Of the store: cells are sent column by column."""


class Store:
    """One store with any number of sessions; small tables have copies too."""

    def __init__(self, config: Config, kind: str = "rows") -> None:
        self.kind = kind
        if kind == "cells":
            setup = CellStoreSetup(MemoryCells(), NodeSettings(), sends_heartbeats=False)
            self.database = Database.on_cells(setup, config, **SQL_COMPILERS)
        else:
            self.database = Database.open(":memory:", config, **SQL_COMPILERS)
        self.shared = self.database.open_shared_state()

    def session(self) -> Session:
        session = Session(self.shared)
        session.execute("SET tier = duckdb")
        return session

    @property
    def copies(self) -> ColumnarCache:
        assert self.shared.engine.copies is not None
        return self.shared.engine.copies

    def close(self) -> None:
        self.database.close()


def opened(kind: str = "rows", **config: Any) -> Store:
    return Store(Config(**{"columnar_rows_min": 1, **config}), kind)


def rows(session: Session, text: str = BAG) -> list[Any]:
    """The same by the copy, and by a scan."""
    answers = []
    for tier in ("duckdb", "direct"):
        session.execute(f"SET tier = {tier}")
        result = session.execute(text)
        result.convert_arrow_to_rows()
        answers.append(sorted(result.rows, key=repr))
    session.execute("SET tier = duckdb")
    assert [repr(row) for row in answers[0]] == [repr(row) for row in answers[1]]  # NaN is NaN
    return answers[0]


def filled(kind: str = "rows") -> Store:
    """With a table t of 50 rows."""
    made = opened(kind)
    session = made.session()
    session.execute("CREATE TABLE t (id int PRIMARY KEY, v int, name text)")
    session.execute("INSERT INTO t SELECT n, n * 10, 'name ' || n FROM generate_series(1, 50) g(n)")
    return made
