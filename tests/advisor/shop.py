"""A small shop and its workload, for tests of the whole advisor."""

from __future__ import annotations

from belvedere.database import Database, open_sql_database
from belvedere.session.session import Session

SCHEMA = """
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, city text NOT NULL);
CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL REFERENCES customers,
                     status text NOT NULL, total int NOT NULL);
INSERT INTO customers SELECT x, 'name ' || x, 'city ' || x % 20 FROM generate_series(1, 400) g(x);
INSERT INTO orders SELECT x, x % 400 + 1, CASE WHEN x % 9 = 0 THEN 'open' ELSE 'done' END, x % 97
FROM generate_series(1, 4000) g(x);
"""

BY_CITY = "SELECT o.id, c.name, o.total FROM orders o, customers c \
WHERE o.customer = c.id AND c.city = ? ORDER BY o.total LIMIT 10"
TOTALS = "SELECT c.city, sum(o.total), count(*) FROM orders o, customers c \
WHERE o.customer = c.id GROUP BY c.city"

WORKLOAD = f"""
-- name: by_city calls: 1000
{BY_CITY};
-- name: totals calls: 50
{TOTALS};
-- name: new_order calls: 100
INSERT INTO orders VALUES (?, ?, ?, ?);
"""


def open_shop() -> tuple[Database, Session]:
    database, shared = open_sql_database(":memory:")
    session = Session(shared)
    session.execute(SCHEMA)
    return database, session
