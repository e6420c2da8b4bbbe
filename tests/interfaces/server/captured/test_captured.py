"""What clients were seen to ask about the catalog is answered as by PostgreSQL, statement by
statement.

`statements.jsonl` is written by `python -m tests.interfaces.server.captured`; `known.sql` has
statements of programs that are no part of the tests, as they are published.
"""

from __future__ import annotations

import getpass
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.interfaces.server.captured.statements import (
    CapturedStatement,
    OidNames,
    hide_oids,
    load_known,
    load_statements,
    show_oids,
)
from tests.interfaces.server.conftest import Connect
from tests.interfaces.server.postgres_peer import create_database, create_schema
from tests.oracle.postgres import Postgres

DIFFERENT = {
    "c.contype = 'n'": "NOT NULL constraints have names in PostgreSQL 18, and not in 16",
    "pg_get_viewdef": "a view keeps the text that it was given",
    "seqcache": "sequences have a cache of 32",
    '^SELECT n.nspname AS "Name"': "there is a schema more, belvedere",
    "nspname NOT LIKE": "the same",
    "SELECT  nspname\n": "the same",
    "cull?iculocale|daticulocale|colliculocale": "a column of PostgreSQL 16 that 18 has no more",
    "r.rolcreaterole": "there is no CREATEDB and no REPLICATION",
    "pg_catalog.version": "another version",
    "FROM pg_catalog.pg_am\n": "one kind of index",
    "FROM pg_catalog.pg_tablespace": "one tablespace",
    "pg_available_extensions": "no extensions",
    "FROM pg_catalog.pg_language": "no languages",
    "NOT pg_catalog.pg_opclass.opcdefault": "one operator class for a type",
    "JOIN pg_catalog.pg_proc|pg_catalog.pg_proc p": "the functions are others",
    r"cls\.relkind = ANY|\bc\.relkind = ANY": "views of the system are tables",
    "pg_stat_user_tables": "the rows of a materialized view are not counted",
    "pg_stat_all_tables": "reads are not counted",
    "nspname NOT IN \\('information_schema', 'belvedere'\\) AND nspname !~": "the schema public",
    "FROM pg_catalog.pg_database|pg_database": "another database",
    "_timescaledb_cache|information_schema.columns (AS c|info)": "there are materialized views",
}
"""Statements that contain this are answered otherwise, and why. They are answered, though."""


@pytest.fixture(scope="module")
def schema_there(postgres: Postgres) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(create_database(postgres), autocommit=True) as connection:
        yield connection


def ask(
    connection: psycopg.Connection[Any], names: OidNames, statement: CapturedStatement
) -> object:
    """The rows of the answer, sorted, with names for OIDs; or its SQLSTATE."""
    text = show_oids(statement.text, names)
    values = [value and show_oids(value, names) for value in statement.values]
    try:
        found = psycopg.RawCursor(connection).execute(text, values or None).fetchall()
    except psycopg.Error as error:
        return f"{error.sqlstate} {error}"
    return sorted(hide_oids(make_equal(repr(row)), names) for row in found)


def make_equal(text: str) -> str:
    """Without what differs by design: docs/clients.md."""
    text = re.sub(rf"\b(postgres|pg_database_owner|{getpass.getuser()})\b", "belvedere", text)
    return re.sub(r"'\d+ (bytes|kB)'", "SIZE", text)


@pytest.fixture
def schema_here(connect: Connect) -> psycopg.Connection[Any]:
    connection = connect()
    create_schema(connection.execute)
    return connection


def list_differences(
    here: psycopg.Connection[Any], there: psycopg.Connection[Any]
) -> Iterator[tuple[CapturedStatement, object, object]]:
    names_here, names_there = OidNames(here), OidNames(there)
    for statement in [*load_statements(), *load_known()]:
        expected = ask(there, names_there, statement)
        found = ask(here, names_here, statement)
        if expected != found:
            yield statement, expected, found


def test_statements_are_answered_as_by_postgres(
    schema_here: psycopg.Connection[Any], schema_there: psycopg.Connection[Any]
) -> None:
    used = set()
    wrong = []
    for statement, expected, found in list_differences(schema_here, schema_there):
        known = [one for one in DIFFERENT if re.search(one, statement.text)]
        used.update(known)
        if not known or isinstance(found, str):
            wrong.append(f"{statement}\n-- PostgreSQL: {expected}\n-- here: {found}")
    assert not wrong, "\n".join(wrong)
    assert used == set(DIFFERENT)
