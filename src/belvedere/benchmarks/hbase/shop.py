"""Tables and rows of the benchmark: customers with orders, these with lines; and single items.

A customer is the root of its orders and their lines: one lock for all of them. Run as a program
it is one of several processes that write to the same database:

    python -m belvedere.benchmarks.hbase.shop URL FIRST_ITEM COUNT
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from belvedere.errors import InvalidInput
from belvedere.interfaces.dbapi import Connection, connect

ORDERS_PER_CUSTOMER = 5
LINES_PER_ORDER = 4
ROWS_AT_ONCE = 500

TABLES = (
    "CREATE TABLE item (id BIGINT PRIMARY KEY, quantity INTEGER, price NUMERIC(12, 2),"
    " weight DOUBLE PRECISION, note TEXT)",
    "CREATE TABLE watched (id BIGINT PRIMARY KEY, quantity INTEGER, price NUMERIC(12, 2),"
    " weight DOUBLE PRECISION, note TEXT)",
    "CREATE TABLE customer (id BIGINT PRIMARY KEY, name TEXT NOT NULL, spent INTEGER NOT NULL)",
    "CREATE TABLE orders (customer BIGINT NOT NULL REFERENCES customer, number INTEGER,"
    " day DATE, PRIMARY KEY (customer, number))",
    "CREATE TABLE line (customer BIGINT NOT NULL, number INTEGER NOT NULL, place INTEGER,"
    " quantity INTEGER, PRIMARY KEY (customer, number, place),"
    " FOREIGN KEY (customer, number) REFERENCES orders)",
)
WATCHED_VIEW = (
    "CREATE MATERIALIZED VIEW watched_totals WITH (maintenance = 'immediate') AS"
    " SELECT quantity % 10 AS kind, count(*) AS items, sum(quantity) AS total FROM watched"
    " GROUP BY quantity % 10"
)
JOIN = (
    "SELECT c.name, count(*) AS lines, sum(l.quantity) AS total FROM customer c"
    " JOIN orders o ON o.customer = c.id"
    " JOIN line l ON l.customer = o.customer AND l.number = o.number GROUP BY c.name"
)
JOIN_VIEW = f"CREATE MATERIALIZED VIEW sold WITH (maintenance = 'immediate') AS {JOIN}"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many rows there are, and how often each side of a figure is measured."""

    items: int
    customers: int
    rounds: int
    calls: int

    @staticmethod
    def at_scale(scale: float) -> Sizes:
        def rows(full: int, least: int) -> int:
            return max(least, round(full * scale))

        return Sizes(rows(10_000, 300), rows(200, 20), rows(8, 2), rows(100, 10))


def require_empty(con: Connection, url: str) -> None:
    [(tables,)] = con.execute("SELECT count(*) FROM belvedere.tables").fetchall()
    if tables:
        raise InvalidInput(
            "the database of a benchmark has to be empty",
            sqlstate="55006",
            url=url,
            hint="name a namespace that is not there yet",
        )


def load_shop(con: Connection, sizes: Sizes) -> None:
    for statement in TABLES:
        con.execute(statement)
    for table in ("item", "watched"):
        for start in range(0, sizes.items, ROWS_AT_ONCE):
            con.execute(
                f"INSERT INTO {table} SELECT i, i % 1000, i % 77, i / 7.0,"
                " rpad('item ' || i, 58, 'x') FROM generate_series(?, ?) i",
                (start, min(start + ROWS_AT_ONCE, sizes.items) - 1),
            )
    for start in range(0, sizes.customers, 10):
        block = (start, min(start + 10, sizes.customers) - 1)
        con.execute(
            "INSERT INTO customer SELECT i, 'customer ' || i, 0 FROM generate_series(?, ?) i", block
        )
        con.execute(
            "INSERT INTO orders SELECT i, n, DATE '2026-01-01' FROM generate_series(?, ?) i,"
            f" generate_series(1, {ORDERS_PER_CUSTOMER}) n",
            block,
        )
        con.execute(
            "INSERT INTO line SELECT i, n, p, n + p FROM generate_series(?, ?) i,"
            f" generate_series(1, {ORDERS_PER_CUSTOMER}) n,"
            f" generate_series(1, {LINES_PER_ORDER}) p",
            block,
        )


def update_items(con: Connection, first: int, count: int, many: int) -> None:
    """Single-row transactions over items of this caller's own, `many` of them in turn."""
    for number in range(count):
        con.execute(
            "UPDATE item SET quantity = quantity + 1 WHERE id = ?", (first + number % many,)
        )


def main(url: str, first: int, count: int) -> None:
    """Print when it is ready, wait for a line, write, and print the seconds."""
    with connect(url, autocommit=True) as con:
        update_items(con, first, 5, 5)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        started = time.perf_counter()
        update_items(con, first, count, 10)
        sys.stdout.write(f"{time.perf_counter() - started}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
