"""Views whose rows cannot be equal are read plainly; all others count repetitions."""

from __future__ import annotations

import pytest

from belvedere.interfaces.dbapi import Connection, connect

SCHEMA = """
CREATE TABLE p (id int PRIMARY KEY, name text);
CREATE TABLE c (id int PRIMARY KEY, parent int NOT NULL REFERENCES p, n int);
INSERT INTO p VALUES (1, 'x'), (2, 'x');
INSERT INTO c VALUES (1, 1, 5), (2, 1, 5), (3, 2, 5);
"""

DISTINCT = (
    "SELECT id, n FROM c",
    "SELECT c.id, name FROM c, p WHERE c.parent = p.id",
    "SELECT n, c.id, p.id AS parent FROM c JOIN p ON c.parent = p.id",
    "SELECT n FROM c WHERE id = 2",
)
REPEATED = (
    "SELECT n FROM c",
    "SELECT name, n FROM c, p WHERE c.parent = p.id",
    "SELECT p.id FROM c, p WHERE c.parent = p.id",
    "SELECT id FROM c UNION ALL SELECT id FROM p",
)


@pytest.fixture
def connection() -> Connection:
    made = connect(":memory:", autocommit=True)
    made.execute(SCHEMA)
    return made


def _read_plan(connection: Connection) -> str:
    return str(connection.execute("EXPLAIN SELECT * FROM v").fetchall())


@pytest.mark.parametrize("query", DISTINCT)
def test_rows_with_all_keys_are_read_as_they_are_stored(connection: Connection, query: str) -> None:
    connection.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert "generate_series" not in _read_plan(connection)
    _change_and_compare(connection, query)


@pytest.mark.parametrize("query", REPEATED)
def test_rows_that_may_be_equal_are_repeated(connection: Connection, query: str) -> None:
    connection.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert "generate_series" in _read_plan(connection)
    _change_and_compare(connection, query)


def _change_and_compare(connection: Connection, query: str) -> None:
    for change in (
        "INSERT INTO c VALUES (4, 2, 5), (5, 1, 6)",
        "UPDATE c SET n = 5, parent = 2 WHERE id = 5",
        "DELETE FROM c WHERE id = 1",
        "UPDATE p SET name = 'y' WHERE id = 2",
    ):
        connection.execute(change)
        connection.execute("SET rewrite = off")
        rows = sorted(connection.execute(query).fetchall())
        assert sorted(connection.execute("SELECT * FROM v").fetchall()) == rows
    connection.execute("BEGIN")
    connection.execute("DELETE FROM c")
    assert connection.execute("SELECT * FROM v").fetchall() == connection.execute(query).fetchall()
    connection.execute("ROLLBACK")
