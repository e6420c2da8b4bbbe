"""Partial and expression indexes: which statements they serve, and that these lose no row."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import belvedere

ROWS = 2_000


@pytest.fixture(scope="module")
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute(
            "CREATE TABLE t (id int PRIMARY KEY, a int, v numeric(8, 2), s text, d date)"
        )
        opened.execute(
            "INSERT INTO t SELECT i, nullif(i % 500, 7), nullif(i / 10.0, 3.3), "
            "nullif('S' || i % 300, 'S9'), date '2024-01-01' + i % 400 "
            f"FROM generate_series(1, {ROWS}) i"
        )
        yield opened


@pytest.fixture
def index(con: belvedere.Connection, request: pytest.FixtureRequest) -> Iterator[str]:
    con.execute(f"CREATE INDEX f ON t {request.param}")
    yield request.param
    con.execute("DROP INDEX f")


def is_used(con: belvedere.Connection, condition: str) -> bool:
    shown = con.execute(f"EXPLAIN SELECT id FROM t WHERE {condition}").fetchall()
    return any("index f" in line for (line,) in shown)


SERVED = [
    ("(a) WHERE a > 10", "a = 50"),
    ("(a) WHERE a > 10", "a = 50 AND a > 10"),
    ("(a) WHERE a > 10", "a > 490"),
    ("(a) WHERE a > 10", "a >= 490 AND s <> 'x'"),
    ("(a) WHERE a > 10", "a IN (11, 12)"),
    ("(a) WHERE a >= 10", "a = 10"),
    ("(a) WHERE a <> 10", "a = 11"),
    ("(a) WHERE a < 10 OR a > 400", "a = 450"),
    ("(a) WHERE a IS NOT NULL", "a = 4"),
    ("(s) WHERE s IS NOT NULL AND a > 5", "s = 'S3' AND a BETWEEN 6 AND 9"),
    ("(v) WHERE v > 1", "v = 5"),
    ("(v) WHERE v > 1.50", "v = 5 AND v > 1.5"),
    ("(v) WHERE v < 100.5", "v = 5"),
    ("(a) WHERE d >= '2024-06-01'", "a = 3 AND d > '2024-07-01'"),
    ("((v * 2))", "v * 2 = 10"),
    ("((a * 2 + 1))", "a * 2 + 1 = 11"),
    ("(lower(s)) WHERE v > 1", "lower(s) = 's8' AND v >= 1.01"),
    ("((v + 0.5)) WHERE a IS NOT NULL", "v + 0.5 = 3 AND a < 100"),
]
NOT_SERVED = [
    ("(a) WHERE a > 10", "a = 10"),
    ("(a) WHERE a > 10", "a >= 10 AND a < 12"),
    ("(a) WHERE a > 10", "a IN (10, 11)"),
    ("(a) WHERE a > 10", "a < 12"),
    ("(a) WHERE a <> 10", "a = 10"),
    ("(a) WHERE a <> 10", "a >= 10 AND a < 13"),
    ("(a) WHERE s IS NOT NULL", "a = 10"),
    ("(a) WHERE s IS NOT NULL", "a = 10 AND s IS DISTINCT FROM 'S1'"),
    ("(a) WHERE a > 10 AND s = 'S1'", "a = 50"),
    ("(a) WHERE v > 1", "a = 10 AND v > 0.5"),
    ("((v * 2))", "v * 3 = 10"),
]


@pytest.mark.parametrize(("index", "condition"), SERVED, indirect=["index"])
def test_an_index_serves_what_its_condition_follows_from(
    con: belvedere.Connection, index: str, condition: str
) -> None:
    assert is_used(con, condition)
    _same_rows(con, condition)


@pytest.mark.parametrize(("index", "condition"), NOT_SERVED, indirect=["index"])
def test_an_index_that_may_lack_rows_is_not_used(
    con: belvedere.Connection, index: str, condition: str
) -> None:
    assert not is_used(con, condition)
    _same_rows(con, condition)


def test_partial_indexes_lose_no_row(con: belvedere.Connection, rng: random.Random) -> None:
    signs = ("=", "<>", "<", "<=", ">", ">=")
    used = 0
    for _ in range(12):
        low, sign = rng.randrange(495, 500), rng.choice(signs)
        con.execute(f"CREATE INDEX f ON t (a) WHERE a {sign} {low}")
        for _ in range(15):
            first, second = rng.randrange(493, 500), rng.randrange(493, 500)
            condition = f"a {rng.choice(signs)} {first} AND a {rng.choice(signs)} {second}"
            used += is_used(con, condition)
            _same_rows(con, condition)
        con.execute("DROP INDEX f")
    assert used > 20


def _same_rows(con: belvedere.Connection, condition: str) -> None:
    query = "SELECT id FROM t WHERE {} ORDER BY id"
    plain = query.format(f"({condition}) IS TRUE")
    assert con.execute(query.format(condition)).fetchall() == con.execute(plain).fetchall()
