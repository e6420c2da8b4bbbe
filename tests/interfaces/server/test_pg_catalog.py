"""pg_catalog over the wire: OIDs, names of objects, types, and the functions that read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.types import TypeInfo

import belvedere
from belvedere.session.system_tables.pg_catalog.columns import load_catalog_tables
from tests.interfaces.server.conftest import Connect
from tests.interfaces.server.postgres_peer import create_database, create_schema
from tests.oracle.postgres import Postgres

QUESTIONS = """
select 'orders'::regclass, 'other.things'::regclass::text, '"Odd Name"'::regclass::text
select 'orders'::regclass = 'public.orders'::regclass::oid, 'orders'::regclass::oid > 16000
select to_regclass('nothing'), to_regtype('nothing'), to_regtype('int')::text, to_regtype('int4[]')
select 'integer'::regtype::oid, 23::regtype, 1043::oid::regtype::text, 'public'::regnamespace
select 0::regclass, 0::oid::regtype
select format_type(1043, 24), format_type(1700, 655366), format_type(1042, -1), format_type(0, -1)
select format_type(1184, 3), format_type(1007, -1), format_type(null, 3), format_type(22, -1)
select attname, format_type(atttypid, atttypmod), attnotnull, atthasdef, attnum from pg_attribute
  where attrelid = 'orders'::regclass and attnum > 0 order by attnum
select conname, contype, pg_get_constraintdef(oid, true), conkey, confkey, confrelid::regclass
  from pg_constraint where conrelid = 'orders'::regclass and contype <> 'n' order by conname
select indexrelid::regclass, indkey, indkey[0], indoption, indisunique, indisprimary, indnkeyatts,
  pg_get_indexdef(indexrelid), pg_get_indexdef(indexrelid, 1, true)
  from pg_index where indrelid = 'orders'::regclass order by 1::text
select schemaname, tablename, indexname, indexdef from pg_indexes where schemaname <> 'pg_catalog'
  order by indexname
select schemaname, matviewname, hasindexes, ispopulated from pg_matviews
select tablename from pg_tables where schemaname = 'public' order by tablename
select pg_get_serial_sequence('orders', 'id'), pg_get_serial_sequence('orders', 'code')
select pg_table_is_visible('orders'::regclass), pg_table_is_visible('other.things'::regclass)
select has_table_privilege('orders', 'select'), has_schema_privilege('public', 'usage')
select current_setting('standard_conforming_strings'), current_setting('no.such', true)
select pg_size_pretty(10240::bigint), pg_size_pretty(123456789::bigint), current_schemas(true)
select relname from pg_catalog.pg_class c where c.relname operator(pg_catalog.~) '^(orders)$'
  collate pg_catalog.default
select count(*) from pg_class where oid = any (array['orders'::regclass, 'plain'::regclass])
select generate_subscripts(indkey, 1) from pg_index where indexrelid = 'orders_by_total'::regclass
select min(oid) = 'orders'::regclass from pg_class where relname = 'orders'
select typname, typlen, typcategory, typarray, typelem, typdelim from pg_type
  where typname in ('int4', 'text', '_numeric', 'uuid', 'timestamptz') order by typname
"""


@pytest.fixture(scope="module")
def peer(postgres: Postgres) -> str:
    return create_database(postgres)


def _ask(connection: psycopg.Connection[Any], question: str) -> object:
    try:
        return connection.execute(question).fetchall()
    except psycopg.Error as error:
        return error.sqlstate


def test_questions_are_answered_as_by_postgres(connect: Connect, peer: str) -> None:
    here = connect()
    create_schema(here.execute)
    questions = [one for one in QUESTIONS.replace("\n  ", " ").splitlines() if one]
    with psycopg.connect(peer, autocommit=True) as there:
        wrong = [
            f"{question}\n  PostgreSQL: {expected}\n  here:       {found}"
            for question in questions
            if (expected := _ask(there, question)) != (found := _ask(here, question))
        ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("question", "sqlstate"),
    [
        ("select 'nothing'::regclass", "42P01"),
        ("select 'nothing'::regtype", "42704"),
        ("select 'nothing'::regnamespace", "3F000"),
        ("select 'x'::oid", "22P02"),
        ("select (-1)::bigint::oid", "22003"),
        ("select current_setting('nothing')", "42704"),
        ("select pg_get_serial_sequence('orders', 'nothing')", "42703"),
    ],
)
def test_errors_are_those_of_postgres(
    connect: Connect, peer: str, question: str, sqlstate: str
) -> None:
    here = connect()
    create_schema(here.execute)
    with psycopg.connect(peer, autocommit=True) as there:
        assert _ask(here, question) == _ask(there, question) == sqlstate


def test_columns_of_every_table_are_those_of_postgres(postgres: Postgres) -> None:
    """The list also has two columns of PostgreSQL 16, which the server says it is."""
    older = {"daticulocale", "colliculocale"}
    for name, table in load_catalog_tables().items():
        rows = postgres.run(
            "SELECT attname::text, attrelid FROM pg_attribute WHERE attrelid = "
            f"'pg_catalog.{name}'::regclass AND attnum > 0 ORDER BY attnum"
        ).rows
        assert [one.name for one in table.fields if one.name not in older] == [r[0] for r in rows]
        if table.oid < 12_000:  # initdb numbers the views as it makes them
            assert table.oid == rows[0][1]


def test_every_table_can_be_read(connect: Connect) -> None:
    connection = connect()
    for name in load_catalog_tables():
        connection.execute(f"select * from pg_catalog.{name}").fetchall()


def test_oids_survive_a_restart(tmp_path: Path) -> None:
    question = "select relname, oid from pg_class union all select conname, oid from pg_constraint"
    found = []
    for turn in range(2):
        with belvedere.connect(str(tmp_path / "shop.db"), autocommit=True) as connection:
            if turn == 0:
                create_schema(connection.execute)
            found.append(sorted(connection.execute(question).fetchall()))
    assert found[0] == found[1]
    assert len({oid for _, oid in found[0]}) == len(found[0]) - _count_keys(found[0])


def _count_keys(rows: list[tuple[str, int]]) -> int:
    """Constraints that are indexes have the same OID in both tables."""
    return sum(1 for name, _ in rows if name.endswith(("_pkey", "_key"))) // 2


def test_rows_are_made_once_for_each_version_of_the_catalog() -> None:
    with belvedere.connect(":memory:") as connection:
        connection.execute("create table t (a integer)")
        question = "select count(*) from pg_attribute where attrelid = 't'::regclass"
        assert connection.execute(question).fetchall() == [(1,)]
        connection.execute("alter table t add column b text")
        assert connection.execute(question).fetchall() == [(2,)]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("select attname from pg_attribute where attrelid = 'u'::regclass and attnum > 0", ["b"]),
        ("select attname from pg_attribute where 'u'::regclass = attrelid and attnum = 9", []),
        ("select relname from pg_class where relname = null", []),
        ("select relname from pg_class where relname = 't' or relname = 'u'", ["t", "u"]),
        ("select relname from pg_class c where oid = (select oid from pg_class where c.oid = oid "
         "and relname = 'u')", ["u"]),
        ("select (select a.attname from pg_attribute a where a.attrelid = c.oid and attnum = 1) "
         "from pg_class c where relkind = 'r' and relnamespace = 'public'::regnamespace",
         ["a", "b"]),
    ],
)  # fmt: skip
def test_rows_are_found_by_an_equality(question: str, expected: list[str]) -> None:
    with belvedere.connect(":memory:", autocommit=True) as connection:
        connection.execute("create table t (a integer)")
        connection.execute("create table u (b integer)")
        assert sorted(row[0] for row in connection.execute(question).fetchall()) == expected


@pytest.mark.parametrize("name", ["int4", "text", "numeric", "timestamptz", "uuid", "_int8"])
def test_psycopg_finds_types(connect: Connect, postgres: Postgres, name: str) -> None:
    expected, found = (TypeInfo.fetch(one, name) for one in (postgres.connection, connect()))
    assert found is not None
    assert expected is not None
    assert (found.oid, found.array_oid, found.regtype, found.delimiter) == (
        expected.oid,
        expected.array_oid,
        expected.regtype,
        expected.delimiter,
    )


@pytest.mark.parametrize("binary", [False, True])
def test_oids_and_names_in_both_formats(connect: Connect, binary: bool) -> None:
    connection = connect()
    connection.execute("create table t (a integer primary key)")
    cursor = connection.cursor(binary=binary)
    cursor.execute("select oid, oid = %s from pg_class where relname = 't'", (7,))
    ((oid, same),) = cursor.fetchall()
    assert not same
    assert cursor.execute("select %s::oid", (oid,)).fetchall() == [(oid,)]
    assert cursor.execute("select %s::regclass::oid", ("t",)).fetchall() == [(oid,)]


@pytest.mark.parametrize("word", ["oid", "regclass", "regtype", "name", "regnamespace"])
def test_tables_have_no_columns_of_catalog_types(connect: Connect, word: str) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        connect().execute(f"create table t (a {word})")
    connection = connect()
    connection.execute("create table u (a integer)")
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        connection.execute(f"alter table u add column b {word}")


def test_arrays_of_numbers_become_arrays_of_names(connect: Connect) -> None:
    con = connect()
    found = con.execute("SELECT array[23, NULL, 25]::oid[]::regtype[]::text[]").fetchone()
    assert found == (["integer", None, "text"],)


def test_functions_of_types_have_names_and_numbers(connect: Connect, postgres: Postgres) -> None:
    query = """SELECT typname, typinput::text, typoutput::text, typreceive::text, typsend::text,
      typreceive <> 0, typinput = 'array_in'::regproc FROM pg_type
      WHERE typname IN ('bool', 'int4', '_int4', 'date', 'timestamptz', 'numeric', 'bpchar', 'uuid')
      ORDER BY typname"""
    assert connect().execute(query).fetchall() == postgres.connection.execute(query).fetchall()


def test_names_may_have_blanks_around_their_dots(connect: Connect) -> None:
    con = connect()
    con.execute('CREATE TABLE "Odd one" (id int PRIMARY KEY)')
    found = con.execute("""SELECT '"public" . "Odd one"'::regclass::text""").fetchone()
    assert found == ('"Odd one"',)
