"""DuckDB under its memory limit: large joins and groups spill; what cannot fails alone."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from belvedere.errors import Unavailable
from belvedere.execution.duckdb.engine import DuckEngine
from belvedere.execution.duckdb.leaves import DuckLeaf
from belvedere.execution.duckdb.types import leaf_placeholder
from belvedere.execution.run import Interrupt, Run

LIMIT_MB = 100
ROWS = 120_000
WIDE = 1_500
"""About 180 MB of text, of which no two rows have the same."""

SPILLING = {
    "hash join": "SELECT count(*) AS n FROM {t} AS a JOIN {t} AS b ON a.c1 = b.c1",
    "aggregate": "SELECT count(*) AS n FROM (SELECT c1, sum(c0) FROM {t} GROUP BY c1)",
}
HELD = "SELECT len(list(c1 || 'x')) AS n FROM {t}"
"""A list is one value, and is in memory as a whole."""


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    texts = [f"{number * 7919 % 1_000_003:0{WIDE}}" for number in range(ROWS)]
    return pa.table({"c0": pa.array(range(ROWS), pa.int64()), "c1": pa.array(texts)})


@pytest.fixture
def engine() -> Iterator[DuckEngine]:
    opened = DuckEngine(memory_limit_mb=LIMIT_MB)
    yield opened
    opened.close()


def count(engine: DuckEngine, rows: pa.Table, text: str) -> int:
    run = Run(None, (), None, None, Interrupt())  # type: ignore[arg-type]
    leaf = DuckLeaf("t", lambda _: rows)
    return int(engine.fetch(text.format(t=leaf_placeholder(0)), [leaf], (), run)["n"][0].as_py())


@pytest.mark.parametrize("name", SPILLING)
def test_more_than_the_limit_is_spilled(engine: DuckEngine, rows: pa.Table, name: str) -> None:
    assert rows.nbytes > LIMIT_MB * 2**20
    assert count(engine, rows, SPILLING[name]) == ROWS


def test_a_statement_over_the_limit_fails_alone(engine: DuckEngine, rows: pa.Table) -> None:
    with pytest.raises(Unavailable) as caught:
        count(engine, rows, HELD)
    assert caught.value.sqlstate == "53200"
    assert count(engine, rows, "SELECT count(*) AS n FROM {t}") == ROWS
    assert count(engine, rows, SPILLING["aggregate"]) == ROWS
