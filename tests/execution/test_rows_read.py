"""What queries read of the store is held to a bound of what they need, for some 270 shapes.

A plan that scans a table where a few entries of an index are enough fails here, whatever it costs
in time. Rows and index entries are counted where the store hands them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self
from unittest import mock

import pytest

import belvedere
from belvedere.kv.memory import MemoryStore
from tests.execution.query_shapes import ROWS, TABLES, QueryShape, list_shapes

EACH = 2
"""An index entry and the row that it refers to."""
ALLOWED = 100
"""Read besides: some 40 entries that a scan draws ahead and their rows; a table has 3,000 rows."""
SHAPES = tuple(list_shapes())


@pytest.fixture(scope="module")
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute(TABLES)
        for table, rows in ROWS.items():
            marks = ", ".join("?" * len(rows[0]))
            opened.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        opened.execute("ANALYZE")
        yield opened


class ReadCounter:
    """Counts the rows and entries that the store gives, as long as it is entered."""

    def __init__(self) -> None:
        self.rows = 0
        self._patches: list[Any] = []

    def __enter__(self) -> Self:
        for name in ("scan", "scan_values"):
            self._replace(name, self._count_batches(getattr(MemoryStore, name)))
        get, multi_get = MemoryStore.get, MemoryStore.multi_get

        def count_get(store: MemoryStore, key: bytes) -> bytes | None:
            self.rows += 1
            return get(store, key)

        def count_multi_get(store: MemoryStore, keys: Sequence[bytes]) -> list[bytes | None]:
            self.rows += len(keys)
            return multi_get(store, keys)

        self._replace("get", count_get)
        self._replace("multi_get", count_multi_get)
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._patches:
            one.stop()

    def _replace(self, name: str, function: Any) -> None:
        patch = mock.patch.object(MemoryStore, name, function)
        patch.start()
        self._patches.append(patch)

    def _count_batches(self, function: Any) -> Any:
        def count_rows(*arguments: Any, **options: Any) -> Iterator[list[Any]]:
            for batch in function(*arguments, **options):
                self.rows += len(batch)
                yield batch

        return count_rows


def count_needed(con: belvedere.Connection, shape: QueryShape) -> int:
    if isinstance(shape.needed, int):
        return shape.needed
    ((count,),) = con.execute(shape.needed).fetchall()
    return int(count)


def run_counted(con: belvedere.Connection, text: str) -> tuple[int, int]:
    """How many rows the query returns, and how many it reads."""
    con.execute(text)  # planned
    with ReadCounter() as counter:
        returned = len(con.execute(text).fetchall())
    return returned, counter.rows


def test_there_are_as_many_shapes_as_promised() -> None:
    assert len({shape.text for shape in SHAPES}) == len(SHAPES) >= 200


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.text)
def test_a_query_reads_in_proportion_to_what_it_needs(
    con: belvedere.Connection, shape: QueryShape
) -> None:
    _, read = run_counted(con, shape.text)
    assert read <= EACH * shape.tables * count_needed(con, shape) + ALLOWED


def test_the_bound_finds_a_scan(con: belvedere.Connection) -> None:
    returned, read = run_counted(con, "SELECT * FROM orders WHERE total % 1000 = 7")
    assert read > EACH * returned + ALLOWED
