"""Rows of tables as cells: one a column, NULL is none, only what changed is written."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from belvedere.catalog.definitions import ColumnDefinition
from belvedere.database import Database
from belvedere.errors import Corruption, InvalidInput
from belvedere.kv.cell import CELL_BYTES_MAX, Get, Mutate, Put
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.txn.row_atomic.cells import data_cells
from belvedere.txn.row_atomic.cells.table_cells import STORED_NULL, TableCells
from belvedere.txn.transaction import table_rows
from belvedere.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    Interval,
    SqlType,
    numeric_type,
)
from belvedere.types import UUID as UUID_TYPE
from tests.txn.row_atomic.nodes import open_node
from tests.txn.shop import column, get, insert, scan, table, table_of, update

UTC = datetime.UTC
VALUES: list[tuple[SqlType, list[Any]]] = [
    (BOOLEAN, [True, False]),
    (SMALLINT, [0, 1, -1, 32767]),
    (INTEGER, [0, -(2**31), 256]),
    (BIGINT, [0, 2**63 - 1, -(2**63)]),
    (REAL, [0.0, -1.5]),
    (DOUBLE, [0.0, -0.0, 1e300, float("inf")]),
    (TEXT, ["", "\x00", "\x00\x00\x00", "\x00\x01x", "plain", "\u20ac"]),
    (BYTEA, [b"", b"\x00", b"\x00\x00\x00", b"\x00\x01", b"\xff"]),
    (DATE, [datetime.date(1970, 1, 1), datetime.date(1, 1, 1)]),
    (TIME, [datetime.time(0, 0), datetime.time(23, 59, 59, 999999)]),
    (TIMESTAMP, [datetime.datetime(1970, 1, 1), datetime.datetime(2026, 1, 2, 3, 4, 5)]),
    (TIMESTAMPTZ, [datetime.datetime(1970, 1, 1, tzinfo=UTC)]),
    (numeric_type(10, 2), [Decimal("0.00"), Decimal("-12.34"), Decimal("NaN")]),
    (numeric_type(30, 5), [Decimal("0.00000"), Decimal("1234567890123456789012345.67890")]),
    (NUMERIC, [Decimal("0"), Decimal("1.500"), Decimal("Infinity")]),
    (INTERVAL, [Interval(0, 0, 0), Interval(1, -2, 3)]),
    (UUID_TYPE, [UUID(int=0), UUID(int=2**127)]),
]


def cells_of_table(columns: list[ColumnDefinition]) -> tuple[TableCells, Any]:
    node = open_node()
    node.change_schema(lambda edit: edit.create_table(table_of("t", column("id"), *columns)))
    compiled = table(node, "t")
    return TableCells(compiled), compiled


@pytest.mark.parametrize(("type_", "values"), VALUES, ids=lambda each: str(each)[:20])
def test_every_value_comes_back_and_is_never_taken_for_null(
    type_: SqlType, values: list[Any]
) -> None:
    made, compiled = cells_of_table([column("v", type_)])
    for value in (*values, None):
        row = compiled.encode((7, value))
        found = {c: cell for c, cell in made.encode_cells(row).items() if cell is not None}
        assert (b"c1" in found) == (value is not None)
        assert all(cell not in (b"", data_cells.NULL_CELL, STORED_NULL) for cell in found.values())
        assert made.decode_row(b"", found) == row


def stored_cells(store: MemoryCells, node: Database, *key: int) -> dict[bytes, tuple[int, bytes]]:
    found = store.get(Get(table(node, "t").key.encode(key)))
    return {cell.column: (cell.timestamp, cell.value) for cell in found}


def opened(*more: ColumnDefinition) -> tuple[MemoryCells, Database]:
    store = MemoryCells()
    node = open_node(store)
    node.change_schema(lambda edit: edit.create_table(table_of("t", column("id"), *more)))
    return store, node


def test_an_update_writes_only_the_cells_that_changed() -> None:
    store, node = opened(column("a", TEXT), column("b", TEXT), column("c", TEXT))
    first = node.run_and_get_commit(lambda txn: insert(txn, "t", (1, "x", "y", None)))[1].position
    assert set(stored_cells(store, node, 1)) == {data_cells.MARKER, b"c0", b"c1", b"c2"}
    then = node.run_and_get_commit(lambda txn: update(txn, "t", (1, "x", None, "z")))[1].position
    found = stored_cells(store, node, 1)
    assert found[b"c1"] == (first, b"x"), "not written again"
    assert found[b"c2"] == (then, data_cells.NULL_CELL)
    assert found[b"c3"] == (then, b"z")
    with node.begin() as reader:
        assert get(reader, "t", 1) == (1, "x", None, "z")
    with node.open_past_reader(first) as past:
        assert scan(past, "t") == [(1, "x", "y", None)]


def test_a_row_that_comes_again_has_nothing_of_its_earlier_life() -> None:
    _, node = opened(column("a", TEXT))
    node.run_transaction(lambda txn: insert(txn, "t", (1, "old")))
    node.run_transaction(lambda txn: table_rows.delete_row(txn, table(txn, "t"), (1, "old")))
    node.run_transaction(lambda txn: insert(txn, "t", (1, None)))
    with node.begin() as reader:
        assert scan(reader, "t") == [(1, None)]


def test_a_column_that_comes_later_has_its_default_where_there_is_no_cell() -> None:
    store, node = opened(column("a", TEXT))
    node.run_transaction(lambda txn: insert(txn, "t", (1, "a"), (2, "b")))
    id_ = table(node, "t").table.id
    node.change_schema(lambda edit: edit.add_column(id_, column("n", BIGINT, missing=5)))
    node.run_transaction(lambda txn: update(txn, "t", (2, "b", None)))
    node.run_transaction(lambda txn: insert(txn, "t", (3, "c", 7)))
    with node.begin() as reader:
        assert scan(reader, "t") == [(1, "a", 5), (2, "b", None), (3, "c", 7)]
    assert b"c2" not in stored_cells(store, node, 1)
    assert stored_cells(store, node, 2)[b"c2"][1] == STORED_NULL


def test_a_cell_that_somebody_altered_is_named_and_left_alone() -> None:
    store, node = opened(column("n", BIGINT))
    node.run_transaction(lambda txn: insert(txn, "t", (1, 2)))
    key = table(node, "t").key.encode((1,))
    at = node.position
    store.mutate(Mutate(key, (Put(b"c1", at, b"oops"),)))
    before = store.copy_rows()[key]
    with pytest.raises(Corruption) as caught, node.begin() as reader:
        get(reader, "t", 1)
    assert caught.value.facts["row"] == key.hex()
    assert store.copy_rows()[key] == before


def test_a_value_too_large_for_a_cell_is_refused_before_anything_is_written() -> None:
    store, node = opened(column("a", TEXT))
    before = dict(store.copy_rows())
    large = "x" * (CELL_BYTES_MAX + 1)
    with pytest.raises(InvalidInput) as caught:
        node.run_transaction(lambda txn: insert(txn, "t", (1, large)))
    assert caught.value.sqlstate == "54000"
    assert {r for r in store.copy_rows() if r[:1] == b"\x10"} == {
        r for r in before if r[:1] == b"\x10"
    }
    node.run_transaction(lambda txn: insert(txn, "t", (1, large[:-1])))
    with node.begin() as reader:
        assert get(reader, "t", 1) == (1, large[:-1])
