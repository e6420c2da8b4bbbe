"""Joins by look-ups: from the few rows of a semi join, by several columns, into a view's state."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import belvedere

TIERS = ("direct", "duckdb", "auto")


@pytest.fixture(scope="module")
def con() -> Iterator[belvedere.Connection]:
    """`c2` is `customer` without an index, `k` is `id` without a key."""
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute(
            "CREATE TABLE o (id int PRIMARY KEY, k int, customer int, c2 int, r1 int, r2 int)"
        )
        opened.execute("CREATE TABLE l (id int PRIMARY KEY, o int, k int, item int, qty int)")
        opened.execute("CREATE INDEX ON o (customer)")
        opened.execute("CREATE INDEX ON l (o)")
        opened.execute("CREATE INDEX ON l (item)")
        chosen = random.Random(3)
        orders = []
        for i in range(2000):
            customer = None if i % 50 == 0 else chosen.randrange(700)
            related = [chosen.choice([None, chosen.randrange(2000)]) for _ in range(2)]
            orders.append((i, i, customer, customer, *related))
        lines = []
        for i in range(6000):
            order = chosen.randrange(2000)
            lines.append((i, order, order, chosen.randrange(900), chosen.randrange(1, 5)))
        opened.executemany("INSERT INTO o VALUES (?, ?, ?, ?, ?, ?)", orders)
        opened.executemany("INSERT INTO l VALUES (?, ?, ?, ?, ?)", lines)
        yield opened


def answers(con: belvedere.Connection, text: str) -> list[tuple[Any, ...]]:
    found = []
    for tier in TIERS:
        con.execute(f"SET tier = {tier}")
        found.append(sorted(con.execute(text).fetchall(), key=repr))
    assert found == [found[0]] * 3
    return found[0]


def explained(con: belvedere.Connection, text: str) -> str:
    con.execute("SET tier = auto")
    return "\n".join(row[0] for row in con.execute(f"EXPLAIN {text}").fetchall())


SEMI = {
    "in": "SELECT l.item, sum(l.qty) FROM o, l WHERE o.id = l.o AND o.{} IN"
    " (SELECT {} FROM o x, l y WHERE x.id = y.o AND y.item = 7) GROUP BY l.item",
    "one table": "SELECT id FROM o WHERE {} IN (SELECT x.{} FROM o x WHERE x.id IN (5, 6, 7, 50))",
    "exists": "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM l WHERE l.item = 3 AND l.o = o.{})",
}


def test_few_rows_of_a_semi_join_come_first(con: belvedere.Connection) -> None:
    for name, form in SEMI.items():
        columns = ("id", "k") if name == "exists" else ("customer", "c2")
        keyed, other = (form.replace("{}", column) for column in columns)
        found = answers(con, keyed)
        assert found == answers(con, other)
        assert found
        plan = explained(con, keyed)
        assert "Join semi" not in plan, plan
        assert "Distinct" in plan
        assert "Join semi" in explained(con, other)


def test_many_rows_of_a_semi_join_stay_on_the_right(con: belvedere.Connection) -> None:
    text = "SELECT count(*) FROM o WHERE customer IN (SELECT qty FROM l)"
    assert "Join semi" in explained(con, text)


def test_alternatives_are_looked_up_one_by_one(con: belvedere.Connection) -> None:
    text = (
        "SELECT a.id, b.id FROM o a, o b WHERE (a.r1 = b.{0} OR a.r2 = b.{0}) AND a.id < 40"
        " AND b.customer > 3"
    )
    assert answers(con, text.format("id")) == answers(con, text.format("k"))
    assert "by keys [in (r1, r2)]" in explained(con, text.format("id"))
    assert "by keys" not in explained(con, text.format("k"))


def test_alternatives_of_an_outer_join(con: belvedere.Connection) -> None:
    text = "SELECT a.id, b.id FROM o a LEFT JOIN o b ON a.r1 = b.{0} OR a.r2 = b.{0} WHERE a.id < 9"
    found = answers(con, text.format("id"))
    assert found == answers(con, text.format("k"))


def test_state_is_looked_up_by_its_key() -> None:
    """A view that keeps equal rows several times; of the other, the first column is not the one."""
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, a int, b int)")
        con.execute("CREATE TABLE few (id int PRIMARY KEY, a int)")
        con.executemany(
            "INSERT INTO t VALUES (?, ?, ?)",
            [(i, None if i % 91 == 0 else i % 400, i % 3) for i in range(4000)],
        )
        con.execute("INSERT INTO few VALUES (1, 7), (2, 7), (3, 399), (4, NULL), (5, 1000)")
        con.execute("CREATE MATERIALIZED VIEW by_a AS SELECT a, b FROM t")
        con.execute("CREATE MATERIALIZED VIEW by_b AS SELECT b, a FROM t")
        con.execute("CREATE MATERIALIZED VIEW sums AS SELECT a, sum(b) AS s FROM t GROUP BY a")
        con.execute("SET rewrite = off")
        forms = (
            "SELECT few.id, v.b FROM few JOIN {} v ON few.a = v.a",
            "SELECT few.id, v.b FROM few LEFT JOIN {} v ON few.a = v.a AND v.b > 0",
            "SELECT few.id FROM few WHERE NOT EXISTS (SELECT 1 FROM {} v WHERE v.a = few.a)",
            "SELECT few.id FROM few WHERE few.a IN (SELECT a FROM {} v)",
        )
        for form in forms:
            found = answers(con, form.format("by_a"))
            assert found == answers(con, form.format("by_b")) == answers(con, form.format("t"))
            plan = explained(con, form.format("by_a"))
            assert "[outer.a" in plan, plan
            assert "outer.a" not in explained(con, form.format("by_b"))
        text = "SELECT few.id, v.s FROM few JOIN {} v ON few.a = v.a"
        plain = "(SELECT a, sum(b) AS s FROM t GROUP BY a)"
        assert answers(con, text.format("sums")) == answers(con, text.format(plain))
        assert "[outer.a]" in explained(con, text.format("sums"))
        con.execute("BEGIN")
        con.execute("INSERT INTO t VALUES (9000, 7, 2)")
        con.execute("DELETE FROM t WHERE id = 399")
        assert answers(con, forms[0].format("by_a")) == answers(con, forms[0].format("t"))
        con.execute("ROLLBACK")
