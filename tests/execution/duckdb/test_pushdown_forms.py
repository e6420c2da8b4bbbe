"""Comparisons with constants in DuckDB: CHAR, dates with instants, LIKE."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere

CONDITIONS = {
    "equal": "c = 'ab'",
    "equal, turned": "'ab' = c",
    "blanks at the end": "c = 'ab   '",
    "too long": "c = 'abcdef'",
    "unequal": "c <> 'ab'",
    "other length": "c = d",
    "same length": "c = e",
    "listed": "c IN ('ab', 'a', 'abcdef')",
    "not listed": "c NOT IN ('ab', 'a ')",
    "less": "c < 'ab'",
    "less by a control character": "c < E'a\\t'",
    "branches": "CASE WHEN id > 3 THEN c ELSE d END = 'ab'",
    "coalesced": "coalesce(c, d) = 'ab'",
    "midnight": "day < TIMESTAMP '2024-02-01'",
    "midnight, turned": "TIMESTAMP '2024-02-01' <= day",
    "midnight by an interval": "day < DATE '2024-01-01' + INTERVAL '1 month'",
    "not midnight": "day < TIMESTAMP '2024-02-01 00:00:01'",
    "no instant": "day = NULL::timestamp",
    "like": "v LIKE 'a%'",
    "not like": "v NOT LIKE '%b'",
    "like with an escape": "v LIKE 'a\\_%'",
    "char like": "c LIKE 'ab%'",
    "char like to its end": "c LIKE 'ab'",
    "char as text": "c::text = 'ab'",
    "blanks inside": "substring(c, 1, 3) = 'a b'",
    "part of a char": "substring(d, 1, 2) IN ('ab', 'a')",
    "char of nothing but blanks": "d || '.' = '.'",
}


@pytest.fixture(scope="module")
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute(
            "CREATE TABLE t (id int PRIMARY KEY, c char(5), d char(8), e char(5), v text, day date)"
        )
        opened.execute(
            "INSERT INTO t VALUES (1, 'ab', 'ab', 'ab', 'ab', '2024-01-31'),"
            " (2, 'a', 'ab', 'b', 'a_c', '2024-02-01'), (3, 'abcde', 'abcdef', 'abcde', 'xb',"
            " '2024-02-02'), (4, '', ' ', '', '', NULL), (5, NULL, 'ab', NULL, NULL, '2024-01-01'),"
            " (6, E'a\\t', 'a', 'a', 'abc', '2024-02-01'),"
            " (7, 'a b', 'a b c d ', 'a b', 'a b ', NULL)"
        )
        yield opened


def rows(con: belvedere.Connection, tier: str, text: str) -> list[tuple[object, ...]]:
    con.execute(f"SET tier = {tier}")
    return con.execute(text).fetchall()


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_keeps_its_meaning(con: belvedere.Connection, name: str) -> None:
    for condition in (CONDITIONS[name], f"NOT ({CONDITIONS[name]})"):
        text = f"SELECT id, {condition} FROM t WHERE {condition} ORDER BY id"
        assert rows(con, "duckdb", text) == rows(con, "direct", text)


def test_a_constant_is_compared_with_the_column_itself(con: belvedere.Connection) -> None:
    con.execute("SET tier = duckdb")
    wanted = "c = 'ab' AND day < TIMESTAMP '2024-02-01' AND v LIKE 'a%'"
    lines = con.execute(f"EXPLAIN SELECT id FROM t WHERE {wanted}").fetchall()
    (text,) = [row[0] for row in lines if row[0].startswith("duckdb: ")]
    assert "= 'ab   '" in text
    assert "< CAST('2024-02-01' AS DATE)" in text
    assert "LIKE 'a%'" in text
    assert "CASE" not in text


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.id, b.id FROM t a JOIN t b ON a.c = b.d ORDER BY 1, 2",
        "SELECT a.id, b.id FROM t a JOIN t b ON a.c = b.e ORDER BY 1, 2",
        "SELECT a.id FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE a.c = b.d) ORDER BY 1",
        "SELECT CASE WHEN id > 3 THEN c ELSE d END, count(*) FROM t GROUP BY 1 ORDER BY 1",
        "SELECT c FROM t UNION SELECT d FROM t ORDER BY 1",
        "SELECT a.id, b.id FROM t a LEFT JOIN t b ON a.id = b.id AND b.c = 'ab' ORDER BY 1",
        "SELECT a.id, b.id FROM t a FULL JOIN (SELECT * FROM t WHERE id > 2) b ON a.id = b.id"
        " AND a.c = b.e WHERE a.id > 1 OR a.id IS NULL ORDER BY 1, 2",
    ],
)
def test_joins_and_groups_of_char_are_those_of_the_direct_tier(
    con: belvedere.Connection, text: str
) -> None:
    assert rows(con, "duckdb", text) == rows(con, "direct", text)
