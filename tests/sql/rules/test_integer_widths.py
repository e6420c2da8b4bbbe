"""Keys are used by integers of other widths: those that a column cannot hold equal none of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import belvedere
from tests.sql.rules.test_lookup_joins import answers, explained

BIG = 2**40
QUERIES = (
    "SELECT r.name, e.id FROM r JOIN e ON e.{a} = r.id WHERE r.id IN (3, 4)",
    "SELECT r.id, e.id FROM r LEFT JOIN e ON e.{a} = r.id WHERE r.id >= 3 AND r.id < 6",
    f"SELECT r.id, e.id FROM r LEFT JOIN e ON e.{{a}} = r.id WHERE r.id >= {BIG}",
    "SELECT id FROM r WHERE id >= 3 AND id < 9"
    " AND EXISTS (SELECT 1 FROM e WHERE e.{a} = r.id AND e.c < 5)",
    "SELECT id FROM r WHERE id >= 3 AND id < 9"
    " AND NOT EXISTS (SELECT 1 FROM e WHERE e.{a} = r.id AND e.c < 5)",
    "SELECT id FROM e WHERE {a} IN (SELECT id FROM r WHERE id >= 3 AND id < 6)",
    "SELECT r.id, (SELECT count(*) FROM e WHERE e.{a} = r.id) FROM r WHERE r.id IN (4, 5)",
    "SELECT e.id FROM r, e WHERE r.id = 7 AND (e.{a} = r.id OR e.{a} = r.other)",
    f"SELECT id FROM e WHERE {{a}} = {BIG}",
)


@pytest.fixture(scope="module")
def con() -> Iterator[belvedere.Connection]:
    """`b` is `a`, `t` too, of which there is no index."""
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute("CREATE TABLE r (id bigint PRIMARY KEY, other bigint, name text)")
        opened.execute("CREATE TABLE e (id int PRIMARY KEY, a int, b smallint, t bigint, c int)")
        opened.execute("CREATE INDEX ON e (a)")
        opened.execute("CREATE INDEX ON e (b)")
        regions: list[tuple[Any, ...]] = [(i, i + 1, f"region {i}") for i in range(300)]
        regions += [(BIG, -BIG, "big"), (2**31, None, "next"), (-1, 2**15, "negative")]
        opened.executemany("INSERT INTO r VALUES (?, ?, ?)", regions)
        rows: list[tuple[Any, ...]] = [(i, i % 211, i % 211, i % 211, i % 7) for i in range(5000)]
        rows += [(5000, None, None, None, 1), (5001, -1, -1, -1, 1)]
        opened.executemany("INSERT INTO e VALUES (?, ?, ?, ?, ?)", rows)
        opened.execute("ANALYZE")
        yield opened


@pytest.mark.parametrize("query", QUERIES)
def test_a_wider_integer_uses_a_key(con: belvedere.Connection, query: str) -> None:
    plain = answers(con, query.format(a="t"))
    for column in "ab":
        assert answers(con, query.format(a=column)) == plain
        plan = explained(con, query.format(a=column))
        assert f"index e_{column}_idx" in plan, plan


def test_a_parameter_that_the_column_cannot_hold_finds_nothing(con: belvedere.Connection) -> None:
    con.execute("SET tier = auto")
    for value, count in ((7, 24), (BIG, 0), (-BIG, 0), (2**31, 0)):
        text = "SELECT count(*) FROM e WHERE a = ?"
        assert con.execute(text, (value,)).fetchone() == (count,)


def test_a_join_of_widths_is_computed_by_duckdb(con: belvedere.Connection) -> None:
    con.execute("SET tier = duckdb")
    text = "SELECT count(*) FROM r JOIN e ON e.t = r.id JOIN r x ON x.id = e.a"
    lines = [row[0] for row in con.execute(f"EXPLAIN ANALYZE {text}").fetchall()]
    assert "tier: duckdb" in "\n".join(lines)
    assert "different types" not in "\n".join(lines)
