"""Scans that leave the work to the store: no row is missed, and what comes as columns is what comes
as rows."""

from __future__ import annotations

import datetime
import operator
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from belvedere.codec.arrow.rows_to_arrow import rows_to_arrow
from belvedere.database import Database
from belvedere.errors import Corruption
from belvedere.kv.cell import CellScan, Mutate, Put
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.txn.contracts import Reader
from belvedere.txn.row_atomic.cells import narrow_reader
from belvedere.txn.scan_request import (
    AllConditions,
    AnyCondition,
    NarrowReader,
    RowCondition,
    ScanRequest,
    SlotComparison,
    narrow_scans,
)
from belvedere.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    Interval,
    SqlType,
    numeric_type,
)
from belvedere.types import UUID as UUID_TYPE
from tests.kv.cells.packing import pack_rows
from tests.txn.row_atomic.cells.test_table_cells import VALUES
from tests.txn.row_atomic.nodes import open_node
from tests.txn.shop import column, delete, insert, table, table_of, update

OPERATORS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ORDERED: list[tuple[SqlType, list[Any]]] = [
    (BOOLEAN, [False, True]),
    (SMALLINT, [-(2**15), -300, -1, 0, 1, 255, 2**15 - 1]),
    (INTEGER, [-(2**31), -256, -1, 0, 1, 256, 2**31 - 1]),
    (BIGINT, [-(2**63), -(2**32), -1, 0, 1, 2**40, 2**63 - 1]),
    (REAL, [float("-inf"), -2.5, -1.0, -0.0, 0.0, 1.0, 2.5, float("inf")]),
    (DOUBLE, [float("-inf"), -1e300, -1.5, -0.0, 0.0, 5e-324, 1.5, 1e300, float("inf")]),
    (TEXT, ["", "\x00", "'", "a", "a'", "ab", "\u00e9", "\u20ac", "\U0001f600"]),
    (BYTEA, [b"", b"\x00", b"\x00\x01", b"\x01", b"\x80", b"\xff", b"\xff\x00"]),
    (DATE, [datetime.date(1, 1, 1), datetime.date(1970, 1, 1), datetime.date(2026, 5, 4)]),
    (
        TIMESTAMP,
        [
            datetime.datetime(1000, 1, 1),
            datetime.datetime(1970, 1, 1),
            datetime.datetime(2026, 1, 2),
        ],
    ),
    (UUID_TYPE, [UUID(int=0), UUID(int=255), UUID(int=2**127), UUID(int=2**128 - 1)]),
]
EXACT = (SMALLINT, INTEGER, BIGINT, TEXT, BYTEA, DATE, TIMESTAMP, UUID_TYPE, BOOLEAN)


class CountingCells(MemoryCells):
    """Remembers how many cells the last scan sent."""

    packs = False

    def scan(self, scan: CellScan) -> Any:
        found = super().scan(scan)
        self.sent = [(row, cell.column) for row, cells in found for cell in cells]
        return pack_rows(found) if scan.packed and self.packs else found


@pytest.fixture(params=["cells", "packed"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """In which the store sends rows that become columns."""
    monkeypatch.setattr(CountingCells, "packs", request.param == "packed")
    return str(request.param)


def open_with(*columns: Any) -> tuple[CountingCells, Database]:
    store = CountingCells()
    node = open_node(store)
    node.change_schema(lambda edit: edit.create_table(table_of("t", column("id"), *columns)))
    return store, node


def narrow(
    reader: Reader, slots: tuple[int, ...], condition: RowCondition | None = None
) -> NarrowReader:
    found = narrow_scans(reader, ScanRequest(table(reader, "t").table.id, slots, condition))
    assert found is not None
    return found


def ids(reader: Reader, condition: RowCondition, slots: tuple[int, ...] = (0,)) -> list[int]:
    into = table(reader, "t")
    narrowed = narrow(reader, slots, condition)
    return [
        into.decode(value)[0]
        for values in narrowed.scan_values(into.start, into.end)
        for value in values
    ]


@pytest.mark.parametrize(("type_", "values"), ORDERED, ids=lambda each: str(each)[:20])
def test_a_filter_misses_no_row_and_is_exact_where_bytes_are_in_order(
    type_: SqlType, values: list[Any]
) -> None:
    _, node = open_with(column("v", type_))
    rows = [(number, value) for number, value in enumerate([*values, None])]
    node.run_and_get_commit(lambda txn: insert(txn, "t", *rows))
    with node.begin() as reader:
        for name, compare in OPERATORS.items():
            for constant in values:
                wanted = [number for number, value in rows[:-1] if compare(value, constant)]
                found = ids(reader, SlotComparison(1, name, constant))
                assert set(wanted) <= set(found), (name, constant)
                if type_ in EXACT:
                    assert found == wanted, (name, constant)
        assert ids(reader, SlotComparison(1, "not null")) == [number for number, _ in rows[:-1]]


def test_nan_of_either_sign_is_above_every_number() -> None:
    store, node = open_with(column("v", DOUBLE))
    node.run_and_get_commit(lambda txn: insert(txn, "t", (1, 0.5), (2, float("nan"))))
    key = table(node, "t").key.encode((1,))
    stamp = store.scan(CellScan(key, None))[0][1][0].timestamp
    store.mutate(Mutate(key, (Put(b"c1", stamp, bytes.fromhex("fff8000000000000")),)))
    with node.begin() as reader:
        for constant in (-1e300, -1.5, 1.5, 1e300):
            assert ids(reader, SlotComparison(1, ">", constant)) == [1, 2]
            assert ids(reader, SlotComparison(1, ">=", constant)) == [1, 2]


def test_only_the_cells_and_rows_that_are_asked_for_are_sent() -> None:
    store, node = open_with(column("a", INTEGER), column("b", TEXT), column("c", TEXT))
    rows = [(number, number % 10, f"b{number}", "long " * 20) for number in range(50)]
    node.run_and_get_commit(lambda txn: insert(txn, "t", *rows))
    with node.begin() as reader:
        assert ids(reader, SlotComparison(1, "=", 3), (0, 2)) == [3, 13, 23, 33, 43]
        assert len({row for row, _ in store.sent}) == 5
        assert {column for _, column in store.sent} == {b"\x00", b"c0", b"c1", b"c2"}
        both = AllConditions((SlotComparison(1, "<", 2), SlotComparison(0, ">=", 40)))
        assert ids(reader, AnyCondition((both, SlotComparison(0, "=", 7)))) == [7, 40, 41]
        assert len({row for row, _ in store.sent}) == 3


def test_what_has_no_order_in_bytes_is_left_to_the_caller() -> None:
    _, node = open_with(column("a", numeric_type(10, 2)), column("b", INTEGER))
    node.run_and_get_commit(
        lambda txn: insert(txn, "t", *[(number, Decimal(number), number) for number in range(9)])
    )
    with node.begin() as reader:
        digits, number = SlotComparison(1, "<", Decimal(3)), SlotComparison(2, "<", 3)
        assert ids(reader, digits) == list(range(9))
        assert ids(reader, AllConditions((digits, number))) == [0, 1, 2]
        assert ids(reader, AnyCondition((digits, number))) == list(range(9))
        assert ids(reader, SlotComparison(2, "<", 2**40)) == list(range(9))


def test_values_of_an_earlier_life_and_of_later_columns_mislead_nobody() -> None:
    _, node = open_with(column("a", INTEGER))
    node.run_and_get_commit(lambda txn: insert(txn, "t", (1, 5), (2, 5), (3, 5)))
    node.run_and_get_commit(lambda txn: delete(txn, "t", 1))
    node.run_and_get_commit(lambda txn: update(txn, "t", (2, None)))
    node.run_and_get_commit(lambda txn: insert(txn, "t", (1, None)))
    with node.begin() as reader:
        into = table(reader, "t")
        narrowed = narrow(reader, (0, 1), SlotComparison(1, "=", 5))
        values = [v for batch in narrowed.scan_values(into.start, into.end) for v in batch]
        assert (3, 5) in [into.decode(value) for value in values]
        assert all(into.decode(value)[1] in (5, None) for value in values)


def test_a_transaction_with_changes_reads_its_rows_whole() -> None:
    _, node = open_with(column("a", INTEGER))
    with node.begin() as txn:
        request = ScanRequest(table(txn, "t").table.id, (0,))
        assert narrow_scans(txn, request) is not None
        insert(txn, "t", (1, 5))
        assert narrow_scans(txn, request) is None


@pytest.mark.parametrize(("type_", "values"), VALUES, ids=lambda each: str(each)[:20])
def test_columns_made_of_cells_are_those_made_of_rows(
    form: str, type_: SqlType, values: list[Any]
) -> None:
    _, node = open_with(column("v", type_), column("w", TEXT))
    finite = [value for value in values if "N" not in str(value) or isinstance(value, str)]
    rows = [(number, value, "w") for number, value in enumerate([*finite, None])]
    node.run_and_get_commit(lambda txn: insert(txn, "t", *rows))
    node.run_and_get_commit(lambda txn: insert(txn, "t", (100, None, "w"), (101, None, "w")))
    node.run_and_get_commit(lambda txn: delete(txn, "t", 100))
    with node.begin() as reader:
        into = table(reader, "t")
        whole = [v for batch in reader.scan_values(into.start, into.end) for v in batch]
        expected = rows_to_arrow(into.layout, whole, (1, 0), ["c0", "c1"])
        batches = list(narrow(reader, (1, 0)).scan_columns(into.start, into.end))
        found = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
        assert found.schema.equals(expected.schema, check_metadata=True)
        assert str(found.to_pylist()) == str(expected.to_pylist())
        counted = narrow(reader, ()).scan_columns(into.start, into.end)
        assert sum(batch.num_rows for batch in counted) == len(whole)


def test_columns_of_other_types_and_with_defaults_are_made_of_rows() -> None:
    _, node = open_with(column("v", INTERVAL))
    node.run_and_get_commit(lambda txn: insert(txn, "t", (1, Interval(1, 2, 3)), (2, None)))
    with node.begin() as reader:
        into = table(reader, "t")
        [batch] = narrow(reader, (0, 1)).scan_columns(into.start, into.end)
        assert batch.column(0).to_pylist() == [1, 2]
        assert batch.column(1).null_count == 1


@pytest.mark.parametrize("cell", [b"\x01", b"123456789", b"\x00\x00\x00\x00\x01"])
def test_an_altered_cell_is_corruption_not_a_number(form: str, cell: bytes) -> None:
    store, node = open_with(column("v", INTEGER))
    node.run_and_get_commit(lambda txn: insert(txn, "t", (1, 5), (2, 6)))
    key = table(node, "t").key.encode((2,))
    stamp = next(one.timestamp for one in store.scan(CellScan(key, None))[0][1])
    store.mutate(Mutate(key, (Put(b"c1", stamp, cell),)))
    with node.begin() as reader:
        into = table(reader, "t")
        with pytest.raises(Corruption):
            list(narrow(reader, (1,)).scan_columns(into.start, into.end))


@pytest.mark.parametrize("marker", [b"?", b"+1234", b"-x", b"+123456789"])
def test_an_altered_marker_is_corruption_not_a_row(form: str, marker: bytes) -> None:
    store, node = open_with(column("v", INTEGER))
    node.run_and_get_commit(lambda txn: insert(txn, "t", (1, 5), (2, 6)))
    key = table(node, "t").key.encode((2,))
    stamp = next(one.timestamp for one in store.scan(CellScan(key, None))[0][1])
    store.mutate(Mutate(key, (Put(b"\x00", stamp, marker),)))
    with node.begin() as reader:
        into = table(reader, "t")
        with pytest.raises(Corruption):
            list(narrow(reader, (1,)).scan_columns(into.start, into.end))


def test_columns_have_no_cells_of_an_earlier_life(form: str) -> None:
    _, node = open_with(column("a", INTEGER), column("b", TEXT))
    node.run_and_get_commit(lambda txn: insert(txn, "t", *((n, 5, "old") for n in range(4))))
    node.run_and_get_commit(lambda txn: delete(txn, "t", 1))
    node.run_and_get_commit(lambda txn: delete(txn, "t", 3))
    node.run_and_get_commit(lambda txn: update(txn, "t", (2, None, "\0\1x")))
    node.run_and_get_commit(lambda txn: insert(txn, "t", (1, None, "")))
    with node.begin() as reader:
        into = table(reader, "t")
        [batch] = narrow(reader, (0, 1, 2)).scan_columns(into.start, into.end)
        rows = list(zip(*(batch.column(at).to_pylist() for at in range(3))))
        assert rows == [(0, 5, "old"), (1, None, ""), (2, None, "\0\1x")]


def test_pages_are_read_ahead_in_order(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, node = open_with(column("v", INTEGER))
    node.run_and_get_commit(
        lambda txn: insert(txn, "t", *[(number, number) for number in range(100)])
    )
    monkeypatch.setattr(narrow_reader, "PAGE_ROWS", 7)
    with node.begin() as reader:
        into = table(reader, "t")
        narrowed = narrow(reader, (0,))
        for ahead in (False, True):
            monkeypatch.setattr(narrowed, "_reads_ahead", ahead)
            batches = list(narrowed.scan_columns(into.start, into.end))
            assert [n for batch in batches for n in batch.column(0).to_pylist()] == [*range(100)]
            stopped = narrowed.scan_columns(into.start, into.end)
            assert next(stopped).num_rows == 7
            stopped.close()  # type: ignore[attr-defined]
