"""Terms that enforced foreign keys make empty, and the single-row fast path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

from belvedere.kv.memory import MemoryStore
from belvedere.views.operators import linear
from belvedere.views.service import ViewService
from tests.views.sql import Store, opened, rows_of

TABLES = (
    "CREATE TABLE customers (id int PRIMARY KEY, city text)",
    "CREATE TABLE orders (id int PRIMARY KEY, customer int REFERENCES customers, total int)",
    "INSERT INTO customers VALUES (1, 'Vienna'), (2, 'Graz')",
    "INSERT INTO orders VALUES (1, 1, 10), (2, NULL, 5)",
    "CREATE MATERIALIZED VIEW v AS"
    " SELECT o.id, c.city, o.total FROM orders o JOIN customers c ON o.customer = c.id",
)


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        made.run(*TABLES)
        yield made


@contextmanager
def scans() -> Iterator[list[Any]]:
    """The scans of the store while this is open."""
    calls: list[Any] = []
    scan = MemoryStore.scan

    def counting(self: MemoryStore, start: bytes, *rest: Any, **options: Any) -> Any:
        calls.append(start)
        return scan(self, start, *rest, **options)

    with mock.patch.object(MemoryStore, "scan", counting):
        yield calls


def test_an_inserted_parent_costs_a_foreign_key_join_nothing(store: Store) -> None:
    store.run("INSERT INTO customers VALUES (3, 'Linz')")
    with scans() as calls:
        store.run("INSERT INTO customers VALUES (4, 'Wels')")
    assert calls == []


def test_a_renamed_parent_is_looked_up(store: Store) -> None:
    store.run("UPDATE customers SET city = 'Wien' WHERE id = 1")
    assert store.run("SELECT * FROM v") == [(1, "Wien", 10)]


def test_parent_and_child_of_one_transaction_meet(store: Store) -> None:
    store.run("BEGIN", "INSERT INTO customers VALUES (3, 'Linz')")
    store.run("INSERT INTO orders VALUES (3, 3, 7)", "COMMIT")
    assert Counter(store.run("SELECT * FROM v")) == Counter([(1, "Vienna", 10), (3, "Linz", 7)])


def test_a_child_that_waits_for_its_parent_is_seen_inside(store: Store) -> None:
    """The state of an open transaction need not obey the constraint."""
    store.run(
        "CREATE TABLE parts (id int PRIMARY KEY,"
        " customer int REFERENCES customers DEFERRABLE INITIALLY DEFERRED)",
        "CREATE MATERIALIZED VIEW p AS"
        " SELECT p.id, c.city FROM parts p JOIN customers c ON p.customer = c.id",
    )
    session = store.session()
    session.execute("BEGIN")
    session.execute("INSERT INTO parts VALUES (1, 9)")
    assert rows_of(session, "SELECT * FROM p") == []
    session.execute("INSERT INTO customers VALUES (9, 'Steyr')")
    assert rows_of(session, "SELECT * FROM p") == [(1, "Steyr")]
    session.execute("COMMIT")
    assert store.run("SELECT * FROM p") == [(1, "Steyr")]


def test_without_the_constraint_the_parent_finds_its_children(store: Store) -> None:
    store.run(
        "CREATE TABLE loose (id int PRIMARY KEY, customer int)",
        "INSERT INTO loose VALUES (1, 8)",
        "CREATE MATERIALIZED VIEW l AS"
        " SELECT l.id, c.city FROM loose l JOIN customers c ON l.customer = c.id",
        "INSERT INTO customers VALUES (8, 'Enns')",
    )
    assert store.run("SELECT * FROM l") == [(1, "Enns")]


def test_a_constraint_added_later_does_not_hide_what_the_log_has() -> None:
    """A deferred view may be behind a constraint: its rows may still be older than it."""
    with opened() as store:
        store.run(
            "CREATE TABLE parents (id int PRIMARY KEY, name text)",
            "CREATE TABLE children (id int PRIMARY KEY, parent int)",
            "INSERT INTO children VALUES (1, 1)",
        )
        with mock.patch.object(ViewService, "start_or_wake_worker", return_value=None):
            store.run(
                "CREATE MATERIALIZED VIEW d WITH (maintenance = 'deferred') AS"
                " SELECT c.id, p.name FROM children c JOIN parents p ON c.parent = p.id",
                "INSERT INTO parents VALUES (1, 'one')",
                "ALTER TABLE children ADD FOREIGN KEY (parent) REFERENCES parents",
                "REFRESH MATERIALIZED VIEW d",
            )
        assert store.run("SELECT * FROM d") == [(1, "one")]


def test_one_row_goes_without_a_plan(store: Store) -> None:
    """Inserts, updates and deletes of a child find their parent by its key."""
    with mock.patch.object(
        linear, "run_compiled_plan", side_effect=AssertionError("a plan was run")
    ):
        store.run("INSERT INTO orders VALUES (5, 2, 50)")
        store.run("UPDATE orders SET total = 51 WHERE id = 5")
        store.run("UPDATE orders SET customer = 1 WHERE id = 5")
        store.run("INSERT INTO orders VALUES (6, 2, 60), (7, NULL, 70)")
        store.run("DELETE FROM orders WHERE id = 1")
    expected = Counter([(5, "Vienna", 51), (6, "Graz", 60)])
    assert Counter(store.run("SELECT * FROM v")) == expected
    assert set(store.verified().values()) == {True}
