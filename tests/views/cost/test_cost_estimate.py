"""What a change costs a view, counted in rows read from the store: it depends on the change."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

from belvedere.kv.memory import MemoryStore
from tests.views.sql import Store, opened

ROWS = 1_500
IDS = itertools.count(ROWS)


@contextmanager
def counted() -> Iterator[list[int]]:
    """The rows that scans of the store give, while this is open."""
    rows: list[int] = []
    scan, scan_values = MemoryStore.scan, MemoryStore.scan_values

    def counting(function: Any) -> Any:
        def wrapped(*arguments: Any, **options: Any) -> Iterator[list[Any]]:
            for batch in function(*arguments, **options):
                rows.append(len(batch))
                yield batch

        return wrapped

    with (
        mock.patch.object(MemoryStore, "scan", counting(scan)),
        mock.patch.object(MemoryStore, "scan_values", counting(scan_values)),
    ):
        yield rows


def cost(store: Store, statement: str) -> int:
    store.run(statement.replace("new", str(next(IDS))))  # what is compiled is kept from here on
    with counted() as rows:
        store.run(statement.replace("new", str(next(IDS))))
    return sum(rows)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """Every order is of customer 1; customers 2 and 3 have none."""
    with opened() as made:
        made.run(
            "CREATE TABLE customers (id int PRIMARY KEY, city text, note text)",
            "CREATE TABLE orders (id int PRIMARY KEY, customer int, total int, note text)",
            "INSERT INTO customers VALUES (1, 'Vienna', ''), (2, 'Graz', ''), (3, 'Linz', '')",
            "INSERT INTO orders VALUES "
            + ", ".join(f"({number}, 1, {number}, '')" for number in range(ROWS)),
        )
        for name, text in DEFINITIONS.items():
            made.run(f"CREATE MATERIALIZED VIEW {name} AS {text}")
        yield made


DEFINITIONS = {
    "totals": "SELECT customer, count(*) AS c, sum(total) AS s FROM orders GROUP BY customer",
    "joined": "SELECT o.id, c.city FROM orders o JOIN customers c ON o.customer = c.id",
    "padded": "SELECT c.city, o.id FROM customers c LEFT JOIN orders o ON o.customer = c.id",
    "active": "SELECT city FROM customers WHERE id IN (SELECT customer FROM orders)",
    "idle": "SELECT city FROM customers c WHERE NOT EXISTS"
    " (SELECT 1 FROM orders o WHERE o.customer = c.id)",
    "extremes": "SELECT customer, min(total) AS l, max(total) AS h FROM orders GROUP BY customer",
    "distinct_totals": "SELECT DISTINCT total FROM orders",
}


def test_an_insert_into_a_large_partition_reads_no_partition(store: Store) -> None:
    """Seven views over a customer with all the orders: a few seeks, and no more."""
    assert cost(store, "INSERT INTO orders VALUES (new, 1, 5, '')") < 600
    assert set(store.verified().values()) == {True}


def test_a_column_that_no_view_uses_costs_nothing(store: Store) -> None:
    assert cost(store, "UPDATE orders SET note = 'x' WHERE id = 7") == 0


def test_a_row_without_a_partner_reads_no_partner(store: Store) -> None:
    assert cost(store, "INSERT INTO orders VALUES (new, 99, 5, '')") < 50


def test_the_price_of_a_row_that_is_written_unread_has_no_read() -> None:
    with opened() as store:
        store.run(
            "CREATE TABLE t (id int PRIMARY KEY, g int)",
            "CREATE MATERIALIZED VIEW sole AS SELECT id, g FROM t WHERE g > 1",
            "CREATE MATERIALIZED VIEW shared AS SELECT g FROM t",
        )
        lines = [line for (line,) in store.run("EXPLAIN INSERT INTO t VALUES (1, 2)")]
        assert "view: sole, 1 entry written" in lines
        assert "view: shared, 1 key read, 1 entry written" in lines
        told = store.run("EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
        assert any(line.startswith("storage: about 1 entry, ") for (line,) in told)
