"""Scans by keys that a sub-query gives: the same rows in every tier, and only few of them read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import belvedere

TIERS = ("direct", "duckdb", "auto")


@pytest.fixture(scope="module")
def con() -> Iterator[belvedere.Connection]:
    """`k` is `id` without a key."""
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute("CREATE TABLE t (id int PRIMARY KEY, k int, a int, b int)")
        opened.execute("CREATE TABLE one (x int)")
        opened.execute("INSERT INTO one VALUES (2)")
        opened.execute("CREATE INDEX ON t (a, b)")
        rows = [(i, i, i % 50, None if i % 7 == 0 else i % 97) for i in range(3000)]
        opened.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        yield opened


def answers(con: belvedere.Connection, text: str) -> list[tuple[Any, ...]]:
    found = []
    for tier in TIERS:
        con.execute(f"SET tier = {tier}")
        found.append(con.execute(text).fetchall())
    assert found == [found[0]] * 3
    return found[0]


def explained(con: belvedere.Connection, text: str) -> str:
    con.execute("SET tier = auto")
    return "\n".join(row[0] for row in con.execute(f"EXPLAIN {text}").fetchall())


SOUGHT = {
    "above": ("{0} > (SELECT max(id) - 3 FROM t)", "range [> <scalar 1>]"),
    "equal": ("{0} = (SELECT max(id) FROM t)", "key [<scalar 1>]"),
    "turned": ("(SELECT min(id) + 3 FROM t) >= {0}", "range [<= <scalar 1>]"),
    "no rows give NULL": ("{0} > (SELECT max(id) FROM t WHERE a = 99)", "range [> <scalar 1>]"),
    "two bounds": (
        "{0} > (SELECT max(id) - 9 FROM t) AND {0} <= (SELECT max(id) - 5 FROM t)",
        "range [> <scalar 1> <= <scalar 2>]",
    ),
}


@pytest.mark.parametrize("name", SOUGHT)
def test_a_key_serves_what_a_subquery_gives(con: belvedere.Connection, name: str) -> None:
    condition, access = SOUGHT[name]
    text = "SELECT id, a, b FROM t WHERE {} ORDER BY id"
    keyed, other = text.format(condition.format("id")), text.format(condition.format("k"))
    assert answers(con, keyed) == answers(con, other)
    plan = explained(con, keyed)
    assert access in plan
    assert "Filter" not in plan
    assert "Filter" in explained(con, other)


def test_after_an_equality_of_an_index(con: belvedere.Connection) -> None:
    text = "SELECT id FROM t WHERE a = {} AND b > (SELECT x + 80 FROM one) ORDER BY id"
    assert answers(con, text.format("3")) == answers(con, text.format("3 + 0 * k"))
    assert "range index t_a_b_idx only [3, > <scalar 1>]" in explained(con, text.format("3"))


def test_the_order_of_the_key_stays(con: belvedere.Connection) -> None:
    text = "SELECT id FROM t WHERE {0} > (SELECT max(id) - 9 FROM t) ORDER BY {0} {1} LIMIT 4"
    for direction in ("", "DESC"):
        keyed, other = text.format("id", direction), text.format("k", direction)
        assert answers(con, keyed) == answers(con, other)
        assert "ordered" in explained(con, keyed)


def test_of_each_outer_row(con: belvedere.Connection) -> None:
    text = (
        "SELECT o.id, (SELECT count(*) FROM t i WHERE i.{} > (SELECT max(id) - o.id FROM t))"
        " FROM t o WHERE o.id < 5 ORDER BY 1"
    )
    found = answers(con, text.format("id"))
    assert found == answers(con, text.format("k")) == [(i, i) for i in range(5)]


def test_more_than_one_row_is_an_error(con: belvedere.Connection) -> None:
    for tier in TIERS:
        con.execute(f"SET tier = {tier}")
        with pytest.raises(belvedere.ProgrammingError, match="more than one row"):
            con.execute("SELECT * FROM t WHERE id = (SELECT id FROM t WHERE a = 1)").fetchall()


def test_what_costs_much_or_changes_stays_a_filter(con: belvedere.Connection) -> None:
    dear = explained(con, "SELECT * FROM t WHERE id > (SELECT sum(x.k * y.k) FROM t x, t y)")
    random = explained(con, "SELECT * FROM t WHERE id > (SELECT (random() * x)::int FROM one)")
    shared = "WITH m AS MATERIALIZED (SELECT max(k) AS x FROM t)"
    common = explained(con, f"{shared} SELECT * FROM t, m WHERE id = (SELECT x FROM m)")
    for plan in (dear, random, common):
        assert "Scan t (id, k, a, b)" in plan
        assert " [" not in next(line for line in plan.splitlines() if "(id, k, a, b)" in line)


def test_a_writer_finds_its_rows_by_it() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
        con.executemany("INSERT INTO t VALUES (?, 0)", [(i,) for i in range(1, 500)])
        con.execute("UPDATE t SET v = 1 WHERE id = (SELECT max(id) FROM t)")
        con.execute("DELETE FROM t WHERE id < (SELECT max(id) - 2 FROM t)")
        assert con.execute("SELECT * FROM t").fetchall() == [(497, 0), (498, 0), (499, 1)]
