"""GRANT, REVOKE, default privileges, owners: access lists and has_*_privilege as in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

import belvedere
from tests.oracle.postgres import Postgres

SETUP = """
create role ann; create role bob; create role cy; create role club; create role inner_club;
create schema shop; create table shop.t (id integer primary key, a integer, b integer);
create view shop.v as select id from shop.t; create sequence shop.q;
grant usage on schema shop to public
"""
TEARDOWN = """
reset session authorization; drop schema if exists shop cascade; drop schema if exists more cascade;
drop owned by ann, bob, cy, club, inner_club cascade;
drop role ann, bob, cy, club, inner_club
"""
SCRIPTS = {
    "grants are merged by grantor": """
grant select on shop.t to ann; grant insert, select on shop.t to ann;
grant update (a, b), select (a) on shop.t to bob; grant all on shop.t to cy with grant option;
set session authorization cy; grant select on shop.t to ann, public;
grant update (b) on shop.t to ann
""",
    "options do not go round": """
grant select, update on shop.t to ann with grant option; set session authorization ann;
grant select on shop.t to bob with grant option; set session authorization bob;
grant select on shop.t to ann with grant option; grant select on shop.t to ann
""",
    "revoke takes what the same grantor gave": """
grant all on shop.t to cy with grant option; grant select on shop.t to ann;
set session authorization cy; grant select on shop.t to ann; reset session authorization;
revoke select on shop.t from ann
""",
    "revoke of the option cascades": """
grant select, update on shop.t to ann with grant option; set session authorization ann;
grant select, update on shop.t to bob with grant option; set session authorization bob;
grant select on shop.t to cy; reset session authorization;
revoke grant option for select on shop.t from ann cascade
""",
    "revoke on a table takes it from columns": """
grant select (a, b), update (a) on shop.t to ann; revoke select on shop.t from ann
""",
    "an owner may revoke his own rights": """
revoke all on shop.t from current_user; grant select on shop.v to ann
""",
    "an owner hands over": """
grant select on shop.t to ann, bob; grant create on schema shop to bob;
alter table shop.t owner to bob; alter view shop.v owner to ann; alter sequence shop.q owner to ann;
alter schema shop owner to bob
""",
    "reassign and drop owned": """
alter table shop.t owner to ann; grant select on shop.v to ann, bob; reassign owned by ann to bob;
drop owned by ann
""",
    "all tables of a schema": """
create table shop.u (id integer primary key); grant select, insert on all tables in schema shop
to ann; grant usage on all sequences in schema shop to bob; revoke insert on all tables in schema
shop from ann
""",
    "default privileges": """
alter default privileges grant select on tables to ann;
alter default privileges in schema shop grant insert on tables to bob;
alter default privileges in schema shop grant usage on sequences to bob;
alter default privileges grant usage on schemas to cy;
create table shop.u (id integer primary key); create sequence shop.r; create schema more;
create table more.u (id integer primary key); create view shop.w as select id from shop.t
""",
    "default privileges of another role": """
grant create on schema shop to ann; alter default privileges for role ann grant select on tables
to bob; alter default privileges for role ann revoke all on tables from ann;
set session authorization ann; create table shop.u (id integer primary key)
""",
    "membership": """
grant club to ann; grant inner_club to club with admin option; grant club to bob with inherit false;
grant club to cy with set false, admin true; revoke admin option for club from cy;
grant select on shop.t to inner_club; revoke club from ann; grant club to ann
""",
    "schemas and sequences": """
grant usage, create on schema shop to ann; grant usage on sequence shop.q to bob;
grant select, update on sequence shop.q to cy with grant option; revoke usage on schema shop from
public
""",
    "who holds no option grants nothing": """
grant select on shop.t to ann; set session authorization ann; grant select on shop.t to bob
""",
}
QUESTIONS = """
select relname, relacl::text, pg_get_userbyid(relowner) from pg_class
  where relname in ('t', 'u', 'v', 'w', 'q', 'r') and relkind <> 'i'
  and relnamespace in (select oid from pg_namespace where nspname in ('shop', 'more')) order by 1, 2
select attname, attacl::text from pg_attribute where attrelid = 'shop.t'::regclass and attnum > 0
  order by attnum
select nspname, nspacl::text, pg_get_userbyid(nspowner) from pg_namespace
  where nspname in ('shop', 'more') order by 1
select pg_get_userbyid(defaclrole), defaclnamespace <> 0, defaclobjtype, defaclacl::text
  from pg_default_acl order by 1, 2, 3
select pg_get_userbyid(roleid), pg_get_userbyid(member), admin_option, inherit_option, set_option
  from pg_auth_members where roleid > 16383 order by 1, 2
select r, p, has_table_privilege(r, 'shop.t', p), has_any_column_privilege(r, 'shop.t', p),
  has_column_privilege(r, 'shop.t', 'b', p) from unnest(array['ann', 'bob', 'cy', 'club']) r,
  unnest(array['select', 'insert', 'update', 'references', 'select with grant option']) p
  order by 1, 2
select r, has_schema_privilege(r, 'shop', 'usage'), has_schema_privilege(r, 'shop', 'create'),
  has_sequence_privilege(r, 'shop.q', 'usage'), has_sequence_privilege(r, 'shop.q', 'update'),
  has_database_privilege(r, current_database(), 'connect'),
  has_database_privilege(r, current_database(), 'create'),
  pg_has_role(r, 'inner_club', 'usage'), pg_has_role(r, 'inner_club', 'member'),
  pg_has_role(r, 'club', 'set'), has_table_privilege(r, 'pg_class', 'select'),
  has_table_privilege(r, 'pg_authid', 'select')
  from unnest(array['ann', 'bob', 'cy', 'club']) r order by 1
"""


def split(script: str) -> list[str]:
    return [one.strip() for one in script.split(";") if one.strip()]


def list_questions() -> list[str]:
    found: list[str] = []
    for line in QUESTIONS.strip().splitlines():
        if line.startswith("select"):
            found.append(line)
        else:
            found[-1] += line
    return found


def run_script(execute: Callable[[str], Any], script: str) -> list[str | None]:
    """The SQLSTATE of each statement."""
    states: list[str | None] = []
    for statement in split(script):
        try:
            execute(statement)
            states.append(None)
        except (belvedere.Error, psycopg.Error) as error:
            states.append(error.sqlstate)
    return states


def replace_owner(rows: list[Any], owner: str) -> list[list[Any]]:
    """`null` of a list of grants that was never changed stays; the owner has another name."""
    return [
        [one.replace(owner, "OWNER") if isinstance(one, str) else one for one in row]
        for row in rows
    ]


@pytest.fixture
def there(postgres: Postgres) -> Iterator[psycopg.Connection[Any]]:
    with postgres.connect(autocommit=True, prepare_threshold=None) as con:
        con.execute("set client_min_messages = error")
        for statement in split(SETUP):
            con.execute(statement)  # type: ignore[arg-type]
        try:
            yield con
        finally:
            for statement in split(TEARDOWN):
                con.execute(statement)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SCRIPTS)
def test_access_lists_are_those_of_postgres(name: str, there: psycopg.Connection[Any]) -> None:
    with belvedere.connect(":memory:", autocommit=True) as here:
        for statement in split(SETUP):
            here.execute(statement)
        states = run_script(here.execute, SCRIPTS[name])
        assert states == run_script(there.execute, SCRIPTS[name])
        here.execute("reset session authorization")
        there.execute("reset session authorization")
        owner = there.execute("select current_user").fetchone()
        assert owner is not None
        for question in list_questions():
            ours = replace_owner(here.execute(question).fetchall(), "belvedere")
            theirs = replace_owner(there.execute(question).fetchall(), owner[0])  # type: ignore[arg-type]
            assert ours == theirs, question


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("grant select on shop.t to nobody_knows", "42704"),
        ("grant fly on shop.t to ann", "42601"),
        ("grant usage on shop.t to ann", "0LP01"),
        ("grant select on schema shop to ann", "0LP01"),
        ("grant select on shop.nothing to ann", "42P01"),
        ("grant select (nothing) on shop.t to ann", "42703"),
        ("grant select on shop.t to public with grant option", "0LP01"),
        ("grant usage on sequence shop.t to ann", "42809"),
        ("grant ann to ann", "0LP01"),
        ("drop role ann", "2BP01"),
        ("set role nobody_knows", "22023"),
        ("alter table shop.t owner to nobody_knows", "42704"),
        ("create role pg_mine", "42939"),
    ],
)
def test_what_cannot_be_granted_has_the_sqlstate_of_postgres(
    statement: str, sqlstate: str, there: psycopg.Connection[Any]
) -> None:
    with belvedere.connect(":memory:", autocommit=True) as here:
        for one in split(SETUP + "; grant select on shop.t to ann"):
            here.execute(one)
        there.execute("grant select on shop.t to ann")
        assert run_script(here.execute, statement) == [sqlstate]
        assert run_script(there.execute, statement) in ([sqlstate], ["42601"])


def test_rights_survive_a_rewrite_of_the_table_and_of_the_view() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("create role ann")
        con.execute("create table t (id integer primary key, a integer)")
        con.execute("create materialized view m as select a, count(*) as n from t group by a")
        con.execute("grant select (a) on t to ann")
        con.execute("grant select on m to ann")
        con.execute("create table u (id integer primary key, a integer)")
        con.execute("grant select (a) on u to ann")
        con.execute("alter table u alter column a type bigint")
        con.execute("create or replace materialized view m as select a, sum(id) from t group by a")
        con.execute("set role ann")
        assert con.execute("select a from t").fetchall() == []
        assert con.execute("select * from m").fetchall() == []
        assert con.execute("select a from u").fetchall() == []
        with pytest.raises(belvedere.ProgrammingError, match="permission denied"):
            con.execute("select id from u")


def test_rights_survive_reopening(tmp_path: Any) -> None:
    path = str(tmp_path / "s")
    with belvedere.connect(path, autocommit=True) as con:
        con.execute("create role ann")
        con.execute("create table t (id integer primary key)")
        con.execute("grant select on t to ann")
        con.execute("set role ann")
        con.execute("reset role")
    with belvedere.connect(path, autocommit=True) as con:
        assert con.execute("select relacl from pg_class where relname = 't'").fetchone() == (
            ["belvedere=arwdDxtm/belvedere", "ann=r/belvedere"],
        )


def test_a_rollback_takes_back_the_role_whatever_the_order() -> None:
    """Role state does not depend on the order in which settings are restored."""
    with belvedere.connect(":memory:", autocommit=True) as con:
        for one in ("create role ann", "create role bob", "grant bob to ann"):
            con.execute(one)
        question = "select current_user, session_user, current_setting('is_superuser')"
        for script in (
            ("set role ann", "set session authorization bob"),
            ("set session authorization ann", "set role bob"),
            ("set local role bob", "set local session authorization ann"),
        ):
            con.execute("begin")
            for one in script:
                con.execute(one)
            assert con.execute(question).fetchone() != ("belvedere", "belvedere", "on")
            con.execute("rollback")
            assert con.execute(question).fetchone() == ("belvedere", "belvedere", "on")


def test_a_savepoint_and_a_grant_in_a_transaction() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("create role ann")
        con.execute("create table t (id integer primary key)")
        con.execute("begin")
        con.execute("grant select on t to ann")
        con.execute("set local role ann")
        assert con.execute("select * from t").fetchall() == []
        con.execute("rollback")
        con.execute("set role ann")
        with pytest.raises(belvedere.ProgrammingError, match="permission denied"):
            con.execute("select * from t")
