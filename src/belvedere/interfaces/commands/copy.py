"""The command `belvedere copy`: a database from one store to another, as of one position.

It goes by SQL: the script of `dump --sql`, statement by statement, then every table compared row by
row and every materialized view verified. So the two stores may be of different kinds: a directory
and HBase, either way.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Annotated

import typer

from belvedere.catalog.model import Table, View
from belvedere.catalog.relation_codecs import CompiledTable, compiled_table
from belvedere.codec import keyspace
from belvedere.database import Database, open_sql_database
from belvedere.errors import Corruption, Error, InvalidInput
from belvedere.interfaces.commands.dump_source import DumpSource, open_dump_source
from belvedere.interfaces.commands.dump_sql import dump_sql, list_user_views
from belvedere.kv.batch import BatchStore
from belvedere.session.session import Session
from belvedere.sql.parse.lexical.render import quote
from belvedere.txn.contracts import Reader
from belvedere.types import Row


def copy(
    source: Annotated[str, typer.Argument(help="a store's directory, or hbase://..")],
    destination: Annotated[str, typer.Argument(help="the same, of a database without tables")],
) -> None:
    try:
        with open_dump_source(source) as read:
            database, shared = open_sql_database(destination)
            with database:
                copy_database(read, database, Session(shared))
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from error


def copy_database(source: DumpSource, database: Database, session: Session) -> None:
    """Copy, print how far it is, and verify."""
    if database.catalog.tables or database.catalog.views:
        raise InvalidInput("the destination is not empty", sqlstate="42P07")
    for statement in join_statements(dump_sql(source)):
        session.execute(statement)
        if statement.startswith("CREATE"):
            print(statement.split("\n")[0].rstrip(" (;"), flush=True)
    rows = sum(_compare_table(source, database, table) for table in source.catalog.tables)
    views = [view for view in list_user_views(database.catalog) if view.index is None]
    for view in views:
        _verify_view(session, view)
    print(
        f"copied position {source.position}: {len(source.catalog.tables)} tables,"
        f" {rows} rows, {len(views)} views; compared and verified",
        flush=True,
    )


def join_statements(lines: Iterable[str]) -> Iterator[str]:
    """The statements of a script, the lines of which end where statements do."""
    parts: list[str] = []
    for line in lines:
        if parts or (line and not line.startswith("--")):
            parts.append(line)
        if parts and line.endswith(";"):
            yield "\n".join(parts).strip()
            parts = []


def _compare_table(source: DumpSource, database: Database, table: Table) -> int:
    """The number of rows, which are the same in both, in the order of their keys."""
    schema = next(one.name for one in source.catalog.schemas if one.id == table.schema)
    made = database.get_compiled_table(table.name, schema)
    count = 0
    with database.begin(at_least=database.position) as reader:
        old = _shown_rows(source.store, compiled_table(source.catalog, table.id))
        for before, after in zip_longest(old, _shown_rows(reader, made)):
            count += 1
            if before != after:
                raise Corruption("a row of the copy differs", table=table.name, row=count)
    return count


def _shown_rows(reader: BatchStore | Reader, table: CompiledTable) -> Iterator[Row]:
    """The rows of a table, without columns that nobody sees."""
    slots = [column.slot for column in table.live_columns if not column.hidden]
    for batch in reader.scan(*keyspace.relation_range(table.table.id)):
        for _, value in batch:
            row = table.decode(value)
            yield tuple(row[slot] for slot in slots)


def _verify_view(session: Session, view: View) -> None:
    schema = next(one.name for one in session.catalog.schemas if one.id == view.schema)
    name = f"{quote(schema)}.{quote(view.name)}"
    found = session.execute(f"VERIFY MATERIALIZED VIEW {name}").rows
    if not found or found[0][-1] is not True:
        raise Corruption("a view of the copy is not its query", view=view.name)
