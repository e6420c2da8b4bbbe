"""SQL, transactions and views on a real HBase, from one and from several nodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere
from belvedere.kv.hbase.url import parse_url

ORDERS = "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer TEXT, amount NUMERIC)"
TOTALS = "SELECT customer, sum(amount) AS total, count(*) AS orders FROM orders GROUP BY customer"


@pytest.fixture
def con(url: str) -> Iterator[belvedere.Connection]:
    with belvedere.connect(url, autocommit=True) as opened:
        yield opened


def test_tables_rows_and_views_are_kept(con: belvedere.Connection, url: str) -> None:
    con.execute(ORDERS)
    con.execute("INSERT INTO orders VALUES (1, 'ann', 10), (2, 'bob', 20), (3, 'ann', NULL)")
    con.execute(f"CREATE MATERIALIZED VIEW now WITH (maintenance = 'immediate') AS {TOTALS}")
    con.execute(f"CREATE MATERIALIZED VIEW later WITH (maintenance = 'deferred') AS {TOTALS}")
    con.execute("INSERT INTO orders VALUES (4, 'cid', 7)")
    con.execute("UPDATE orders SET amount = 5 WHERE id = 3")
    con.execute("DELETE FROM orders WHERE id = 2")
    expected = [("ann", 15, 2), ("cid", 7, 1)]
    for view in ("now", "later"):
        assert con.execute(f"SELECT * FROM {view} ORDER BY 1").fetchall() == expected
        assert con.execute(f"VERIFY MATERIALIZED VIEW {view}").fetchall()[0][-1] is True
    with belvedere.connect(other_node(url)) as other:
        assert other.execute("SELECT * FROM now ORDER BY 1").fetchall() == expected


def other_node(url: str) -> str:
    """Another text for the same database, so that this process opens a second node on it."""
    return url + f"?timeout_ms={parse_url(url).timeout_ms}"


def test_a_transaction_is_seen_whole_or_not_at_all(con: belvedere.Connection, url: str) -> None:
    con.execute(ORDERS)
    with belvedere.connect(other_node(url)) as writer:
        writer.execute("INSERT INTO orders VALUES (1, 'ann', 1)")
        writer.execute("INSERT INTO orders VALUES (2, 'ann', 2)")
        assert con.execute("SELECT count(*) FROM orders").fetchall() == [(0,)]
        writer.commit()
        con.execute("SET freshness = 'latest'")
        assert con.execute("SELECT count(*) FROM orders").fetchall() == [(2,)]
        writer.execute("DELETE FROM orders")
        writer.rollback()
    assert con.execute("SELECT count(*) FROM orders").fetchall() == [(2,)]


def test_of_two_nodes_that_change_a_row_one_is_told(con: belvedere.Connection, url: str) -> None:
    con.execute(ORDERS)
    con.execute("INSERT INTO orders VALUES (1, 'ann', 1)")
    with belvedere.connect(other_node(url)) as other:
        other.execute("UPDATE orders SET amount = amount + 1 WHERE id = 1")
        con.execute("UPDATE orders SET amount = amount + 10 WHERE id = 1")
        with pytest.raises(belvedere.OperationalError) as lost:
            other.commit()
        assert lost.value.sqlstate == "40001"
    assert con.execute("SELECT amount FROM orders").fetchall() == [(11,)]


def test_keys_constraints_and_indexes_hold(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE customers (name TEXT PRIMARY KEY, city TEXT)")
    con.execute(
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer TEXT REFERENCES customers,"
        " code TEXT UNIQUE)"
    )
    con.execute("INSERT INTO customers VALUES ('ann', 'Delft')")
    con.execute("INSERT INTO orders VALUES (1, 'ann', 'x')")
    for statement, sqlstate in (
        ("INSERT INTO orders VALUES (1, 'ann', 'y')", "23505"),
        ("INSERT INTO orders VALUES (2, 'ann', 'x')", "23505"),
        ("INSERT INTO orders VALUES (2, 'nobody', 'y')", "23503"),
        ("DELETE FROM customers", "23503"),
    ):
        with pytest.raises(belvedere.IntegrityError) as refused:
            con.execute(statement)
        assert refused.value.sqlstate == sqlstate
    con.execute("CREATE INDEX by_city ON customers (city)")
    assert con.execute("SELECT name FROM customers WHERE city = 'Delft'").fetchall() == [("ann",)]
