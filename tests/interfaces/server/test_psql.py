"""psql's \\d family prints what it prints on a real PostgreSQL with the same schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.server.conftest import Connect
from tests.interfaces.server.postgres_peer import (
    create_database,
    create_schema,
    remove_known_differences,
    run_psql_here,
    run_psql_there,
)
from tests.oracle.postgres import Postgres

SAME = r"""
\d
\dt
\dt+
\dt other.*
\dti
\d customers
\d+ customers
\d orders
\d+ orders
\d plain
\d+ plain
\d numbered
\d "Odd Name"
\d other.things
\d recent
\d+ recent
\d sums
\d+ sums
\d counts
\d orders_id_seq
\d numbered_id_seq
\d orders_by_total
\d customers_by_length
\d sevens
\d nothing_like_it
\di
\di+
\dv
\dm
\ds
\dn
\dp
\dT
\dD
\da
\dE
\df
\df abs
\do
\dd
\dy
\dc
\dl
\dO
\dP
\dX
\ddp
\det
\drg
\dconfig search_path
\dconfig+ search_path
\encoding
""".strip().splitlines()

HERE = {
    r"\du": "List of roles\nRole name|Attributes\nbelvedere|Superuser, Create role, Bypass RLS\n",
    r"\l": (
        "List of databases\n"
        "Name|Owner|Encoding|Locale Provider|Collate|Ctype|Locale|ICU Rules|Access privileges\n"
        "shop|belvedere|UTF8|libc|C|C|||\n(1 row)\n"
    ),
    r"\dA": "List of access methods\nName|Type\nbtree|Index\nheap|Table\n(2 rows)\n",
    r"\db": "List of tablespaces\nName|Owner|Location\npg_default|belvedere|\n(1 row)\n",
    r"\dx": (
        "List of installed extensions\nName|Version|Default version|Schema|Description\n(0 rows)\n"
    ),
    r"\dL": "List of languages\nName|Owner|Trusted|Description\n(0 rows)\n",
    r"\sv recent": (
        "CREATE OR REPLACE VIEW public.recent AS\n"
        " select id, customer, total from orders where items > 10\n"
    ),
}
"""Commands about the server itself, whose answers differ."""


@pytest.fixture(scope="module")
def schema_there(postgres: Postgres) -> str:
    return create_database(postgres)


@pytest.fixture
def schema_here(server: Path, connect: Connect) -> Path:
    create_schema(connect().execute)
    return server


def test_commands_print_what_they_print_on_postgres(schema_there: str, schema_here: Path) -> None:
    wrong = []
    for command in SAME:
        expected = remove_known_differences(run_psql_there(schema_there, command))
        found = remove_known_differences(run_psql_here(schema_here, command))
        if found != expected:
            wrong.append(f"{command}\n-- PostgreSQL:\n{expected}\n-- here:\n{found}")
    assert not wrong, "\n".join(wrong)


def test_commands_about_the_server(schema_here: Path) -> None:
    assert {command: run_psql_here(schema_here, command) for command in HERE} == HERE


def test_definition_of_a_view_is_its_text(schema_here: Path) -> None:
    printed = run_psql_here(schema_here, r"\d+ sums")
    text = "select customer, sum(total) as total, count(*) as n from orders group by customer;"
    assert f"View definition:\n {text}\n" in printed


def test_roles_are_listed(connect: Connect, server: Path) -> None:
    connect().execute("create role auditor login valid until '2030-01-01'")
    printed = run_psql_here(server, r"\du auditor")
    assert "auditor|Password valid until 2030-01-01 00:00:00+00" in printed


def test_missing_catalogs_are_refused_by_name(server: Path) -> None:
    assert "ERROR:  system catalog (name=pg_amproc)" in run_psql_here(server, r"\dAp")


COLUMNS = {r"\dC": (0, 1, 3), r"\daS": (0, 1, 2), r"\doS": (0, 1, 2, 3, 4)}
"""What is compared of operators, casts and aggregates: not descriptions, not a cast's function."""


@pytest.mark.parametrize("command", COLUMNS)
def test_what_the_registry_lists_is_listed_by_postgres(
    schema_there: str, server: Path, command: str
) -> None:
    def list_rows(text: str) -> set[tuple[str, ...]]:
        rows = [line.split("|") for line in text.splitlines()[2:] if "|" in line]
        return {tuple([row[i] for i in COLUMNS[command]]) for row in rows if len(row) > 3}

    found = list_rows(run_psql_here(server, command))
    assert found <= list_rows(run_psql_there(schema_there, command))
    assert len(found) > 20
