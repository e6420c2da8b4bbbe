"""The table and column that a RowDescription names for each column are those PostgreSQL names."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.interfaces.server.conftest import Connect
from tests.oracle.postgres import Postgres

TABLES = """
create table t (gone int, a int primary key, b text);
alter table t drop column gone;
create table u (a int, c int);
insert into t values (1, 'x');
create view v as select b as bb, a + 1 as computed from t;
create materialized view m as select a, count(*) as n from u group by a;
"""
QUERIES = """
select * from t
select b, a + 1, a as other, 'x' from t where a = 1
select t.b, u.c, u.a from t join u on t.a = u.a
select t.b, u.c from t left join u on t.a = u.a order by u.c limit 3
select a, count(*) from u group by a having count(*) >= 0
select distinct c from u
select s.x, s.y from (select a as x, c + 0 as y from u) s
with s as (select b from t) select * from s
with s as materialized (select b from t) select b from s
select a from t union all select a from u
select bb, computed from v
select v.computed, t.b from t, v
select x.bb from (select * from v) x
select a, n from m
select a, row_number() over (order by a) from t
select (select b from t limit 1), a from t
select a from t where exists (select from u where u.a = t.a)
select t from generate_series(1, 2) t
insert into t values (2, 'y') returning b, a, a + 1
insert into t values (2, 'z') on conflict (a) do update set b = 'z' returning *
update t set b = 'q' where a = 2 returning b, a
update t set b = 'q' from u where t.a = u.a returning t.b, u.c
delete from t where a = 2 returning a, b
select a from t for update
values (1)
"""


@pytest.fixture
def peers(connect: Connect, postgres: Postgres) -> list[psycopg.Connection[Any]]:
    connections = [connect(), postgres.connection]
    for name in ("view v", "materialized view m", "table t", "table u"):
        connections[1].execute(f"drop {name.rpartition(' ')[0]} if exists {name.split()[-1]}")
    for connection in connections:
        for statement in TABLES.strip().splitlines():
            connection.execute(statement)
    return connections


def describe_columns(
    connection: psycopg.Connection[Any], query: str, prepare: bool
) -> list[tuple[str, str, int]]:
    """Name, table and number of each column of the result."""
    cursor = connection.cursor()
    if prepare:
        cursor.execute(query, prepare=True)
    else:
        cursor = psycopg.ClientCursor(connection)
        cursor.execute(query)
    found = cursor.pgresult
    assert found is not None
    columns = [
        ((found.fname(i) or b"").decode(), found.ftable(i), found.ftablecol(i))
        for i in range(found.nfields)
    ]
    names = connection.execute("select oid::int, relname from pg_class").fetchall()
    by_oid = {0: "", **dict(names)}
    return [(name, by_oid[table], number) for name, table, number in columns]


@pytest.mark.parametrize("prepare", [False, True])
def test_columns_are_traced_to_tables_as_by_postgres(
    peers: list[psycopg.Connection[Any]], prepare: bool
) -> None:
    here, there = peers
    wrong = [
        f"{query}\n  PostgreSQL: {expected}\n  here:       {found}"
        for query in QUERIES.strip().splitlines()
        if (expected := describe_columns(there, query, prepare))
        != (found := describe_columns(here, query, prepare))
    ]
    assert not wrong, "\n".join(wrong)


def test_a_cursor_knows_the_columns_of_its_query(peers: list[psycopg.Connection[Any]]) -> None:
    found = []
    for connection in peers:
        connection.execute("begin")
        connection.execute("declare one cursor for select b, a + 1 from t")
        found.append(describe_columns(connection, "fetch 1 from one", prepare=False))
        connection.execute("rollback")
    assert found[0] == found[1] == [("b", "t", 3), ("?column?", "", 0)]


def test_equal_results_of_two_tables_are_told_apart(connect: Connect) -> None:
    """A description is kept for all clients."""
    con = connect()
    con.execute("create table p (a int)")
    con.execute("create table q (a int)")
    found = [describe_columns(con, f"select a from {name}", prepare=False) for name in "pq"]
    assert found == [[("a", "p", 1)], [("a", "q", 1)]]
