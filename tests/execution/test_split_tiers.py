"""What a split plan keeps for its next run: a statement of DuckDB, for the same parameters."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest

import belvedere


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute("SET tier = duckdb")
        opened.execute("CREATE TABLE t (id int PRIMARY KEY, v numeric(10, 2))")
        opened.execute("INSERT INTO t VALUES (1, 1), (2, 5)")
        yield opened


@pytest.mark.parametrize("tier", ["direct", "duckdb"])
def test_equal_parameters_written_otherwise_are_not_the_same(
    con: belvedere.Connection, tier: str
) -> None:
    con.execute(f"SET tier = {tier}")
    text = "SELECT max(v) + ?::numeric FROM t"
    for given, sum_ in (("1.0", "6.00"), ("1.000", "6.000"), ("1", "6.00"), ("1.000", "6.000")):
        assert str(con.execute(text, (Decimal(given),)).fetchall()[0][0]) == sum_
    text = "SELECT ?::float8, count(*) FROM t"
    for zero in (0.0, -0.0, 0.0):
        assert str(con.execute(text, (zero,)).fetchall()) == f"[({zero}, 2)]"


@pytest.mark.parametrize("tier", ["direct", "duckdb"])
def test_arrays_are_parameters(con: belvedere.Connection, tier: str) -> None:
    con.execute(f"SET tier = {tier}")
    text = "SELECT count(*) FROM t WHERE id = ANY(?::int[])"
    for given, count in (([1, 2], 2), ([2], 1), ([], 0), ([1, 2], 2), (None, 0)):
        assert con.execute(text, (given,)).fetchall() == [(count,)]
