"""Writes `statements.jsonl`: what clients ask the server about its catalog.

python -m tests.interfaces.server.captured

A server with the schema of `postgres_peer` notes every statement that clients send, with its
parameters. OIDs of that server become the names of what they number, in braces, so that the same
question can be asked elsewhere.
"""

from __future__ import annotations

import getpass
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
import sqlalchemy as sa
from psycopg.types import TypeInfo

from belvedere.config import Durability
from belvedere.interfaces.server import client as client_module
from belvedere.interfaces.server.client import Client
from belvedere.interfaces.server.listener import Endpoints, Listener
from belvedere.interfaces.stores import OpenOptions, acquire_store, release_store
from tests.interfaces.server.captured.statements import FILE, OidNames, hide_oids
from tests.interfaces.server.conftest import PORT
from tests.interfaces.server.postgres_peer import create_schema, run_psql_here
from tests.interfaces.server.test_psql import HERE, SAME

Note = Callable[[str, list[str | None]], None]


def main() -> None:
    with tempfile.TemporaryDirectory() as name, serve_schema(Path(name)) as directory:
        names = OidNames(connect(directory))
        lines: dict[str, str] = {}
        for source, run in list_clients(directory):
            for text, values in list_statements(run):
                question = hide_oids(text, names), [v and hide_oids(v, names) for v in values]
                key = json.dumps(question)
                lines.setdefault(
                    key, json.dumps({"client": source, "text": question[0], "values": question[1]})
                )
    FILE.write_text("".join(f"{line}\n" for line in lines.values()))
    print(len(lines), "statements")


@contextmanager
def serve_schema(directory: Path) -> Iterator[Path]:
    options = OpenOptions(durability=Durability.OFF, allow_remote=False)
    store = acquire_store(str(directory / "shop.db"), options)
    listener = Listener(store.shared, "shop", Endpoints(directory, PORT))
    try:
        create_schema(connect(directory).execute)
        yield directory
    finally:
        listener.close()
        release_store(store)


def connect(directory: Path) -> psycopg.Connection[Any]:
    user = getpass.getuser()
    return psycopg.connect(
        host=str(directory), port=PORT, dbname="shop", user=user, autocommit=True
    )


def list_statements(run: Callable[[], object]) -> list[tuple[str, list[str | None]]]:
    """The statements that a client sends."""
    found: list[tuple[str, list[str | None]]] = []
    simple, bound = client_module.run_simple_query, client_module.read_portal

    def note_simple(session: Any, text: str) -> Any:
        found.append((text, []))
        return simple(session, text)

    def note_bound(body: Any, statement: Any) -> Any:
        portal = bound(body, statement)
        if statement is not None:
            values = [None if one is None else str(one) for one in portal.values]
            found.append((statement.text, values))
        return portal

    with (
        patch.object(client_module, "run_simple_query", note_simple),
        patch.object(client_module, "read_portal", note_bound),
        patch.object(Client, "_answer_round", lambda self: False),
    ):
        run()
    return [one for one in found if "pg_" in one[0] or "information_schema" in one[0]]


def list_clients(directory: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    for command in [*SAME, *HERE]:
        yield f"psql {command}", lambda command=command: run_psql_here(directory, command)
    url = f"postgresql+psycopg://{getpass.getuser()}@/shop?host={directory}&port={PORT}"
    yield "sqlalchemy", lambda: reflect_schema(url)
    yield "psycopg", lambda: TypeInfo.fetch(connect(directory), "numeric")
    yield "pgcli", lambda: complete_names(directory)


def reflect_schema(url: str) -> None:
    engine = sa.create_engine(url)
    for schema in (None, "other"):
        sa.MetaData().reflect(engine, views=True, schema=schema)
    inspector = sa.inspect(engine)
    for method in ("get_schema_names", "get_view_names", "get_materialized_view_names"):
        getattr(inspector, method)()
    inspector.get_sequence_names()
    inspector.get_view_definition("recent")
    for table in ("orders", "customers", "plain", "numbered", "Odd Name"):
        for method in ("get_columns", "get_pk_constraint", "get_foreign_keys", "get_indexes"):
            getattr(inspector, method)(table)
        for method in ("get_unique_constraints", "get_check_constraints", "get_table_comment"):
            getattr(inspector, method)(table)
        inspector.has_table(table)
        inspector.has_index(table, "orders_by_total")
    engine.dispose()


def complete_names(directory: Path) -> None:
    from pgcli.completion_refresher import CompletionRefresher
    from pgcli.pgcompleter import PGCompleter
    from pgcli.pgexecute import PGExecute

    executor = PGExecute(
        "shop", getpass.getuser(), "", str(directory), str(PORT), application_name="pgcli"
    )
    completer = PGCompleter(smart_completion=True)
    for refresh in CompletionRefresher.refreshers.values():
        refresh(completer, executor)


if __name__ == "__main__":
    main()
