"""The tables that sessions work on, and their rows by key and by index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from belvedere.catalog.definitions import (
    ColumnDefinition,
    ForeignKeyDefinition,
    IndexDefinition,
    KeyPartDefinition,
    TableDefinition,
    UniqueDefinition,
)
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import Index, Table
from belvedere.catalog.relation_codecs import CompiledTable, compiled_index, compiled_table
from belvedere.database import Database
from belvedere.errors import InvalidInput
from belvedere.txn.contracts import Reader
from belvedere.txn.transaction import table_rows
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import BIGINT, TEXT, Row

LISTS = range(6)
ACCOUNTS = range(5)
BALANCE = 100
TOTAL = BALANCE * len(ACCOUNTS)
COUNTERS = range(2)
OWNERS = range(4)
SHIFTS = range(2)
STAFF_PER_SHIFT = 3


def _table(name: str, *columns: str, **more: Any) -> TableDefinition:
    """A table with the key `id`; columns are numbers, 'name text' is a text, 'name!' not NULL."""
    made = [ColumnDefinition("id", BIGINT)]
    for text in columns:
        bare, _, kind = text.partition(" ")
        made.append(
            ColumnDefinition(
                bare.rstrip("!"), TEXT if kind else BIGINT, not_null=bare.endswith("!")
            )
        )
    return TableDefinition(name, tuple(made), ("id",), **more)


def _to(column: str, parent: str) -> ForeignKeyDefinition:
    return ForeignKeyDefinition((column,), parent)


TABLES = (
    _table("list", "alias text", "elements text"),
    _table("account", "branch", "balance"),
    _table("counter", "value"),
    _table("owner", "code text", uniques=(UniqueDefinition(("code",)),)),
    _table("item", "owner!", foreign_keys=(_to("owner", "owner"),)),
    _table("parent"),
    _table(
        "child", "owner!", "parent", foreign_keys=(_to("owner", "owner"), _to("parent", "parent"))
    ),
    _table("staff", "shift", "on_call"),
)
INDEXES = (
    IndexDefinition(
        "list", (KeyPartDefinition("alias"),), "by_alias", "public", ("elements",), True
    ),
    IndexDefinition("account", (KeyPartDefinition("branch"),), "by_branch", "public", ("balance",)),
)


def prepare(database: Database) -> None:
    """Tables, and the rows that are there from the beginning."""

    def create(edit: CatalogEdit) -> None:
        for definition in TABLES:
            edit.create_table(definition)
        for index in INDEXES:
            edit.create_index(index)

    def fill(txn: Transaction) -> None:
        for id_ in ACCOUNTS:
            insert_row(txn, "account", (id_, id_ % 2, BALANCE))
        for id_ in COUNTERS:
            insert_row(txn, "counter", (id_, 0))
        for id_ in OWNERS:
            insert_row(txn, "owner", (id_, None))
        for id_ in range(len(SHIFTS) * STAFF_PER_SHIFT):
            insert_row(txn, "staff", (id_, id_ % len(SHIFTS), 1))

    database.change_schema(create)
    database.run_transaction(fill)


# -- rows -------------------------------------------------------------------------------------


def _compiled(reader: Reader, name: str) -> CompiledTable:
    return compiled_table(reader.catalog, reader.catalog.require_relation(Table, name).id)


def insert_row(txn: Transaction, name: str, row: Row) -> None:
    table_rows.insert_row(txn, _compiled(txn, name), row)


def get_row(reader: Reader, name: str, id_: int) -> Row | None:
    table = _compiled(reader, name)
    value = reader.get(table.key.encode_first(id_))
    return None if value is None else table.decode(value)


def put_row(txn: Transaction, name: str, row: Row) -> None:
    old = get_row(txn, name, row[0])
    if old is None:
        insert_row(txn, name, row)
    else:
        table_rows.update_row(txn, _compiled(txn, name), old, row)


def delete_row(txn: Transaction, name: str, id_: int) -> None:
    old = get_row(txn, name, id_)
    if old is None:
        raise InvalidInput("no such row")
    table_rows.delete_row(txn, _compiled(txn, name), old)


def scan_table(reader: Reader, name: str, **how: Any) -> list[Row]:
    table = _compiled(reader, name)
    batches = reader.scan(table.start, table.end, batch_rows=3, **how)
    return [table.decode(value) for batch in batches for _, value in batch]


def scan_index(reader: Reader, name: str) -> list[Row]:
    index = compiled_index(reader.catalog, reader.catalog.require_relation(Index, name).id)
    batches = reader.scan(index.start, index.end, batch_rows=3)
    return [index.layout.decode(value) for batch in batches for _, value in batch]


def _elements(text: str | None) -> list[int]:
    return [int(part) for part in (text or "").split(",") if part]


def alias_of(id_: int) -> str:
    return f"list {id_}"


def read_list(reader: Reader, id_: int, by_index: bool = False) -> list[int]:
    if not by_index:
        row = get_row(reader, "list", id_)
        return [] if row is None else _elements(row[2])
    index = compiled_index(reader.catalog, reader.catalog.require_relation(Index, "by_alias").id)
    entry = reader.get(index.unique_key.encode((alias_of(id_),)))
    return [] if entry is None else _elements(index.layout.decode(entry)[2])


def append_to_list(txn: Transaction, id_: int, element: int) -> list[int]:
    """Returns the elements that were there before."""
    seen = read_list(txn, id_)
    put_row(txn, "list", (id_, alias_of(id_), ",".join(map(str, [*seen, element]))))
    return seen


def swap_list(
    database: Database, id_: int, element: int, asked: Callable[[list[int]], None]
) -> int | None:
    """The same in one step; `asked` gets the elements from before. None: the list is not there."""
    table = database.get_compiled_table("list")

    def change(stored: bytes) -> bytes:
        _, alias, text = table.decode(stored)
        asked(_elements(text))
        return table.encode((id_, alias, ",".join(map(str, [*_elements(text), element]))))

    assert database.single_row_commits is not None
    return database.single_row_commits.replace_row(
        table.key.encode_first(id_), database.catalog, change
    )


def scan_lists(reader: Reader, by_index: bool = False, **how: Any) -> dict[int, list[int]]:
    if by_index:
        return {id_: _elements(text) for _, id_, text in scan_index(reader, "by_alias")}
    return {id_: _elements(text) for id_, _, text in scan_table(reader, "list", **how)}
