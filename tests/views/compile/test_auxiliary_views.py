"""Auxiliary views: what they save, that they are right, who shares them, when they go."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

from belvedere.catalog.model import Table, View
from belvedere.errors import InvalidInput, Unsupported
from belvedere.kv.memory import MemoryStore
from belvedere.views.compile import auxiliary_views
from belvedere.views.maintain.maintainer import ViewMaintainer
from belvedere.views.operators.operator import DeltaStep
from tests.views.sql import Store, opened

DEFINITIONS = {
    "top": "SELECT id, total FROM orders ORDER BY total DESC, id LIMIT 3",
    "ties": "SELECT total FROM orders ORDER BY total FETCH FIRST 2 ROWS WITH TIES",
    "page": "SELECT id FROM orders ORDER BY note NULLS FIRST, id DESC LIMIT 2 OFFSET 1",
    "cube": "SELECT customer, note, count(*) AS c, sum(total) AS s, grouping(customer, note) AS g"
    " FROM orders GROUP BY CUBE (customer, note)",
    "rolled": "SELECT customer, max(total) AS m, count(*) AS c FROM orders"
    " GROUP BY ROLLUP (customer)",
    "ends": "SELECT min(total) AS l, max(total) AS h FROM orders",
    "mixed": "SELECT customer, count(*) AS c, max(total) AS h, sum(total) AS s,"
    " count(DISTINCT note) AS d FROM orders GROUP BY customer",
    "filtered": "SELECT customer, max(total) FILTER (WHERE note = 'a') AS m, count(*) AS c"
    " FROM orders GROUP BY customer",
    "spreads": "SELECT customer, variance(total) AS v, stddev_pop(total) AS d,"
    " var_pop(price) AS p, stddev(DISTINCT price) AS q FROM orders GROUP BY customer",
    "distincts": "SELECT count(DISTINCT note) AS n, sum(DISTINCT total) AS s FROM orders",
    "busiest": "SELECT max(c) AS m FROM"
    " (SELECT customer, count(*) AS c FROM orders GROUP BY customer) q",
    "spread": "SELECT c, count(*) AS n FROM"
    " (SELECT customer, count(*) AS c FROM orders GROUP BY customer) q GROUP BY c",
    "above": "SELECT id FROM orders WHERE total > (SELECT avg(total) FROM orders o WHERE o.id < 9)",
    "left_only": "SELECT customer, note FROM orders EXCEPT SELECT id, 'a' FROM customers",
    "in_both": "SELECT customer FROM orders INTERSECT ALL SELECT id FROM customers",
    "strangers": "SELECT id FROM orders WHERE customer NOT IN (SELECT id FROM customers)",
    "unnamed": "SELECT id FROM customers WHERE name NOT IN (SELECT note FROM orders)",
    "fewer": "SELECT id FROM orders WHERE total > 3 AND note NOT IN"
    " (SELECT name FROM customers WHERE id > 1)",
    "by_size": "SELECT c.id, q.n FROM customers c JOIN"
    " (SELECT customer, count(*) AS n FROM orders GROUP BY customer) q ON q.n = c.id",
}


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        made.run(
            "CREATE TABLE customers (id int PRIMARY KEY, name text)",
            "CREATE TABLE orders (id int PRIMARY KEY, customer int, total int, note text,"
            " price numeric(8, 2) GENERATED ALWAYS AS (total / 3.0) STORED)",
            "INSERT INTO customers VALUES (1, 'one'), (2, 'two'), (3, 'three')",
        )
        yield made


def orders(first: int, count: int) -> str:
    rows = [f"({i}, {i % 4}, {i % 97}, 'n{i % 5}')" for i in range(first, first + count)]
    return f"INSERT INTO orders VALUES {', '.join(rows)}"


def auxiliaries(store: Store) -> list[View]:
    return [view for view in store.db.catalog.views if view.part]


@contextmanager
def rows_read() -> Iterator[list[int]]:
    """The rows that scans of the store give."""
    rows: list[int] = []

    def counting(function: Any) -> Any:
        def wrapped(*arguments: Any, **options: Any) -> Iterator[list[Any]]:
            for batch in function(*arguments, **options):
                rows.append(len(batch))
                yield batch

        return wrapped

    with (
        mock.patch.object(MemoryStore, "scan", counting(MemoryStore.scan)),
        mock.patch.object(MemoryStore, "scan_values", counting(MemoryStore.scan_values)),
    ):
        yield rows


def commit_cost(store: Store, statement: str) -> int:
    """Rows read in the commit section, where views are maintained."""
    store.run("BEGIN", statement)
    with rows_read() as rows:
        store.run("COMMIT")
    return sum(rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in DEFINITIONS if name != "above"])
def test_a_change_costs_the_same_in_a_large_table(store: Store, name: str) -> None:
    store.run(f"CREATE MATERIALIZED VIEW v AS {DEFINITIONS[name]}")
    costs = []
    for first, count in ((0, 60), (60, 340)):
        store.run(orders(first, count))
        costs.append(commit_cost(store, f"INSERT INTO orders VALUES ({6000 + first}, 1, 50, 'n1')"))
        costs.append(commit_cost(store, f"DELETE FROM orders WHERE id = {6000 + first}"))
    assert max(costs[2:]) <= max(costs[:2]) + 40, costs
    assert set(store.verified().values()) == {True}


@pytest.mark.slow
@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_views_over_auxiliary_views_stay_right(
    store: Store, rng: random.Random, maintenance: str
) -> None:
    for name, text in DEFINITIONS.items():
        store.run(f"CREATE MATERIALIZED VIEW {name} WITH (maintenance = '{maintenance}') AS {text}")
    for step in range(30):
        store.run(change(rng, step))
        if step == 12:
            assert store.verified_names() == [v.name for v in store.db.catalog.views]
    assert set(store.verified().values()) == {True}
    for name, text in DEFINITIONS.items():
        found, expected = store.run(f"SELECT * FROM {name}"), store.run(text)
        assert sorted(map(str, found)) == sorted(map(str, expected)), name


def change(rng: random.Random, step: int) -> str:
    customer, total = rng.choice(("NULL", "1", "2", "3", "4")), rng.choice(("NULL", "1", "7", "9"))
    note = rng.choice(("NULL", "'a'", "'b'"))
    return rng.choice(
        (
            f"INSERT INTO orders VALUES ({step}, {customer}, {total}, {note})",
            f"INSERT INTO orders VALUES ({step}, {customer}, {total}, {note})",
            f"INSERT INTO orders VALUES ({step}, {customer}, 3, 'a'), ({step + 100}, 2, 3, {note})",
            f"UPDATE orders SET customer = {customer} WHERE id % 3 = {step % 3}",
            f"UPDATE orders SET total = {total}, note = {note} WHERE id = {rng.randrange(40)}",
            f"DELETE FROM orders WHERE id % 5 = {step % 5}",
            f"UPDATE customers SET name = {note} WHERE id = {rng.randrange(1, 4)}",
            "DELETE FROM orders",
            f"UPDATE customers SET id = id + 10 WHERE id = {rng.randrange(1, 15)}"
            f" AND id + 10 NOT IN (SELECT id FROM customers)",
        )
    )


def test_the_transaction_sees_its_own_changes_through_them(store: Store) -> None:
    store.run(f"CREATE MATERIALIZED VIEW v AS {DEFINITIONS['busiest']}", orders(0, 5))
    store.run("BEGIN", "INSERT INTO orders VALUES (50, 0, 1, 'x')")
    assert store.run("SELECT * FROM v") == [(3,)]
    store.run("INSERT INTO orders VALUES (51, 0, 1, 'x')")
    assert store.run("SELECT * FROM v") == [(4,)]
    store.run("ROLLBACK")
    assert store.run("SELECT * FROM v") == [(2,)]


@pytest.mark.slow
def test_transactions_that_meet_in_auxiliary_views_add_up(store: Store) -> None:
    """Both are worked out on their own state; what is stored is made of what was there last."""
    store.run(orders(0, 8))
    for name, text in DEFINITIONS.items():
        store.run(f"CREATE MATERIALIZED VIEW {name} AS {text}")
    for first, second in (
        (
            "INSERT INTO orders VALUES (50, 1, 90, 'a')",
            "INSERT INTO orders VALUES (51, 1, 91, 'a')",
        ),
        ("DELETE FROM orders WHERE id = 50", "INSERT INTO orders VALUES (52, 1, 92, NULL)"),
        ("UPDATE orders SET total = 1 WHERE id = 51", "DELETE FROM orders WHERE id = 52"),
    ):
        sessions = [store.session(), store.session()]
        for session, statement in zip(sessions, (first, second), strict=True):
            session.execute("BEGIN")
            session.execute(statement)
        for session in reversed(sessions):
            session.execute("COMMIT")
    assert store.verified_names() == [view.name for view in store.db.catalog.views]


def test_two_views_share_what_both_want(store: Store) -> None:
    store.run(f"CREATE MATERIALIZED VIEW one AS {DEFINITIONS['busiest']}", orders(0, 50))
    first = {view.id for view in auxiliaries(store)}
    store.run(f"CREATE MATERIALIZED VIEW two AS {DEFINITIONS['spread']}")
    assert store.view("one").auxiliary_views[0] == store.view("two").auxiliary_views[0]
    assert first
    store.run("DROP MATERIALIZED VIEW one", orders(50, 50))
    left = {view.id for view in auxiliaries(store)}
    assert left == set(store.view("two").auxiliary_views)
    assert set(store.verified().values()) == {True}
    store.run("DROP MATERIALIZED VIEW two")
    assert auxiliaries(store) == []


def test_a_view_that_cannot_be_filled_leaves_no_auxiliary_view(store: Store) -> None:
    store.run("INSERT INTO orders VALUES (1, 0, 0, 'x')")
    with pytest.raises(Exception, match="division by zero"):
        store.run(
            "CREATE MATERIALIZED VIEW v AS SELECT max(c) AS m FROM"
            " (SELECT customer, sum(1 / total) AS c FROM orders GROUP BY customer) q"
        )
    assert store.db.catalog.views == ()


def test_auxiliary_views_are_listed_only_where_they_are_asked_for(store: Store) -> None:
    store.run(f"CREATE MATERIALIZED VIEW v AS {DEFINITIONS['top']}")
    assert store.run("SELECT name FROM belvedere.views") == [("v",)]
    listed = store.run("SELECT name, state, maintenance FROM belvedere.auxiliary_views")
    assert listed == [("v (auxiliary 1)", "ready", "immediate")]
    tables = store.run("SELECT table_name FROM information_schema.tables")
    assert ("v",) in tables
    assert ("v (auxiliary 1)",) not in tables


def test_auxiliary_views_of_one_table_are_filled_once(store: Store) -> None:
    """One scan fills all of them; none of them is filled again by itself."""
    store.run(orders(0, 9))
    store.db.views.create_view("v", DEFINITIONS["mixed"])
    assert len(auxiliaries(store)) > 1
    assert store.verified_names() == [view.name for view in store.db.catalog.views]


def test_rows_that_are_equal_and_look_different_stay_apart(store: Store) -> None:
    store.run(
        "CREATE TABLE t (id int PRIMARY KEY, x numeric)",
        "CREATE MATERIALIZED VIEW v AS SELECT x::text AS s FROM"
        " (SELECT x FROM t ORDER BY x LIMIT 5) q",
        "INSERT INTO t VALUES (1, 1.0), (2, 1.00), (3, 1)",
    )
    assert sorted(store.run("SELECT * FROM v")) == [("1",), ("1.0",), ("1.00",)]
    store.run("DELETE FROM t WHERE id = 2")
    assert sorted(store.run("SELECT * FROM v")) == [("1",), ("1.0",)]


def test_what_a_tower_of_views_wants_is_looked_at_a_few_times_a_view(store: Store) -> None:
    """Each of its views stands on auxiliary views that stand on those of the view below."""
    store.run(
        "CREATE MATERIALIZED VIEW v0 AS SELECT customer AS g, max(total) AS n,"
        " count(DISTINCT note) AS m FROM orders GROUP BY customer"
    )
    with mock.patch.object(
        auxiliary_views,
        "_define_required_recompute_auxiliaries",
        wraps=auxiliary_views._define_required_recompute_auxiliaries,
    ) as wake_times:
        for number in range(3):
            wake_times.reset_mock()
            store.run(
                f"CREATE MATERIALIZED VIEW v{number + 1} AS SELECT n AS g, max(m) AS n,"
                f" count(DISTINCT g) AS m FROM v{number} GROUP BY n"
            )
    assert wake_times.call_count < 2_000


TOWER = (
    "SELECT customer, note, count(DISTINCT total) AS n, count(*) AS c FROM orders"
    " WHERE NOT EXISTS (SELECT 1 FROM customers WHERE customers.id = orders.total)"
    " GROUP BY customer, note",
    "SELECT n AS x, count(*) AS n FROM v0 GROUP BY n",
    "SELECT x, n, count(*) AS c FROM v1 WHERE x IN (SELECT id FROM customers) GROUP BY x, n",
    "SELECT DISTINCT c AS n, x FROM v2",
    "SELECT n, max(x) AS x FROM v3 GROUP BY n",
)


@contextmanager
def deltas() -> Iterator[list[Counter[int]]]:
    """For every view that is maintained, how often each auxiliary view's delta was worked out."""
    found: list[Counter[int]] = []
    writes, beside = ViewMaintainer.writes, ViewMaintainer.write_additions_from_cache

    def outer(self: ViewMaintainer, *arguments: Any, **options: Any) -> None:
        found.append(Counter())
        writes(self, *arguments, **options)

    def inner(self: ViewMaintainer, *arguments: Any) -> None:
        if not found:
            found.append(Counter())
        found[-1][id(self)] += 1
        beside(self, *arguments)

    with (
        mock.patch.object(ViewMaintainer, "writes", outer),
        mock.patch.object(ViewMaintainer, "write_additions_from_cache", inner),
    ):
        yield found


def test_views_on_views_work_out_each_auxiliary_view_once(store: Store) -> None:
    for number, definition in enumerate(TOWER):
        store.run(f"CREATE MATERIALIZED VIEW v{number} AS {definition}")
    with deltas() as found:
        store.run(orders(0, 20), "DELETE FROM orders WHERE id % 3 = 0", "DELETE FROM customers")
    assert sum(map(len, found)) > 6
    assert all(set(one.values()) <= {1} for one in found)
    assert len(store.verified_names()) == len(store.db.catalog.views)


def test_one_commit_works_out_each_view_once(store: Store) -> None:
    for number, definition in enumerate(TOWER):
        store.run(f"CREATE MATERIALIZED VIEW v{number} AS {definition}")
    found: list[tuple[ViewMaintainer, DeltaStep]] = []
    step_sums = ViewMaintainer._sum_by_delta_tree

    def counting(self: ViewMaintainer, step: DeltaStep) -> Any:
        found.append((self, step))
        return step_sums(self, step)

    with mock.patch.object(ViewMaintainer, "_sum_by_delta_tree", counting):
        store.run("INSERT INTO orders VALUES (1, 2, 3, 'a'), (2, 2, 5, 'b')")
    # A row-atomic commit first works out its locks, of each view by a reader of its own.
    counts = Counter((id(maintainer), id(step.before)) for maintainer, step in found)
    assert len(counts) > 6
    assert set(counts.values()) == {1}


def test_pending_changes_derive_only_what_the_view_stands_on(store: Store) -> None:
    store.run(
        "CREATE MATERIALIZED VIEW plain WITH (maintenance = 'deferred', refresh_every = '1 h')"
        " AS SELECT c.id, o.total FROM customers c JOIN orders o ON o.id = c.id",
        "CREATE MATERIALIZED VIEW other AS " + DEFINITIONS["by_size"],
        orders(0, 5),
    )
    assert auxiliaries(store)
    with deltas() as found:
        rows = store.run("SELECT * FROM plain")
    assert len(rows) == 3
    assert [len(one) for one in found] == [0]


def test_what_is_kept_for_views_is_not_dropped_or_altered_by_its_name(store: Store) -> None:
    store.run(
        "CREATE MATERIALIZED VIEW mixed AS " + DEFINITIONS["mixed"],
        "CREATE MATERIALIZED VIEW pairs AS"
        " SELECT a.id FROM orders a JOIN orders b ON a.note = b.note",
    )
    for statement in (
        'DROP MATERIALIZED VIEW "mixed (auxiliary 1)"',
        'DROP MATERIALIZED VIEW "mixed (auxiliary 1)" CASCADE',
        'DROP INDEX "orders (note)"',
    ):
        with pytest.raises(InvalidInput) as refused:
            store.run(statement)
        assert refused.value.sqlstate == "2BP01"
        assert refused.value.detail in ("view mixed", "view pairs")
    for action in ("SET (maintenance = 'deferred')", "RENAME TO mine"):
        with pytest.raises(Unsupported):
            store.run(f'ALTER MATERIALIZED VIEW "mixed (auxiliary 1)" {action}')
    with pytest.raises(InvalidInput) as refused:
        store.run("DROP TABLE orders")
    assert refused.value.detail == "view mixed, view pairs"
    store.run("DROP MATERIALIZED VIEW mixed", "DROP MATERIALIZED VIEW pairs")
    assert not auxiliaries(store)
    assert not store.db.catalog.table_indexes(store.db.catalog.require_relation(Table, "orders").id)
