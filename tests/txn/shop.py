"""A small schema, and short words for what tests do with it.

customer (id, email unique, city indexed)
orders   (id, customer -> customer, note)                 root: customer
line     (id, orders -> orders, product -> product)       root: customer, two steps up
product  (id, name)
staff    (id, boss -> staff)                              a foreign key to itself
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from belvedere.catalog.catalog import Catalog
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
from belvedere.catalog.relation_codecs import (
    CompiledIndex,
    CompiledTable,
    compiled_index,
    compiled_table,
)
from belvedere.database import Database
from belvedere.kv.batch import Pair
from belvedere.txn.batch_atomic.engine import BatchAtomicEngine
from belvedere.txn.contracts import CommitResult, Reader
from belvedere.txn.transaction import table_rows
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import BIGINT, TEXT, Row, SqlType


def column(name: str, type_: SqlType = BIGINT, **more: Any) -> ColumnDefinition:
    return ColumnDefinition(name, type_, **more)


def foreign_key(columns: str, parent: str, **more: Any) -> ForeignKeyDefinition:
    return ForeignKeyDefinition(tuple(columns.split()), parent, **more)


def table_of(
    name: str, *columns: ColumnDefinition, key: str = "id", **more: Any
) -> TableDefinition:
    return TableDefinition(name, columns, tuple(key.split()), **more)


CUSTOMER = table_of(
    "customer",
    column("id"),
    column("email", TEXT),
    column("city", TEXT),
    uniques=(UniqueDefinition(("email",)),),
)
ORDERS = table_of(
    "orders",
    column("id"),
    column("customer", not_null=True),
    column("note", TEXT),
    foreign_keys=(foreign_key("customer", "customer"),),
)
LINE = table_of(
    "line",
    column("id"),
    column("orders", not_null=True),
    column("product", not_null=True),
    foreign_keys=(foreign_key("orders", "orders"), foreign_key("product", "product")),
)
PRODUCT = table_of("product", column("id"), column("name", TEXT))
STAFF = table_of(
    "staff", column("id"), column("boss"), foreign_keys=(foreign_key("boss", "staff"),)
)


def create_shop(database: Database) -> None:
    def create(edit: CatalogEdit) -> None:
        edit.create_table(CUSTOMER)
        edit.create_index(IndexDefinition("customer", (KeyPartDefinition("city"),)))
        edit.create_table(PRODUCT)
        edit.create_table(ORDERS)
        edit.create_table(LINE)
        edit.create_table(STAFF)

    database.change_schema(create)


def table(reader: Database | Reader, name: str) -> CompiledTable:
    catalog: Catalog = reader.catalog
    return compiled_table(catalog, catalog.require_relation(Table, name).id)


def index(reader: Database | Reader, name: str) -> CompiledIndex:
    catalog: Catalog = reader.catalog
    return compiled_index(catalog, catalog.require_relation(Index, name).id)


def insert(txn: Transaction, name: str, *new: Row) -> None:
    for row in new:
        table_rows.insert_row(txn, table(txn, name), row)


def get(reader: Reader, name: str, *key: Any) -> Row | None:
    into = table(reader, name)
    value = reader.get(into.key.encode(key))
    return None if value is None else into.decode(value)


def update(txn: Transaction, name: str, new: Row) -> None:
    """Replace the row that has the new row's key."""
    into = table(txn, name)
    old = get(txn, name, *[new[slot] for slot in into.table.primary_key])
    assert old is not None
    table_rows.update_row(txn, into, old, new)


def move(txn: Transaction, name: str, key: Sequence[Any], new: Row) -> None:
    """Replace the row at `key` by one that may have another key."""
    old = get(txn, name, *key)
    assert old is not None
    table_rows.update_row(txn, table(txn, name), old, new)


def delete(txn: Transaction, name: str, *key: Any) -> None:
    old = get(txn, name, *key)
    assert old is not None
    table_rows.delete_row(txn, table(txn, name), old)


def scan(reader: Reader, name: str, **how: Any) -> list[Row]:
    into = table(reader, name)
    return [into.decode(value) for _, value in pairs(reader.scan(into.start, into.end, **how))]


def entries(reader: Reader, name: str, **how: Any) -> list[Row]:
    """What an index holds, in key order."""
    into = index(reader, name)
    batches = reader.scan(into.start, into.end, **how)
    return [into.layout.decode(value) for _, value in pairs(batches)]


def pairs(batches: Iterable[list[Pair]]) -> list[Pair]:
    found = []
    for batch in batches:
        assert batch, "an empty batch"
        found += batch
    return found


def put(database: Database, name: str, *new: Row) -> CommitResult:
    """Insert rows, in a transaction of their own."""
    return database.run_and_get_commit(lambda txn: insert(txn, name, *new))[1]


def key_space(database: Database) -> dict[bytes, bytes]:
    """Every row of every relation: base and derived."""
    with database.begin() as reader:
        return dict(pairs(reader.scan(b"\x10", b"\x11")))


def undo_entries(database: Database) -> int:
    """How many old rows are kept in memory for open snapshots: none on a store of versions."""
    engine = database.engine
    return len(engine.visibility.undo) if isinstance(engine, BatchAtomicEngine) else 0
