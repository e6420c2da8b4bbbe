"""The re-key operator: index entries of changes, by parts, condition, cover and order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from belvedere.catalog.definitions import (
    ColumnDefinition,
    IndexDefinition,
    KeyPartDefinition,
    TableDefinition,
)
from belvedere.catalog.model import Index, Table
from belvedere.catalog.relation_codecs import compiled_index, compiled_table
from belvedere.config import Config
from belvedere.database import Database
from belvedere.errors import InvalidInput, Unsupported
from belvedere.kv.memory import MemoryStore
from belvedere.txn.batch_atomic.recovery import open_memory
from belvedere.txn.contracts import LockRequest, RowChange
from belvedere.txn.history.derived_rows import DerivedRows
from belvedere.txn.transaction import table_rows
from belvedere.types import BIGINT, TEXT, Row
from belvedere.views.indexes.entries import IndexParticipant, refuse_index_expression

EXPRESSIONS: dict[str, Callable[[Row], Any]] = {
    "upper(name)": lambda row: None if row[1] is None else row[1].upper(),
    "n > 0": lambda row: None if row[2] is None else row[2] > 0,
}


def compile_expression(catalog: object, table: Table, text: str) -> Callable[[Row], Any]:
    return EXPRESSIONS[text]


@pytest.fixture
def database() -> Iterator[Database]:
    opened = open_memory(MemoryStore(), bytes)
    with Database(opened, Config(), compile_expression=compile_expression) as made:
        columns = (
            ColumnDefinition("id", BIGINT),
            ColumnDefinition("name", TEXT),
            ColumnDefinition("n", BIGINT),
        )
        made.change_schema(lambda e: e.create_table(TableDefinition("t", columns, ("id",))))
        yield made


def create(database: Database, *parts: KeyPartDefinition, **more: Any) -> None:
    wanted = IndexDefinition("t", parts, name="i", **more)
    database.change_schema(lambda edit: edit.create_index(wanted))


def put(database: Database, *new: Row) -> None:
    into = database.get_compiled_table("t")
    database.run_transaction(lambda txn: [table_rows.insert_row(txn, into, row) for row in new])


def entries(database: Database) -> list[Row]:
    with database.begin() as reader:
        index = compiled_index(reader.catalog, reader.catalog.require_relation(Index, "i").id)
        batches = reader.scan(index.start, index.end)
        return [index.layout.decode(value) for batch in batches for _, value in batch]


def participant(database: Database) -> IndexParticipant:
    return IndexParticipant(
        database.catalog, database.catalog.require_relation(Index, "i"), compile_expression
    )


def written(database: Database, old: Row | None, new: Row | None) -> list[tuple[bool, Row | None]]:
    """What one change writes: (is it a put, the row)."""
    table = database.get_compiled_table("t")
    index = compiled_index(database.catalog, database.catalog.require_relation(Index, "i").id)
    change = RowChange(
        table.key_of(old or new or ()), old and table.encode(old), new and table.encode(new)
    )
    with database.begin() as reader:
        writer = DerivedRows(reader)
        participant(database).writes([change], reader, writer)
    return [
        (value is not None, value and index.layout.decode(value)) for _, value in writer.writes()
    ]


def test_entries_sort_by_their_parts_then_the_key(database: Database) -> None:
    create(database, KeyPartDefinition("name", descending=True), KeyPartDefinition("n"))
    put(database, (1, "a", 2), (2, "b", 1), (3, "a", None), (4, None, 1), (5, "a", 2))
    assert entries(database) == [
        (None, 1, 4),
        ("b", 1, 2),
        ("a", 2, 1),
        ("a", 2, 5),
        ("a", None, 3),
    ]


def test_a_covering_index_holds_what_it_includes(database: Database) -> None:
    create(database, KeyPartDefinition("name"), include=("n",))
    put(database, (1, "a", 7))
    assert entries(database) == [("a", 1, 7)]
    assert written(database, (1, "a", 7), (1, "a", 8)) == [(True, ("a", 1, 8))]


def test_a_change_of_other_columns_costs_nothing(database: Database) -> None:
    create(database, KeyPartDefinition("name"))
    assert written(database, (1, "a", 7), (1, "a", 8)) == []
    assert written(database, (1, "a", 7), (1, "b", 7)) == [(False, None), (True, ("b", 1))]
    assert written(database, None, (1, "b", 7)) == [(True, ("b", 1))]
    assert written(database, (1, "b", 7), None) == [(False, None)]


def test_a_condition_keeps_rows_out_until_it_is_true(database: Database) -> None:
    create(database, KeyPartDefinition("name"), where="n > 0")
    put(database, (1, "a", 1), (2, "b", 0), (3, "c", None))
    assert entries(database) == [("a", 1)]
    assert written(database, (2, "b", 0), (2, "b", 5)) == [(True, ("b", 2))]
    assert written(database, (1, "a", 1), (1, "a", None)) == [(False, None)]


def test_an_expression_is_a_part_like_any_other(database: Database) -> None:
    part = KeyPartDefinition(expression="upper(name)", type=TEXT)
    create(database, part, unique=True)
    put(database, (1, "a", 1), (2, None, 1), (3, None, 2))
    assert entries(database) == [("A", 1), (None, 2), (None, 3)]
    with pytest.raises(InvalidInput) as taken:
        put(database, (4, "A", 1))
    assert taken.value.detail == "key (upper(name)) = (A) already exists"


def test_a_unique_partial_index_only_looks_at_its_rows(database: Database) -> None:
    create(database, KeyPartDefinition("name"), unique=True, where="n > 0")
    put(database, (1, "a", 0), (2, "a", 1), (3, "a", -1))
    with pytest.raises(InvalidInput):
        put(database, (4, "a", 9))
    assert entries(database) == [("a", 2)]


def test_claims_are_asked_for_unique_values_alone(database: Database) -> None:
    create(database, KeyPartDefinition("name"), unique=True)
    table = compiled_table(database.catalog, database.catalog.require_relation(Table, "t").id)
    index = compiled_index(database.catalog, database.catalog.require_relation(Index, "i").id)
    old, new = (1, "a", 1), (1, "b", 1)
    change = RowChange(table.key_of(old), table.encode(old), table.encode(new))
    with database.begin() as reader:
        claims = list(participant(database).locks([change], reader))
    assert claims == [LockRequest("claim", index.unique_key.encode((name,))) for name in ("a", "b")]


def test_without_the_sql_part_an_expression_is_refused(database: Database) -> None:
    with pytest.raises(Unsupported):
        refuse_index_expression(
            database.catalog, database.get_compiled_table("t").table, "upper(name)"
        )
