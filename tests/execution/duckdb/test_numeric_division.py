"""NUMERIC quotients, averages, mixed scales: DuckDB gives what Python does, to the last digit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal

import pytest

import belvedere
from tests.exact import EXACT

SEED = 5
ROWS = 1_500

IN_DUCKDB = {
    "quotients": "SELECT id, b / a1, b / c, -b / 3 FROM t WHERE c < 100 ORDER BY id",
    "of an expression": "SELECT id, a * (b / 7) + 1, -(b / 7), abs(a / 3) FROM t ORDER BY id",
    "of quotients": "SELECT id, (a + 1000) / 3 / 7 FROM t WHERE a >= 0 ORDER BY id",
    "of NULL": "SELECT id, nullif(a, 0) / 3, a / nullif(b, b) FROM t ORDER BY id",
    "compared": "SELECT id FROM t WHERE a / 3 > b / 7 ORDER BY id",
    "joined average": "SELECT t.id, k.m FROM t JOIN (SELECT g, avg(b) AS m FROM t GROUP BY g) k"
    " ON k.g = t.g WHERE b > 0.2 * k.m ORDER BY id",
    "average of each row": "SELECT id FROM t AS o WHERE b < (SELECT 0.2 * avg(b) FROM t AS i"
    " WHERE i.g = o.g) ORDER BY id",
    "shown average of each row": "SELECT id, (SELECT avg(c) FROM t AS i WHERE i.g = o.g)"
    " FROM t AS o ORDER BY id",
    "average of all": "SELECT id FROM t WHERE a > (SELECT avg(a) FROM t) ORDER BY id",
    "rounded": "SELECT id, round(b / 7), cast(b / 7 AS int), (b / 7)::numeric(20, 4),"
    " (b / 7)::float8 FROM t ORDER BY id",
    "mixed scales": "SELECT id, CASE WHEN c > 50 THEN a ELSE b END, coalesce(n, 1) FROM t"
    " ORDER BY id",
    "sum of mixed scales": "SELECT g, sum(CASE WHEN c > 50 THEN a * b ELSE 0 END), sum(n)"
    " FROM t GROUP BY g ORDER BY g",
    "sum of zeros": "SELECT g, sum(CASE WHEN c < 0 THEN a ELSE 0 END) FROM t GROUP BY g ORDER BY g",
    "sorted by quotient": "SELECT id, c FROM t ORDER BY b / 7, id LIMIT 20",
    "window beside a quotient": "SELECT id, q, row_number() OVER (ORDER BY q, id) FROM"
    " (SELECT id, b / 7 AS q FROM t) k ORDER BY id",
}
ABOVE_GROUPS = {
    "averages": "SELECT g, avg(a), avg(b), avg(c), sum(c) FROM t GROUP BY g ORDER BY avg(a), g",
    "having": "SELECT g, avg(a) FROM t GROUP BY g HAVING avg(a) > 3 ORDER BY g",
    "share": "SELECT g, sum(CASE WHEN c > 50 THEN a * b ELSE 0 END) / sum(b) FROM t GROUP BY g"
    " ORDER BY g",
}


@pytest.fixture(scope="module")
def con() -> Iterator[belvedere.Connection]:
    pick = random.Random(SEED)
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute(
            "CREATE TABLE t (id int PRIMARY KEY, a numeric(12, 3), a1 numeric(5, 1),"
            " b numeric(9, 2), c int, g int, n numeric(9, 2))"
        )
        rows = []
        for number in range(ROWS):
            a = pick.choice([0, 1, -1, 9999, 10000, pick.randrange(-(10**9), 10**9)])
            b = pick.choice([1, 5000, 9999, 10000, 10001, pick.randrange(1, 10**9)])
            n = pick.choice([None, 100, pick.randrange(10**6)])
            rows.append(
                (
                    number,
                    Decimal(a).scaleb(-3, EXACT),
                    Decimal(pick.randrange(1, 1000)).scaleb(-1, EXACT),
                    Decimal(b).scaleb(-2, EXACT),
                    pick.randrange(1, 200),
                    number % 70,
                    None if n is None else Decimal(n).scaleb(-2, EXACT),
                )
            )
        opened.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        yield opened


def both(con: belvedere.Connection, text: str) -> tuple[str, str]:
    found = []
    for tier in ("direct", "duckdb"):
        con.execute(f"SET tier = {tier}")
        found.append(repr(con.execute(text).fetchall()))
    return found[0], found[1]


def explained(con: belvedere.Connection, text: str) -> list[str]:
    return [row[0] for row in con.execute(f"EXPLAIN ANALYZE {text}").fetchall()]


@pytest.mark.parametrize("name", IN_DUCKDB)
def test_a_statement_with_quotients_is_one_of_duckdb(con: belvedere.Connection, name: str) -> None:
    direct, duck = both(con, IN_DUCKDB[name])
    assert direct == duck
    lines = explained(con, IN_DUCKDB[name])
    assert not any("again" in line or line.startswith("python") for line in lines), lines


@pytest.mark.parametrize("name", ABOVE_GROUPS)
def test_quotients_of_groups_are_made_above_them(con: belvedere.Connection, name: str) -> None:
    direct, duck = both(con, ABOVE_GROUPS[name])
    assert direct == duck
    lines = explained(con, ABOVE_GROUPS[name])
    assert any(line.startswith("duckdb: ") and "GROUP BY" in line for line in lines)
    assert not any("again" in line for line in lines)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id, a / 1000000000 FROM t ORDER BY id",  # more digits than are held
        "SELECT id, a * 1e20 / 0.0001 FROM t ORDER BY id",  # more than 128 bits hold
    ],
)
def test_more_digits_than_duckdb_has_are_divided_in_python(
    con: belvedere.Connection, text: str
) -> None:
    direct, duck = both(con, text)
    assert direct == duck
    assert any("run again with quotients in Python" in line for line in explained(con, text))


def test_division_by_zero_is_an_error_of_the_rows_that_are_asked_for(
    con: belvedere.Connection,
) -> None:
    con.execute("SET tier = duckdb")
    with pytest.raises(belvedere.DataError) as caught:
        con.execute("SELECT b / (id - 3) FROM t")
    assert caught.value.sqlstate == "22012"
    text = "SELECT id, b / (id - 3) FROM t WHERE id <> 3 ORDER BY id"
    direct, duck = both(con, text)
    assert direct == duck
    assert both(con, "SELECT n / 0 FROM t WHERE n IS NULL") == both(
        con, "SELECT n FROM t WHERE n IS NULL"
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(DISTINCT a / 3), max(b / 7) FROM t",
        "SELECT a / 3, count(*) FROM t GROUP BY a / 3 ORDER BY 1",
        "SELECT (b / 7)::text FROM t ORDER BY id",
        "SELECT b / 7 FROM t UNION ALL SELECT a FROM t ORDER BY 1",
        "SELECT avg(b / 7) OVER (PARTITION BY g) FROM t ORDER BY id",
        "SELECT id FROM t WHERE b / 7 IN (SELECT b / 7 FROM t WHERE g = 1) ORDER BY id",
    ],
)
def test_where_the_digits_shown_would_be_lost_python_does_it(
    con: belvedere.Connection, text: str
) -> None:
    direct, duck = both(con, text)
    assert direct == duck
