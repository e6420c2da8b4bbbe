"""Queries that repeat the definition of a view, whatever it consists of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.views.rewrite.test_planner import SCHEMA, find_rewriting_lines, require_same_answers
from tests.views.sql import Store, opened, rows_of

DEFINITIONS = {
    "having": "SELECT subject, count(*) AS n FROM item GROUP BY subject HAVING sum(stock) > 80",
    "left_join": "SELECT name, count(i_id) AS n FROM author AS a LEFT JOIN item AS i "
    "ON i.a_id = a.a_id AND i.stock > 3 GROUP BY name",
    "exists": "SELECT a_id, name FROM author AS a WHERE EXISTS "
    "(SELECT 1 FROM item AS i WHERE i.a_id = a.a_id AND i.stock = 6)",
    "not_in": "SELECT a_id FROM author WHERE a_id NOT IN (SELECT a_id FROM item WHERE stock > 5)",
    "scalar": "SELECT i_id FROM item WHERE cost > (SELECT avg(cost) * 1.5 FROM item)",
    "union": "SELECT name AS x FROM author UNION SELECT title FROM item WHERE stock = 2",
    "window": "SELECT i_id, sum(stock) OVER (PARTITION BY subject) AS s FROM item",
    "quotient": "SELECT subject, sum(cost) / count(*) AS each FROM item GROUP BY subject",
    "cte": "WITH t AS (SELECT subject, sum(stock) AS s FROM item GROUP BY subject) "
    "SELECT subject FROM t WHERE s = (SELECT max(s) FROM t)",
}
TOP = "SELECT i_id, title, cost FROM item ORDER BY cost DESC, i_id LIMIT 20"


@pytest.fixture
def store() -> Iterator[Store]:
    with opened(rewrite=True) as made:
        made.run(*SCHEMA)
        yield made


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_same_query_is_read_from_the_view(store: Store, name: str) -> None:
    query = DEFINITIONS[name]
    store.run(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert find_rewriting_lines(store, query) == ["rewritten to view v: its rows as they are"]
    require_same_answers(store, query)
    store.run("DELETE FROM item WHERE i_id % 5 = 0", "UPDATE item SET stock = 6 WHERE i_id < 40")
    require_same_answers(store, query)


def test_names_and_an_order_do_not_matter(store: Store) -> None:
    store.run(f"CREATE MATERIALIZED VIEW v AS {DEFINITIONS['having']}")
    query = (
        "SELECT x.subject AS s, count(*) AS c FROM item AS x GROUP BY 1 "
        "HAVING sum(x.stock) > 80 ORDER BY c DESC, s LIMIT 3"
    )
    assert find_rewriting_lines(store, query) == ["rewritten to view v: its rows as they are"]
    session = store.session()
    found = rows_of(session, query)
    session.execute("SET rewrite = off")
    assert found == rows_of(session, query)


def test_a_part_of_a_query_is_read_from_the_view(store: Store) -> None:
    store.run(f"CREATE MATERIALIZED VIEW v AS {DEFINITIONS['having']}")
    query = f"SELECT min(subject), max(n) FROM ({DEFINITIONS['having']}) AS q"
    assert find_rewriting_lines(store, query) == ["rewritten to view v: its rows as they are"]
    require_same_answers(store, query)


def test_the_first_rows_are_read_from_more_of_them(store: Store) -> None:
    store.run(f"CREATE MATERIALIZED VIEW v AS {TOP}")
    session, plain = store.session(), store.session()
    plain.execute("SET rewrite = off")
    for limit in ("LIMIT 20", "LIMIT 5", "LIMIT 5 OFFSET 15"):
        query = TOP.replace("LIMIT 20", limit)
        (line,) = find_rewriting_lines(store, query)
        assert line.startswith("rewritten to view v: sorted")
        assert rows_of(session, query) == rows_of(plain, query)


@pytest.mark.parametrize(
    "query",
    [
        TOP.replace("LIMIT 20", "LIMIT 21"),
        TOP.replace("LIMIT 20", "LIMIT 10 OFFSET 11"),
        TOP.replace("cost DESC", "cost"),
        TOP.replace("FROM item", "FROM item WHERE stock = 1"),
        TOP.replace("LIMIT 20", "FETCH FIRST 5 ROWS WITH TIES"),
    ],
)
def test_other_first_rows_are_not(store: Store, query: str) -> None:
    store.run(f"CREATE MATERIALIZED VIEW v AS {TOP}")
    assert find_rewriting_lines(store, query) == [
        "view v not used: it keeps only the first rows (LIMIT)"
    ]
    require_same_answers(store, query)


def test_constants_that_look_different_are_different(store: Store) -> None:
    definition = "SELECT subject, sum(cost) / count(*) * 1.0 AS x FROM item GROUP BY subject"
    store.run(f"CREATE MATERIALIZED VIEW v AS {definition}")
    assert find_rewriting_lines(store, definition)[0].startswith("rewritten")
    other = definition.replace("1.0", "1.00")
    assert not find_rewriting_lines(store, other)[0].startswith("rewritten")
    require_same_answers(store, other)


def test_aggregates_of_an_open_order_are_not_read(store: Store) -> None:
    definition = "SELECT subject, length(string_agg(title, ',')) AS x FROM item GROUP BY subject"
    store.run(f"CREATE MATERIALIZED VIEW v AS {definition}")
    assert not find_rewriting_lines(store, definition)[0].startswith("rewritten")


def test_a_transaction_sees_its_own_writes_in_it(store: Store) -> None:
    store.run(f"CREATE MATERIALIZED VIEW v AS {DEFINITIONS['exists']}")
    session = store.session()
    session.execute("BEGIN")
    session.execute("UPDATE item SET stock = 0 WHERE stock = 6")
    assert rows_of(session, DEFINITIONS["exists"]) == []
    session.execute("ROLLBACK")
    assert rows_of(session, DEFINITIONS["exists"]) != []


def test_a_view_of_distinct_values_is_read_by_its_whole_key(store: Store) -> None:
    store.run("CREATE MATERIALIZED VIEW subjects AS SELECT DISTINCT subject FROM item")
    query = "SELECT subject FROM subjects WHERE subject = 's3'"
    assert store.run(query) == [("s3",)]
    assert store.run(query.replace("s3", "none")) == []
    assert store.run("SELECT DISTINCT subject FROM item WHERE subject = 's3'") == [("s3",)]
