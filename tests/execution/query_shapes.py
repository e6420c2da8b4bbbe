"""Query shapes over three tables, with the rows that any plan by their indexes has to read.

    customer(id, city, born)                 index (city, born)
    orders(id, customer, at, state, total)   indexes (at, id), (state, at), (total) with state,
                                             and (customer) of its foreign key
    line(o, n, item, amount)                 key (o, n), index (item)

`needed` counts rows as a text of SQL does, or is a number: of one table, before joins.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

TABLES = """
CREATE TABLE customer (id int PRIMARY KEY, city text NOT NULL, born int);
CREATE TABLE orders (
    id int PRIMARY KEY, customer int NOT NULL REFERENCES customer, at int NOT NULL,
    state int, total int);
CREATE TABLE line (o int REFERENCES orders, n int, item int, amount int, PRIMARY KEY (o, n));
CREATE INDEX customer_city ON customer (city, born);
CREATE INDEX orders_at ON orders (at, id);
CREATE INDEX orders_state ON orders (state, at);
CREATE INDEX orders_total ON orders (total) INCLUDE (state);
CREATE INDEX line_item ON line (item);
"""
CUSTOMERS, ORDERS, LINES = 400, 3000, 2
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "customer": [(i, f"city {i % 40}", 1950 + i % 60) for i in range(CUSTOMERS)],
    "orders": [
        (i, i % CUSTOMERS, i // 2, None if i % 60 == 7 else i % 40, i * 7919 % 10_007)
        for i in range(ORDERS)
    ],
    "line": [(i, n, (i * 3 + n) % 900, i % 17) for i in range(ORDERS) for n in range(LINES)],
}


class QueryShape(NamedTuple):
    text: str
    needed: int | str
    tables: int = 1
    """How many rows are read for each that is needed: one of each table."""


CONDITIONS = (
    "id BETWEEN 700 AND 720",
    "id > 2980",
    "id IN (5, 900, 2999, 4000)",
    "at BETWEEN 300 AND 309",
    "at >= 1490",
    "at = 77",
    "at IN (5, 6, 700)",
    "customer = 33",
    "customer IN (3, 5)",
    "state = 3 AND at < 200",
    "state = 3 AND at BETWEEN 900 AND 1000",
    "state IN (1, 2) AND at > 1400",
    "state IS NULL AND at < 300",
    "total BETWEEN 100 AND 120",
    "total < 20",
    "total = 77 OR customer = 5",
    "at = 7 OR at = 9",
    "id = 3 OR at = 9 OR total > 9990",
    "(at, id) > (1495, 2991)",
    "(state, at) = (5, 92)",
    "(id, at) IN ((4, 2), (6, 3))",
    "at > 1480 AND at < 1490 AND total % 2 = 0",
)
LISTS = ("*", "id", "at, id", "count(*), sum(total)", "min(at), max(total)", "DISTINCT state")
ORDERINGS = (
    ("TRUE", "id"),
    ("id > 500", "id"),
    ("id < 500", "id DESC"),
    ("TRUE", "at, id"),
    ("at > 600", "at"),
    ("at > 600", "at, id"),
    ("at < 600", "at DESC, id DESC"),
    ("at BETWEEN 200 AND 1200", "at"),
    ("state = 7", "at"),
    ("state = 7 AND at > 500", "at DESC"),
    ("state = 7 AND at > 500", "state, at"),
    ("(at, id) > (600, 1201)", "at, id"),
    ("(at, id) < (600, 1201)", "at DESC, id DESC"),
    ("at >= 600 AND (at, id) > (600, 1201)", "at, id"),
    ("total > 500", "total"),
    ("total IS NOT NULL", "total DESC"),
    ("customer = 9", "id"),
)
LIMITS = ("LIMIT 1", "LIMIT 10", "LIMIT 5 OFFSET 20", "FETCH FIRST 3 ROWS ONLY")


def list_shapes() -> Iterator[QueryShape]:
    for condition, wanted in product(CONDITIONS, LISTS):
        text = f"SELECT {wanted} FROM orders WHERE {condition}"
        yield QueryShape(text, f"SELECT count(*) FROM orders WHERE {condition}")
    for (condition, order), limit in product(ORDERINGS, LIMITS):
        text = f"SELECT id, at, total FROM orders WHERE {condition} ORDER BY {order} {limit}"
        yield QueryShape(
            text, {"LIMIT 1": 1, "LIMIT 10": 10, "LIMIT 5 OFFSET 20": 25}.get(limit, 3)
        )
    yield from _list_seeks()
    yield from _list_subqueries()
    yield from _list_joins()


def _list_seeks() -> Iterator[QueryShape]:
    """First and last values, by an end of an index."""
    for function, condition in product(
        ("min({})", "max({})"), ("TRUE", "at > 100", "at BETWEEN 100 AND 900", "state = 5")
    ):
        yield QueryShape(f"SELECT {function.format('at')} FROM orders WHERE {condition}", 1)
    yield QueryShape("SELECT min(total), max(total) FROM orders", 2)
    yield QueryShape("SELECT max(id) FROM orders", 1)
    yield QueryShape("SELECT max(n) FROM line WHERE o = 77", 1)
    in_city = "SELECT count(*) FROM customer WHERE city = 'city 7'"
    yield QueryShape("SELECT max(born) FROM customer WHERE city = 'city 7'", 1)
    yield QueryShape("SELECT * FROM customer WHERE city LIKE 'city 7%'", in_city)
    yield QueryShape("SELECT count(DISTINCT born) FROM customer WHERE city = 'city 7'", in_city)
    of_state = "SELECT count(*) FROM orders WHERE state IN (1, 2)"
    latest = "SELECT DISTINCT ON (state) state, at FROM orders"
    yield QueryShape(f"{latest} WHERE state IN (1, 2) ORDER BY state, at DESC", of_state)
    yield QueryShape(f"{latest} WHERE state = 2 ORDER BY state, at", "SELECT 75")
    numbered = "SELECT id, row_number() OVER (ORDER BY at) FROM orders WHERE customer = 5"
    yield QueryShape(numbered, "SELECT count(*) FROM orders WHERE customer = 5")
    yield QueryShape("SELECT * FROM line WHERE o = 5 AND n = 1", 1)
    yield QueryShape("SELECT * FROM line WHERE (o, n) IN ((5, 1), (9, 0), (5, 1))", 2)
    yield QueryShape("SELECT * FROM line WHERE (o, n) > (2990, 1) ORDER BY o, n LIMIT 4", 4)
    yield QueryShape("SELECT EXISTS (SELECT 1 FROM orders WHERE state = 3)", 1)
    yield QueryShape("SELECT * FROM orders WHERE id = 5 UNION ALL TABLE orders LIMIT 3", 3)


def _list_subqueries() -> Iterator[QueryShape]:
    outer = "SELECT c.id FROM customer c WHERE c.city = 'city 7'"
    in_city = "SELECT count(*) FROM customer WHERE city = 'city 7'"
    for negation, condition in product(("", "NOT "), ("", " AND o.at > 700", " AND o.state = 3")):
        inner = f"SELECT 1 FROM orders o WHERE o.customer = c.id{condition}"
        yield QueryShape(f"{outer} AND {negation}EXISTS ({inner})", in_city, 9)
    yield QueryShape(f"{outer} AND c.id IN (SELECT customer FROM orders WHERE at < 9)", in_city, 9)
    latest = "SELECT max(o.at) FROM orders o WHERE o.customer = c.id"
    yield QueryShape(f"SELECT c.id, ({latest}) FROM customer c WHERE c.city = 'city 7'", in_city, 9)
    yield QueryShape("SELECT * FROM orders WHERE at = (SELECT max(at) FROM orders)", 3)
    yield QueryShape("SELECT * FROM orders WHERE id = ANY (ARRAY[5, 9, 12])", 3)
    yield QueryShape(
        "SELECT * FROM customer WHERE id IN (SELECT customer FROM orders WHERE at = 5)", 2, 2
    )
    newest = "SELECT o.id FROM orders o WHERE o.state = c.id ORDER BY o.at DESC LIMIT 2"
    yield QueryShape(
        f"SELECT c.id, q.id FROM customer c, LATERAL ({newest}) q WHERE c.id < 5", 5, 4
    )
    yield QueryShape(
        "WITH q AS (SELECT * FROM orders WHERE at > 900) SELECT * FROM q ORDER BY at LIMIT 4", 4
    )


def _list_joins() -> Iterator[QueryShape]:
    kinds = ("JOIN", "LEFT JOIN")
    for kind, (condition, needed) in product(
        kinds,
        (("o.id BETWEEN 70 AND 75", 6), ("o.at = 77", 2), ("o.customer = 4", 8), ("o.id = 7", 1)),
    ):
        for other, on, tables in (
            ("customer c", "c.id = o.customer", 2),
            ("line l", "l.o = o.id", 3),
            ("line l", "l.o = o.id AND l.n = 1", 2),
        ):
            text = f"SELECT * FROM orders o {kind} {other} ON {on} WHERE {condition}"
            yield QueryShape(text, needed, tables)
    three = "FROM customer c JOIN orders o ON o.customer = c.id JOIN line l ON l.o = o.id"
    yield QueryShape(f"SELECT * {three} WHERE c.id = 6", 8, 4)
    yield QueryShape(f"SELECT sum(l.amount) {three} WHERE o.id IN (5, 6)", 2, 4)
    yield QueryShape(
        f"SELECT * {three} WHERE l.item = 12", "SELECT count(*) FROM line WHERE item = 12", 3
    )
    two = "SELECT o.id, c.city FROM orders o JOIN customer c ON c.id = o.customer"
    yield QueryShape(f"{two} ORDER BY o.id LIMIT 5", 5, 2)
    yield QueryShape(f"{two} WHERE o.at > 700 ORDER BY o.at LIMIT 5", 5, 2)
    of_state = "SELECT count(*) FROM orders WHERE state = 3"  # joined, then sorted
    yield QueryShape(f"{two} WHERE o.state = 3 ORDER BY o.at DESC LIMIT 5", of_state, 2)
