"""CREATE [UNIQUE] INDEX on a materialized view."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from belvedere.errors import InvalidInput, Unsupported
from tests.views.sql import Store, opened, rows_of

VIEWS = {
    "totals": "SELECT customer, count(*) AS n, sum(total) AS s FROM orders GROUP BY customer",
    "joined": "SELECT o.id, c.city, o.total FROM orders o JOIN customers c ON c.id = o.customer",
    "rows": "SELECT customer, total FROM orders",
}
INDEXES = {"totals": "s", "joined": "city, total", "rows": "total"}
QUERIES = (
    "SELECT * FROM totals WHERE s = 7",
    "SELECT customer FROM totals WHERE s > 3 AND s <= 12 AND n < 5",
    "SELECT n, customer FROM totals WHERE s IN (1, 5, 9)",
    "SELECT * FROM joined WHERE city = 'c1'",
    "SELECT id FROM joined WHERE city = 'c2' AND total > 2",
    "SELECT count(*) FROM rows WHERE total = 3",
    "SELECT a.customer, b.n FROM rows a JOIN totals b ON a.customer = b.customer WHERE a.total = 2",
)


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        made.run(
            "CREATE TABLE customers (id int PRIMARY KEY, city text)",
            "CREATE TABLE orders (id int PRIMARY KEY, customer int, total int)",
            "INSERT INTO customers VALUES (1, 'c1'), (2, 'c2'), (3, NULL)",
            "INSERT INTO orders SELECT x, x % 4, x % 6 FROM generate_series(1, 12) AS g(x)",
        )
        yield made


def without_index(query: str) -> str:
    for name, text in VIEWS.items():
        query = query.replace(f"FROM {name} ", f"FROM ({text}) {name} ").replace(
            f"JOIN {name} ", f"JOIN ({text}) "
        )
    return query.replace(f"({VIEWS['rows']}) rows a", f"({VIEWS['rows']}) a")


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_what_an_index_of_a_view_answers_is_what_the_view_would(
    store: Store, rng: random.Random, maintenance: str
) -> None:
    for name, text in VIEWS.items():
        store.run(
            f"CREATE MATERIALIZED VIEW {name} WITH (maintenance = '{maintenance}') AS {text}",
            f"CREATE INDEX ON {name} ({INDEXES[name]})",
        )
    for query in QUERIES[:3]:
        plan = "\n".join(line for (line,) in store.run(f"EXPLAIN {query}"))
        assert "Scan totals_s_idx (s, " in plan, plan
    for step in range(20):
        store.run(
            rng.choice(
                (
                    f"INSERT INTO orders VALUES ({100 + step}, {step % 5}, {step % 7})",
                    f"UPDATE orders SET total = {step % 7} WHERE id % 3 = {step % 3}",
                    f"UPDATE orders SET customer = NULL WHERE id % 7 = {step % 7}",
                    f"DELETE FROM orders WHERE id % 5 = {step % 5}",
                    f"UPDATE customers SET city = 'c{step % 3}' WHERE id = {1 + step % 3}",
                )
            )
        )
        for query in QUERIES:
            found, expected = store.run(query), store.run(without_index(query))
            assert Counter(found) == Counter(expected), (step, query)
    assert set(store.verified().values()) == {True}


def test_a_view_that_is_found_by_its_own_key_is_read_by_it(store: Store) -> None:
    store.run(
        f"CREATE MATERIALIZED VIEW totals AS {VIEWS['totals']}",
        "CREATE INDEX ON totals (n)",
    )
    (first, second, *_) = store.run("EXPLAIN SELECT * FROM totals WHERE customer = 1 AND n = 3")
    assert "key [1]" in second[0], (first, second)


@pytest.mark.parametrize("statement", ["DROP INDEX totals_s_idx", "DROP MATERIALIZED VIEW totals"])
def test_an_index_goes_by_itself_or_with_its_view_and_leaves_nothing(
    store: Store, statement: str
) -> None:
    store.run(f"CREATE MATERIALIZED VIEW totals AS {VIEWS['totals']}")
    before = {view.name for view in store.db.catalog.views}
    store.run("CREATE INDEX ON totals (s)", "CREATE INDEX second ON totals (n)", statement)
    left = {view.name for view in store.db.catalog.views if "second" not in view.name}
    if statement.startswith("DROP INDEX"):
        assert before <= left
        assert store.run("SELECT customer FROM totals WHERE s = 9 ORDER BY 1") == [(1,), (3,)]
        store.run("DROP INDEX second")
        assert {view.name for view in store.db.catalog.views} == before
    else:
        assert not store.db.catalog.views


def test_two_indexes_of_one_view_share_what_they_keep(store: Store) -> None:
    store.run(
        f"CREATE MATERIALIZED VIEW totals AS {VIEWS['totals']}",
        "CREATE INDEX a ON totals (s)",
        "CREATE INDEX b ON totals (n)",
    )
    parts = [view.name for view in store.db.catalog.views if view.part]
    assert parts == ["a (auxiliary 1)"]
    store.run("DROP INDEX a", "INSERT INTO orders VALUES (50, 1, 100)")
    assert store.verified() == {"totals": True, "a (auxiliary 1)": True, "b": True}


def test_what_an_index_of_a_view_cannot_have_is_refused_by_name(store: Store) -> None:
    store.run(f"CREATE MATERIALIZED VIEW rows AS {VIEWS['rows']}")
    with pytest.raises(Unsupported, match="condition or an expression"):
        store.run("CREATE INDEX ON rows (total) WHERE total > 3")
    with pytest.raises(Unsupported, match="condition or an expression"):
        store.run("CREATE INDEX ON rows ((total + 1))")
    with pytest.raises(InvalidInput, match="column"):
        store.run("CREATE INDEX ON rows (nosuch)")
    with pytest.raises(InvalidInput, match="unknown option"):
        store.run("CREATE INDEX ON rows (total) WITH (fillfactor = 70)")
    with pytest.raises(Unsupported, match="not immediate and remote"):
        store.run("CREATE UNIQUE INDEX ON rows (total) WITH (maintenance = 'deferred')")
    store.run("CREATE INDEX i ON rows (total)", "CREATE INDEX IF NOT EXISTS i ON rows (total)")
    with pytest.raises(Unsupported, match="options of an index"):
        store.run("ALTER MATERIALIZED VIEW i SET (maintenance = 'deferred')")
    assert sorted(store.verified_names()) == ["i", "rows"]


@pytest.mark.parametrize("relation", ["orders", "totals"])
def test_an_option_that_no_index_has_is_refused(store: Store, relation: str) -> None:
    store.run(f"CREATE MATERIALIZED VIEW totals AS {VIEWS['totals']}")
    with pytest.raises(InvalidInput) as refused:
        store.run(
            f"CREATE INDEX ON {relation} (customer) WITH (speed = 'high', placement = 'local')"
        )
    assert refused.value.sqlstate == "22023"
    assert refused.value.message == "unknown option of an index"


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_indexes_of_a_view_that_is_replaced_are_made_anew(store: Store, maintenance: str) -> None:
    made = f"MATERIALIZED VIEW r WITH (maintenance = '{maintenance}') AS SELECT"
    store.run(
        "CREATE TABLE r_base (id int PRIMARY KEY, g int, v int)",
        "INSERT INTO r_base VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30)",
        f"CREATE {made} id, g, v FROM r_base",
        "CREATE INDEX r_by_g ON r (g)",
        "CREATE UNIQUE INDEX r_by_v ON r (v)",
        f"CREATE OR REPLACE {made} v AS w, g, v + 1 AS v, id FROM r_base WHERE id < 9",
    )
    mine = {"r", "r_by_g", "r_by_v"}
    assert mine <= {view.name for view in store.db.catalog.views}
    assert not [view.name for view in store.db.catalog.views if "(new" in view.name]
    assert store.run("SELECT * FROM r WHERE g = 1 ORDER BY id") == [(10, 1, 11, 1), (20, 1, 21, 2)]
    plan = [row[0] for row in store.run("EXPLAIN SELECT * FROM r WHERE g = 1")]
    assert any("r_by_g" in line for line in plan)
    store.run("INSERT INTO r_base VALUES (4, 1, 40)")
    assert store.run("SELECT id FROM r WHERE v = 41") == [(4,)]
    with pytest.raises(InvalidInput, match="duplicate key"):
        store.run("INSERT INTO r_base VALUES (5, 1, 40)")
    assert {name: right for name, right in store.verified().items() if name in mine} == (
        dict.fromkeys(mine, True)
    )


def test_a_view_is_not_replaced_by_one_that_its_indexes_cannot_be_of(store: Store) -> None:
    store.run(
        "CREATE TABLE r_base (id int PRIMARY KEY, g int)",
        "INSERT INTO r_base VALUES (1, 1), (2, 1)",
        "CREATE MATERIALIZED VIEW r AS SELECT id, g FROM r_base",
        "CREATE UNIQUE INDEX r_by_id ON r (id)",
    )
    before = {view.id for view in store.db.catalog.views}
    for query, sqlstate in (
        ("SELECT g FROM r_base", "2BP01"),
        ("SELECT g AS id FROM r_base", "23505"),
    ):
        with pytest.raises(InvalidInput) as found:
            store.run(f"CREATE OR REPLACE MATERIALIZED VIEW r AS {query}")
        assert found.value.sqlstate == sqlstate
        assert {view.id for view in store.db.catalog.views} == before
    assert store.run("SELECT * FROM r WHERE id = 2") == [(2, 1)]


def _by_index(store: Store) -> list[Any]:
    return rows_of(store.session(), "SELECT id FROM r WHERE g = 1 ORDER BY id", "any")


def _ways(store: Store) -> set[tuple[str, str | None]]:
    found = store.run(
        "SELECT maintenance, schedule FROM belvedere.views WHERE name IN ('r', 'r_by_g')"
    )
    return set(found)


HOURLY = "WITH (maintenance = 'deferred', refresh_every = '1 h')"


@pytest.fixture
def hourly(store: Store) -> Store:
    store.run(
        "CREATE TABLE r_base (id int PRIMARY KEY, g int)",
        f"CREATE MATERIALIZED VIEW r {HOURLY} AS SELECT id, g FROM r_base",
        "CREATE INDEX r_by_g ON r (g)",
    )
    return store


def test_a_refreshed_view_is_read_by_indexes_that_are_refreshed_too(hourly: Store) -> None:
    hourly.run("INSERT INTO r_base VALUES (1, 1)", "REFRESH MATERIALIZED VIEW r")
    assert _by_index(hourly) == [(1,)]


def test_indexes_are_switched_with_their_view(hourly: Store) -> None:
    hourly.run(
        "ALTER MATERIALIZED VIEW r SET (maintenance = 'immediate')",
        "INSERT INTO r_base VALUES (1, 1)",
    )
    assert _by_index(hourly) == [(1,)]
    assert _ways(hourly) == {("immediate", None)}
    hourly.run("ALTER MATERIALIZED VIEW r SET (maintenance = 'deferred', max_lag = '2 s')")
    hourly.run("ALTER MATERIALIZED VIEW r SET (refresh_every = '2 h')")
    assert _ways(hourly) == {("deferred", "refresh_every 2 h")}
    assert set(hourly.verified().values()) == {True}


def test_indexes_of_a_replaced_view_are_kept_as_the_new_one(hourly: Store) -> None:
    hourly.run(
        "CREATE OR REPLACE MATERIALIZED VIEW r AS SELECT id, g FROM r_base",
        "INSERT INTO r_base VALUES (1, 1)",
    )
    assert _by_index(hourly) == [(1,)]
    assert _ways(hourly) == {("immediate", None)}


def test_an_index_that_was_asked_to_be_otherwise_stays_so(hourly: Store) -> None:
    hourly.run(
        "DROP INDEX r_by_g",
        "CREATE INDEX r_by_g ON r (g) WITH (maintenance = 'immediate')",
        "ALTER MATERIALIZED VIEW r SET (refresh_every = '2 h')",
    )
    assert _ways(hourly) == {("immediate", None), ("deferred", "refresh_every 2 h")}
