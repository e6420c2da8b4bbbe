"""Data rows as cells: how a write is encoded, and how cells are read as of a position.

    0x00        the marker, written at p by every put and delete: '+' and born, or '-'
    <column>    a value, written only when it changed; a single 0x00 is NULL after a value
    '+'         a delta cell, one version for each transaction that added
    '='         a fold cell at f: the sum of every delta (and put) at or below f

Every change leaves a marker, so that deletes and NULLs count as changes too. Cells older than
`born` belong to an earlier life of the key. Nothing here is a tombstone: those would hide history.
A put resets the sum: the row as of s is the newest of put and fold at or below s, plus the
deltas after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from belvedere.codec import accumulator
from belvedere.errors import Corruption, InvalidInput
from belvedere.kv.cell import CELL_BYTES_MAX, Cell, Cells, Mutate, Put
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.cells.layout import ADD, DELETE, PUT, SET, Record, RowWrite

MARKER = b"\x00"
DELTA = b"+"
FOLD = b"="
NULL_CELL = b"\x00"
DELETED = b"-"
RESERVED = frozenset((MARKER, DELTA, FOLD))


class Sum(NamedTuple):
    """Linear state: what it belongs to, and the amounts; amounts[0] counts rows. In a cell it has
    the form of `codec.accumulator`, where amounts may be of any size."""

    payload: bytes
    amounts: tuple[int, ...]


class CellRow(NamedTuple):
    """A row as of a position: its columns, or its sum, or both."""

    columns: dict[bytes, bytes]
    sum: Sum | None
    changed: int


def record_mutations(position: int, record: Record) -> list[Mutate]:
    """Every cell of a record, and its outcome cell. Writing them twice changes nothing."""
    found = []
    if record.transaction:
        outcome = Put(layout.OUTCOME, layout.ONLY, position.to_bytes(8))
        found.append(Mutate(layout.outcome_row(record.transaction), (outcome,)))
    found += [Mutate(write.row, _write_puts(position, write)) for write in record.writes]
    return found


def _write_puts(position: int, write: RowWrite) -> tuple[Put, ...]:
    match write.kind:
        case layout.PUT:
            born = (write.born or position).to_bytes(8)
            puts = [Put(MARKER, position, b"+" + born)]
            for column, value in write.cells:
                puts.append(Put(column, position, NULL_CELL if value is None else value))
            return tuple(puts)
        case layout.DELETE:
            return (Put(MARKER, position, DELETED),)
        case layout.SET:
            return (Put(FOLD, position, write.sum),)
        case _:
            return (Put(DELTA, position, write.sum),)


def put_row(row: bytes, columns: dict[bytes, bytes | None], born: int = 0) -> RowWrite:
    for column, value in columns.items():
        if column in RESERVED or value == NULL_CELL or value == b"":
            raise InvalidInput("column or value is reserved", column=column)
        _require_fits(value or b"")
    return RowWrite(row, PUT, tuple(sorted(columns.items())), born)


def _require_fits(value: bytes) -> bytes:
    """A cell must be refused before the commit: a record that is in the log has to be applied."""
    if len(value) > CELL_BYTES_MAX:
        raise InvalidInput(
            "value is too large for a cell",
            sqlstate="54000",
            found=len(value),
            limit=CELL_BYTES_MAX,
        )
    return value


def delete_row(row: bytes) -> RowWrite:
    return RowWrite(row, DELETE)


def add_to_sum(row: bytes, payload: bytes, amounts: tuple[int, ...]) -> RowWrite:
    return RowWrite(row, ADD, sum=_require_fits(accumulator.encode(payload, amounts)))


def set_sum(row: bytes, payload: bytes, amounts: tuple[int, ...]) -> RowWrite:
    """Say what the sum is as of the position it is written at, whatever was added before."""
    return RowWrite(row, SET, sum=_require_fits(accumulator.encode(payload, amounts)))


def born_of(row: bytes, marker: bytes) -> int | None:
    """Since when the row exists; None when the marker says it was deleted."""
    if marker == DELETED:
        return None
    if len(marker) != 9 or marker[:1] != b"+":
        raise Corruption("row was altered: unknown form", row=row.hex(), form="marker")
    return int.from_bytes(marker[1:])


def has_deltas(cells: Cells) -> bool:
    return any(cell.column == DELTA for cell in cells)


def read_row(row: bytes, cells: Cells, deltas: Iterable[Cell] = ()) -> CellRow | None:
    """The row these cells make; `deltas` are all versions of its delta column. None: no row."""
    if cells and cells[0].column == MARKER and (len(cells) < 2 or cells[1].column > FOLD):
        return _read_plain_row(row, cells)
    newest: dict[bytes, Cell] = {}
    for cell in cells:
        newest.setdefault(cell.column, cell)
    marker, fold = newest.get(MARKER), newest.get(FOLD)
    born = None if marker is None else born_of(row, marker.value)
    columns: dict[bytes, bytes] = {}
    if born is not None:
        columns = {
            column: cell.value
            for column, cell in newest.items()
            if column not in RESERVED and cell.timestamp >= born and cell.value != NULL_CELL
        }
    base = marker.timestamp if marker is not None else -1
    total = None
    if fold is not None and fold.timestamp > base:
        base, total = fold.timestamp, decode_sum(row, fold)
        if marker is not None:
            columns = {}
    for cell in sorted(deltas, key=lambda cell: cell.timestamp):
        if cell.timestamp > base:
            total = add_sums(total, decode_sum(row, cell))
    if born is None and (total is None or total.amounts[0] == 0):
        return None
    return CellRow(columns, total, max(cell.timestamp for cell in newest.values()))


def read_rows(
    found: Iterable[tuple[bytes, Cells]],
) -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
    """The rows of a table that exist, by their cells."""
    for key, cells in found:
        row = read_row(key, cells)
        if row is not None:
            yield key, row.columns


def _read_plain_row(row: bytes, cells: Cells) -> CellRow | None:
    """A row without sums, which is nearly every row, one version of each column: its marker comes
    first, and delta and fold before all other columns."""
    born = born_of(row, cells[0].value)
    if born is None:
        return None
    columns = {
        column: value
        for column, timestamp, value in cells[1:]
        if timestamp >= born and value != NULL_CELL
    }
    return CellRow(columns, None, max([cell.timestamp for cell in cells]))


def total_sum(row: bytes, cells: Cells) -> Sum | None:
    """The newest fold among all versions of a row's cells, plus the deltas after it."""
    folds = [cell for cell in cells if cell.column == FOLD]
    base, total = -1, None
    if folds:
        base, total = folds[0].timestamp, decode_sum(row, folds[0])
    for cell in cells:
        if cell.column == DELTA and cell.timestamp > base:
            total = add_sums(total, decode_sum(row, cell))
    return total


def decode_sum(row: bytes, cell: Cell) -> Sum:
    """The sum a delta or fold cell holds. Corruption, naming the row, when it is none."""
    try:
        return Sum(*accumulator.decode(cell.value))
    except Corruption as error:
        raise Corruption("row was altered: unknown form", row=row.hex(), form="sum") from error


def add_sums(left: Sum | None, right: Sum) -> Sum:
    if left is None:
        return right
    amounts = tuple(a + b for a, b in zip(left.amounts, right.amounts, strict=True))
    return Sum(right.payload, amounts)
