"""Statements answered from views that they do not name: which are, which are not, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from belvedere.views.rewrite import match, planner
from tests.views.sql import Store, opened, rows_of

SCHEMA = (
    "CREATE TABLE author (a_id int PRIMARY KEY, name text NOT NULL, country text)",
    "CREATE TABLE item (i_id int PRIMARY KEY, a_id int NOT NULL REFERENCES author, "
    "subject text, title text, cost numeric(10,2), stock int NOT NULL)",
    "INSERT INTO author SELECT g, 'n' || g, 'c' || (g % 3) FROM generate_series(0, 99) AS g",
    "INSERT INTO item SELECT g, g % 100, 's' || (g % 20), 't' || g, g * 1.5, g % 7 "
    "FROM generate_series(1, 600) AS g",
)
JOINED = (
    "CREATE MATERIALIZED VIEW joined AS SELECT i.subject, i.title, i.i_id, i.cost, i.stock, a.name "
    "FROM item AS i JOIN author AS a ON i.a_id = a.a_id"
)


@pytest.fixture
def store() -> Iterator[Store]:
    with opened(rewrite=True) as made:
        made.run(*SCHEMA)
        yield made


def explain_lines(store: Store, query: str) -> list[str]:
    return [line for (line,) in store.run(f"EXPLAIN {query}")]


def find_rewriting_lines(store: Store, query: str) -> list[str]:
    """What EXPLAIN says about rewriting, without costs."""
    words = ("rewritten", "view ")
    return [line for line in explain_lines(store, query) if line.startswith(words)]


def require_same_answers(store: Store, query: str) -> None:
    session = store.session()
    found = rows_of(session, query)
    session.execute("SET rewrite = off")
    assert sorted(map(repr, found)) == sorted(map(repr, rows_of(session, query)))
    assert found


def test_a_join_is_read_from_its_view(store: Store) -> None:
    store.run(JOINED)
    query = (
        "SELECT title, name FROM author, item WHERE author.a_id = item.a_id AND subject = 's3' "
        "ORDER BY title LIMIT 5"
    )
    assert find_rewriting_lines(store, query) == ["rewritten to view joined: filter subject = 's3'"]
    require_same_answers(store, query)


def test_expressions_are_computed_from_the_columns_of_the_view(store: Store) -> None:
    store.run(JOINED)
    query = (
        "SELECT upper(name) || title, cost * 2 FROM item JOIN author USING (a_id) "
        "WHERE subject = 's4' AND stock + 1 > 3"
    )
    assert find_rewriting_lines(store, query) == [
        "rewritten to view joined: filter subject = 's4' and (stock + 1) > 3"
    ]
    require_same_answers(store, query)


def test_a_join_along_a_foreign_key_does_no_harm(store: Store) -> None:
    store.run(JOINED)
    query = "SELECT title FROM item WHERE subject = 's5'"
    assert find_rewriting_lines(store, query) == ["rewritten to view joined: filter subject = 's5'"]
    require_same_answers(store, query)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "SELECT country FROM item JOIN author USING (a_id) WHERE subject = 's1'",
            "it lacks author.country",
        ),
        (
            "SELECT name FROM author WHERE name = 'n1'",
            "it joins other tables, which may drop or repeat rows",
        ),
        (
            "SELECT i.title FROM item AS i JOIN author AS a ON i.a_id = a.a_id + 1",
            "it keeps only rows with item.a_id = author.a_id",
        ),
    ],
)
def test_a_refused_view_says_why(store: Store, query: str, reason: str) -> None:
    store.run(JOINED)
    assert find_rewriting_lines(store, query) == [f"view joined not used: {reason}"]


def test_an_extra_join_that_may_drop_rows_is_refused(store: Store) -> None:
    store.run(
        "CREATE TABLE note (n_id int PRIMARY KEY, i_id int REFERENCES item, text text)",
        "CREATE MATERIALIZED VIEW noted AS SELECT n.text, n.n_id, i.title FROM note AS n "
        "JOIN item AS i ON n.i_id = i.i_id",
        "INSERT INTO note SELECT g, CASE WHEN g % 2 = 0 THEN g END, 'x' || g % 5 "
        "FROM generate_series(1, 500) AS g",
    )
    query = "SELECT n_id FROM note WHERE text = 'x1'"
    assert find_rewriting_lines(store, query) == [
        "view noted not used: it joins other tables, which may drop or repeat rows"
    ]


def test_a_key_look_up_stays_with_the_tables(store: Store) -> None:
    store.run(JOINED)
    query = "SELECT title, name FROM item JOIN author USING (a_id) WHERE i_id = 5"
    (line,) = find_rewriting_lines(store, query)
    assert line.startswith("view joined not used: its plan costs")


def test_the_setting_turns_it_off_also_for_cached_plans(store: Store) -> None:
    store.run(JOINED)
    query = "SELECT title FROM item WHERE subject = 's5'"
    store.run(query, "SET rewrite = off", query)
    assert find_rewriting_lines(store, query) == []
    assert store.run("SHOW rewrite") == [("off",)]
    store.run("RESET rewrite")
    assert find_rewriting_lines(store, query) != []


def test_a_cached_plan_goes_with_its_view(store: Store) -> None:
    query = "SELECT title FROM item WHERE subject = 's5'"
    expected = sorted(store.run(query))
    store.run(JOINED)
    assert sorted(store.run(query)) == expected
    store.run("DROP MATERIALIZED VIEW joined")
    assert sorted(store.run(query)) == expected


LINES = (
    "CREATE TABLE parts (p int PRIMARY KEY, kind int NOT NULL)",
    "CREATE TABLE lines (o int, n int, p int NOT NULL REFERENCES parts, PRIMARY KEY (o, n))",
    "CREATE INDEX ON lines (p)",
    "INSERT INTO parts SELECT g, g % 10 FROM generate_series(1, 400) AS g",
    "INSERT INTO lines SELECT g, 1, g % 400 + 1 FROM generate_series(1, 2000) AS g",
)


def test_rows_that_a_range_of_a_view_drops_are_paid_for() -> None:
    """The range has all rows of the view, the other condition leaves five of them: tables find
    these by an index."""
    with opened(rewrite=True) as store:
        view = "SELECT l.o, l.n, l.p, q.kind FROM lines AS l JOIN parts AS q ON l.p = q.p"
        store.run(*LINES, f"CREATE MATERIALIZED VIEW v AS {view}")
        query = f"{view} WHERE l.p = 7 AND l.o > 0"
        (line,) = find_rewriting_lines(store, query)
        assert line.startswith("view v not used: its plan costs")
        assert any("index lines_p" in one for one in explain_lines(store, query))
        by_order = f"{view} WHERE l.o = 7"
        assert find_rewriting_lines(store, by_order)[0].startswith("rewritten to view v")


def test_a_pattern_reads_the_rows_that_begin_like_it() -> None:
    with opened(rewrite=True) as store:
        store.run(*SCHEMA, "CREATE INDEX ON item (title)")
        query = "SELECT title, name FROM item AS i JOIN author AS a ON i.a_id = a.a_id"
        view = "SELECT i.title, i.i_id, a.name FROM item AS i JOIN author AS a ON i.a_id = a.a_id"
        store.run(f"CREATE MATERIALIZED VIEW v AS {view}")
        lines = find_rewriting_lines(store, f"{query} WHERE title LIKE 't12%'")
        assert lines[0].startswith("rewritten to view v")
        (cost,) = [
            one
            for one in explain_lines(store, f"{query} WHERE title LIKE 't12%'")
            if one.startswith("rewriting: cost")
        ]
        assert float(cost.split()[2].rstrip(",")) < 10


def test_views_are_passed_over_by_conditions_and_columns_before_a_match(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        store.run(
            f"CREATE MATERIALIZED VIEW stocked{number} AS SELECT i_id, title, name FROM item "
            f"JOIN author USING (a_id) WHERE stock > {number}",
            f"CREATE MATERIALIZED VIEW other{number} AS SELECT stock, i_id, title FROM item "
            f"WHERE subject <> 's{number}'",
        )
    tried = []
    align_view = match.align_view

    def align_and_count(*arguments: Any) -> Any:
        tried.append(arguments[1])
        return align_view(*arguments)

    monkeypatch.setattr(planner, "align_view", align_and_count)
    query = "SELECT i_id, name FROM author JOIN item USING (a_id) WHERE stock > 12"
    lines = find_rewriting_lines(store, query)
    assert "rewritten to view stocked12: its rows as they are" in lines
    assert "view stocked11 not used: it lacks item.stock" in lines
    assert "view stocked13 not used: it keeps only rows with item.stock > 13" in lines
    assert len(tried) == 1
    tried.clear()
    lines = find_rewriting_lines(store, "SELECT title FROM item WHERE subject = 's3' AND stock = 6")
    assert "view other4 not used: it lacks item.subject" in lines
    assert "view other3 not used: it keeps only rows with item.subject <> 's3'" in lines
    assert len(tried) == 0


@pytest.mark.parametrize("kept", ["i.a_id > 9", "a.a_id > 9", "i.a_id < 9"])
def test_a_condition_on_one_of_two_equal_columns_is_one_on_the_other(
    store: Store, kept: str
) -> None:
    store.run(
        "CREATE MATERIALIZED VIEW kept AS SELECT i.a_id, i.i_id, a.name FROM item AS i "
        f"JOIN author AS a ON i.a_id = a.a_id WHERE {kept}"
    )
    query = "SELECT i_id, name FROM item i JOIN author a ON i.a_id = a.a_id WHERE a.a_id > 90"
    if "<" in kept:
        expected = f"view kept not used: it keeps only rows with {kept.replace('i.', 'item.')}"
    else:
        expected = "rewritten to view kept: filter a_id > 90"
    assert find_rewriting_lines(store, query) == [expected]
    require_same_answers(store, query)


def test_a_column_that_refers_to_an_extra_table_is_read_from_that(store: Store) -> None:
    store.run(
        "CREATE MATERIALIZED VIEW referred AS SELECT i.subject, i.i_id, a.a_id AS author_id "
        "FROM item i JOIN author a ON i.a_id = a.a_id"
    )
    query = "SELECT i_id, a_id FROM item WHERE subject = 's3'"
    assert find_rewriting_lines(store, query) == [
        "rewritten to view referred: filter subject = 's3'"
    ]
    require_same_answers(store, query)
