"""Dropping a constraint takes with it what was made for it."""

from __future__ import annotations

import belvedere


def test_a_dropped_foreign_key_leaves_no_index_behind() -> None:
    with belvedere.connect(":memory:") as connection:
        connection.autocommit = True
        connection.execute("CREATE TABLE p (id int PRIMARY KEY)")
        connection.execute("CREATE TABLE c (id int PRIMARY KEY, p int CONSTRAINT fk REFERENCES p)")
        catalog = connection._session.catalog
        table = next(t for t in catalog.tables if t.name == "c")
        assert len(catalog.table_indexes(table.id)) == 1
        connection.execute("ALTER TABLE c DROP CONSTRAINT fk")
        assert connection._session.catalog.table_indexes(table.id) == ()
        connection.execute("INSERT INTO c VALUES (1, 7)")
