"""The same schema on the server and on a real PostgreSQL, and psql run on both."""

from __future__ import annotations

import getpass
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from tests.interfaces.server.conftest import PORT
from tests.oracle.postgres import Postgres, _program

SCHEMA = """
create table customers (id integer primary key, name varchar(40) not null, email text unique,
  born date, active boolean default true not null);
create table orders (id bigserial primary key,
  customer integer not null references customers (id) on delete cascade,
  placed timestamptz default now(), total numeric(10,2), note text default 'none', code char(3),
  items integer default -1 constraint some_items check (items <> 7), unique (customer, placed));
create table plain (a smallint, b double precision, c real, d bytea, e uuid, f json, g interval,
  h time, i timestamp(3));
create table numbered (id integer generated always as identity primary key, v integer,
  w integer generated always as (v * 2) stored);
create index orders_by_total on orders (total desc, id);
create index customers_by_length on customers (length(email));
create index sevens on orders (customer) include (code) where items = 7;
create unique index plain_a on plain (a);
create sequence counts start 100 increment 5;
create schema other;
create table other.things (k text primary key, n integer);
create table "Odd Name" ("select" integer primary key, "Two Words" text not null);
create view recent as select id, customer, total from orders where items > 10;
create materialized view sums as select customer, sum(total) as total, count(*) as n
  from orders group by customer;
alter table plain drop column b;
"""


def create_schema(execute: Callable[[str], object]) -> None:
    """Run the statements of SCHEMA one by one."""
    for statement in SCHEMA.split(";"):
        if statement.strip():
            execute(statement)


DATABASE = "clients"


def create_database(postgres: Postgres) -> str:
    """A database with SCHEMA and nothing else; how to connect to it."""
    postgres.connection.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
    postgres.connection.execute(f"CREATE DATABASE {DATABASE}")
    target = make_conninfo(postgres.uri, dbname=DATABASE)
    with psycopg.connect(target, autocommit=True) as connection:
        create_schema(connection.execute)
    return target


def run_psql_here(directory: Path, command: str) -> str:
    target = ["-h", str(directory), "-p", str(PORT), "-d", "shop", "-U", getpass.getuser()]
    return _run_psql(target, command)


def run_psql_there(target: str, command: str) -> str:
    return _run_psql(["-d", target], command)


def _run_psql(target: list[str], command: str) -> str:
    """What psql prints for a command, unaligned, so that widths of columns do not matter."""
    ran = subprocess.run(
        [str(_program("psql")), "-X", "-A", *target, "-c", command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ran.stdout + ran.stderr


def remove_known_differences(text: str) -> str:
    """What differs by design, made equal; docs/clients.md lists the differences."""
    text = re.sub(r"\bpostgres\b|\bpg_database_owner\b", "belvedere", text)
    # Sizes are those of entries, not of pages; sequences are cached.
    text = re.sub(r"\|\d+ (bytes|kB)\|", "|SIZE|", text)
    text = re.sub(r"(?m)^((?:integer|bigint)\|.*\|)\d+$", r"\1CACHE", text)
    # PostgreSQL 18 names the constraint of a NOT NULL; 16, which the server says it is, does not.
    text = re.sub(r'(?m)^Not-null constraints:\n(    ".*\n)+', "", text)
    # A view keeps the text that it was given.
    text = re.sub(r"(?s)View definition:\n.*?;\n", "View definition: ..\n", text)
    # The schema of Belvedere's own tables; privileges and comments that initdb makes.
    text = re.sub(r"(?m)^belvedere\|belvedere(\|\|)?\n", "", text)
    return re.sub(r"(?m)^\((\d+) rows?\)$", "", text)
