"""Aggregates from views of groups: the same groups, roll-ups, and what must not be rolled up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.views.rewrite.test_planner import find_rewriting_lines, require_same_answers
from tests.views.sql import Store, opened, rows_of

SCHEMA = (
    "CREATE TABLE shop (s_id int PRIMARY KEY, city text NOT NULL)",
    "CREATE TABLE sale (id int PRIMARY KEY, s_id int NOT NULL REFERENCES shop, kind text, "
    "day int NOT NULL, amount numeric(8,2), pieces int, weight double precision)",
    "INSERT INTO shop SELECT g, 'city ' || g % 3 FROM generate_series(0, 9) AS g",
    "INSERT INTO sale SELECT g, g % 10, CASE WHEN g % 4 > 0 THEN 'k' || g % 4 END, g % 5, "
    "g * 1.25, nullif(g % 6, 0), g * 0.25 FROM generate_series(1, 400) AS g",
    "CREATE MATERIALIZED VIEW sums AS SELECT s_id, kind, day, count(*) AS n, count(pieces) AS np, "
    "sum(pieces) AS sp, sum(amount) AS sa, min(amount) AS low, max(pieces) AS high, "
    "sum(weight) AS sw, avg(weight) AS aw FROM sale GROUP BY s_id, kind, day",
)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with opened(rewrite=True) as made:
        made.run(*SCHEMA)
        yield made


@pytest.mark.parametrize(
    ("query", "steps"),
    [
        (
            "SELECT s_id, kind, day, sum(pieces), avg(pieces), sum(weight), avg(weight) FROM sale "
            "GROUP BY kind, day, s_id",
            "its rows as they are",
        ),
        ("SELECT kind, count(*), sum(amount) FROM sale GROUP BY kind", "roll up to kind"),
        (
            "SELECT kind, avg(pieces), min(amount), max(pieces), count(pieces), count(s_id) "
            "FROM sale WHERE day > 2 GROUP BY kind",
            "filter day > 2; roll up to kind",
        ),
        (
            "SELECT count(*), sum(amount) FROM sale WHERE day = 99",
            "filter day = 99; roll up to one row",
        ),
        ("SELECT day, count(DISTINCT kind), count(kind) FROM sale GROUP BY day", "roll up to day"),
        ("SELECT DISTINCT kind FROM sale", "roll up to kind"),
        (
            "SELECT day + 1, max(day) FROM sale GROUP BY day + 1 HAVING count(*) > 3",
            "roll up to day + 1",
        ),
        (
            "SELECT city, sum(pieces), count(*) FROM sale JOIN shop USING (s_id) GROUP BY city",
            "join with shop; filter s_id = s_id; roll up to city",
        ),
        (
            "SELECT kind, count(*) FILTER (WHERE day < 2), sum(pieces) FILTER (WHERE kind = 'k1') "
            "FROM sale GROUP BY kind",
            "roll up to kind",
        ),
    ],
)
def test_aggregates_come_from_finer_groups(store: Store, query: str, steps: str) -> None:
    assert find_rewriting_lines(store, query) == [f"rewritten to view sums: {steps}"]
    require_same_answers(store, query)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "SELECT kind, sum(weight) FROM sale GROUP BY kind",
            "sum(sale.weight) does not follow from its columns",
        ),
        (
            "SELECT kind, stddev(pieces) FROM sale GROUP BY kind",
            "stddev(sale.pieces) does not follow from its columns",
        ),
        ("SELECT kind, sum(id) FROM sale GROUP BY kind", "it lacks sale.id"),
        (
            "SELECT kind, avg(amount) FROM sale GROUP BY kind",
            "count(sale.amount) does not follow from its columns",
        ),
        ("SELECT kind, count(*) FROM sale WHERE pieces = 2 GROUP BY kind", "it lacks sale.pieces"),
        ("SELECT kind, day FROM sale WHERE day = 2", "it has groups of rows"),
        ("SELECT kind, count(*) FROM sale GROUP BY ROLLUP (kind)", "it has groups of rows"),
    ],
)
def test_what_does_not_follow_is_refused(store: Store, query: str, reason: str) -> None:
    assert find_rewriting_lines(store, query) == [f"view sums not used: {reason}"]
    require_same_answers(store, query)


def test_the_row_of_a_view_without_groups_is_no_group() -> None:
    """Over no rows the view has a row, a query with groups or a false condition has not."""
    with opened(rewrite=True) as store:
        store.run(
            "CREATE TABLE t (id int PRIMARY KEY, a int)",
            "CREATE TABLE u (id int PRIMARY KEY, b int)",
            "INSERT INTO u VALUES (1, 1), (2, 2)",
            "CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n, sum(a) AS s FROM t",
        )
        assert store.run("SELECT count(*), sum(a) FROM t") == [(0, None)]
        assert find_rewriting_lines(store, "SELECT b, count(*) FROM t, u GROUP BY b") == [
            "view total not used: it has one row, also for no rows at all"
        ]
        assert store.run("SELECT b, count(*) FROM t, u GROUP BY b") == []
        store.run("INSERT INTO t SELECT g, g FROM generate_series(1, 50) AS g")
        session = store.session()
        text = "SELECT count(*) FROM t WHERE ? = 1"
        assert session.execute(text, (2,)).rows == [(0,)]
        assert session.execute(text, (1,)).rows == [(50,)]


def test_a_parameter_implies_no_condition_of_a_view() -> None:
    with opened(rewrite=True) as store:
        store.run(
            "CREATE TABLE t (id int PRIMARY KEY, a int, b int)",
            "INSERT INTO t SELECT g, g % 10, g FROM generate_series(1, 500) AS g",
            "CREATE MATERIALIZED VIEW fives AS SELECT a, b, id FROM t WHERE a = 5",
            "CREATE MATERIALIZED VIEW many AS SELECT a, b, id FROM t WHERE b > 0",
        )
        session = store.session()
        text = "SELECT count(*) FROM t WHERE a = ?"
        assert session.execute(text, (5,)).rows == [(50,)]
        assert session.execute(text, (4,)).rows == [(50,)]
        lines = [line for (line,) in session.execute(f"EXPLAIN {text}", (5,)).rows or []]
        assert "view fives not used: it keeps only rows with t.a = 5" in lines
        text = "SELECT id FROM t WHERE a = ? AND b > 3"
        assert sorted(session.execute(text, (5,)).rows or [])[:2] == [(5,), (15,)]
        lines = [line for (line,) in session.execute(f"EXPLAIN {text}", (5,)).rows or []]
        assert "rewritten to view many: filter a = $1 and b > 3" in lines


def test_equal_values_that_look_different_stay_in_their_groups() -> None:
    with opened(rewrite=True) as store:
        store.run(
            "CREATE TABLE t (id int PRIMARY KEY, u numeric, d double precision)",
            "INSERT INTO t SELECT g, CASE WHEN g % 2 = 0 THEN 1.0 ELSE 1.00 END, 0 "
            "FROM generate_series(1, 200) AS g",
            "CREATE MATERIALIZED VIEW by_u AS SELECT u, count(*) AS n FROM t GROUP BY u",
        )
        assert find_rewriting_lines(store, "SELECT u, count(*) FROM t WHERE u = 1 GROUP BY u") == [
            "rewritten to view by_u: filter u = 1"
        ]
        query = "SELECT u::text, count(*) FROM t GROUP BY u::text"
        assert find_rewriting_lines(store, query) == ["view by_u not used: it lacks t.u"]
        assert sorted(rows_of(store.session(), query)) == [("1.0", 100), ("1.00", 100)]
