"""`Reader` and `Writer` over cells: tables by column, other rows in one cell, sums as deltas.

A table has one cell a column (`columns`). A row of anything else (an index entry, a watermark, the
catalog) is one cell, column 'r', with its stored form. Linear state is the sum of delta cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol, TypeVar

import msgspec

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import ObjectState, View
from belvedere.codec import accumulator, keyspace
from belvedere.errors import Corruption
from belvedere.kv.batch import SCAN_BATCH_ROWS, Pair, Write
from belvedere.kv.cell import Step
from belvedere.txn.history.readers import values_only
from belvedere.txn.row_atomic import read_rows
from belvedere.txn.row_atomic.cells import data_cells
from belvedere.txn.row_atomic.cells.data_cells import CellRow
from belvedere.txn.row_atomic.cells.layout import RowWrite
from belvedere.txn.row_atomic.cells.narrow_reader import (
    PAGE_ROWS,
    CellFetch,
    NarrowRowReader,
    fetch_pages,
    gather_batches,
    read_ahead,
)
from belvedere.txn.row_atomic.cells.placement import Page, find_spread, row_of
from belvedere.txn.row_atomic.cells.table_cells import TableCells, cells_of
from belvedere.txn.scan_request import NarrowingReader, ScanRequest

ROW = b"r"
PREFIX = keyspace.ROW_PREFIX_BYTES
KNOWN_ROWS_MAX = 1000
"""How many rows a reader remembers, and how many it fetches ahead in one trip."""

Result = TypeVar("Result")


class RepeatableRunner(Protocol):
    """Drives a step that only reads, in the calling thread; again when a reply is lost."""

    def __call__(self, make: Callable[[], Step[Result]]) -> Result: ...


class RowReader(NarrowingReader):
    """Rows as of a position, or (`as_of` None) the newest ones: those only under their locks.
    Either do not change while they are read, so a few that were read are remembered."""

    __slots__ = ("_after", "_as_of", "_known", "_look", "_reads_ahead", "catalog", "position")

    def __init__(
        self,
        look: RepeatableRunner,
        as_of: int | None,
        position: int,
        catalog: Catalog,
        after: Callable[[], None] = lambda: None,
        reads_ahead: bool = False,
    ) -> None:
        """`after` is called after every read, and may raise when the snapshot is too old.
        `reads_ahead`: a thread of its own may fetch the next page of a scan."""
        self._reads_ahead = reads_ahead
        self._look = look
        self._as_of = as_of
        self._after = after
        self._known: dict[bytes, bytes | None] = {}
        self.position = position
        self.catalog = catalog

    def get(self, key: bytes) -> bytes | None:
        if key in self._known:
            return self._known[key]
        found = self._look(lambda: read_rows.get_row(row_of(self.catalog, key), self._as_of))
        self._after()
        if len(self._known) >= KNOWN_ROWS_MAX:
            self._known.clear()
        value = self._known[key] = stored_value(self.catalog, key, found)
        return value

    def fetch_ahead(self, keys: Iterable[bytes]) -> None:
        """Read rows that are asked for next, in one trip. The last ones are kept."""
        wanted = [key for key in keys if key not in self._known]
        for start in range(0, len(wanted), KNOWN_ROWS_MAX):
            block = wanted[start : start + KNOWN_ROWS_MAX]
            self._known.update(zip(block, self.multi_get(block)))

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        wanted = [row_of(self.catalog, key) for key in keys]
        found = self._look(lambda: read_rows.get_rows(wanted, self._as_of))
        self._after()
        return [stored_value(self.catalog, key, row) for key, row in zip(keys, found)]

    def scan(
        self,
        start: bytes,
        end: bytes,
        *,
        reverse: bool = False,
        limit: int | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
    ) -> Iterator[list[Pair]]:
        if limit is None:
            size = min(batch_rows, PAGE_ROWS)
            pages = fetch_pages(self._fetch_page, start, end, size, reverse=reverse)
            decode = partial(_stored_pairs, self.catalog)
            yield from gather_batches(map(decode, read_ahead(pages, self._reads_ahead)), batch_rows)
            return
        left = limit
        while left > 0:
            size = max(1, min(batch_rows, left))
            found, last = self._fetch_page(start, end, size, reverse)
            pairs = _stored_pairs(self.catalog, found)
            if pairs:
                yield pairs
            if last is None:
                return
            left -= len(pairs)
            start, end = (start, last) if reverse else (last + b"\x00", end)

    def _fetch_page(
        self, start: bytes, end: bytes, rows: int, reverse: bool
    ) -> tuple[list[tuple[bytes, CellRow]], bytes | None]:
        spread = find_spread(self.catalog, start)
        step = partial(read_rows.scan_rows, limit=rows, reverse=reverse, spread=spread)
        page = self._look(partial(step, start, end, self._as_of))
        self._after()
        return page

    def scan_values(
        self, start: bytes, end: bytes, *, batch_rows: int = SCAN_BATCH_ROWS
    ) -> Iterator[list[bytes]]:
        return values_only(self.scan(start, end, batch_rows=batch_rows))

    def narrow_scans(self, request: ScanRequest) -> NarrowRowReader | None:
        table = cells_of(self.catalog, request.relation)
        if table is None:
            return None
        fetch = CellFetch(table, request)
        spread = find_spread(self.catalog, keyspace.row_prefix(request.relation))

        def fetch_page(
            start: bytes, end: bytes, rows: int, reverse: bool, packed: bool = False
        ) -> Page:
            step = partial(read_rows.scan_cells, limit=rows, reverse=reverse, packed=packed)
            page = self._look(partial(step, start, end, self._as_of, fetch, spread=spread))
            self._after()
            return page

        return NarrowRowReader(
            self, fetch_page, fetch, request, table, reads_ahead=self._reads_ahead
        )


def _stored_pairs(catalog: Catalog, rows: list[tuple[bytes, CellRow]]) -> list[Pair]:
    """Keys and stored forms of rows; those of one table are nearly all of them."""
    prefix, table = b"", None
    pairs: list[Pair] = []
    for key, row in rows:
        if key[:PREFIX] != prefix:
            prefix, table = key[:PREFIX], _table_cells(catalog, key)
        if table is not None and row.sum is None:
            pairs.append((key, table.decode_row(key, row.columns)))
        else:
            value = stored_value(catalog, key, row)
            if value is not None:
                pairs.append((key, value))
    return pairs


def stored_value(catalog: Catalog, key: bytes, row: CellRow | None) -> bytes | None:
    """The stored form, as a `Reader` returns it, of a row of cells."""
    if row is None:
        return None
    if row.sum is None:
        table = _table_cells(catalog, key)
        if table is not None:
            return table.decode_row(key, row.columns)
        value = row.columns.get(ROW)
        if value is None:
            raise Corruption("row was altered: no value", row=key.hex())
        return value
    return accumulator.add(row.columns.get(ROW), row.sum.payload, row.sum.amounts)


class RowWriter:
    """What participants derive, as writes of cells: one for each row, later ones winning.
    `shared_results` holds intermediate results that participants share."""

    __slots__ = ("_reader", "_rows", "_sums", "shared_results")

    def __init__(self, reader: RowReader) -> None:
        self.shared_results: dict[object, object] = {}
        self._reader = reader
        self._rows: dict[bytes, bytes | None] = {}
        self._sums: dict[bytes, tuple[bytes, tuple[int, ...]]] = {}

    def put(self, key: bytes, value: bytes) -> None:
        self._sums.pop(key, None)
        self._rows[key] = value

    def delete(self, key: bytes) -> None:
        self._sums.pop(key, None)
        self._rows[key] = None

    def add(self, key: bytes, payload: bytes, amounts: tuple[int, ...]) -> None:
        if key in self._rows:
            self._rows[key] = accumulator.add(self._rows[key], payload, amounts)
            return
        known = self._sums.get(key)
        if known is not None:
            payload, amounts = known[0], tuple(map(int.__add__, known[1], amounts))
        self._sums[key] = (payload, amounts)

    def visible_rows(self) -> dict[bytes, bytes | None]:
        """The derived rows as they will be seen: for checks at the new position."""
        seen = dict(self._rows)
        for key, (payload, amounts) in self._sums.items():
            if is_being_built(self._reader.catalog, key):
                continue  # its state is not complete yet
            seen[key] = accumulator.add(self._reader.get(key), payload, amounts)
        return seen

    def writes(self) -> tuple[RowWrite, ...]:
        catalog = self._reader.catalog
        found = [single_cell_write(row_of(catalog, k), value) for k, value in self._rows.items()]
        for key, (payload, amounts) in self._sums.items():
            if any(amounts):
                found.append(data_cells.add_to_sum(row_of(catalog, key), payload, amounts))
        return tuple(found)


def row_write(catalog: Catalog, key: bytes, old: bytes | None, new: bytes | None) -> RowWrite:
    """A change of a row: of a table's, only the cells that differ."""
    table, row = _table_cells(catalog, key), row_of(catalog, key)
    if table is None or new is None:
        return single_cell_write(row, new)
    return data_cells.put_row(row, table.changed_cells(old, new))


def derived_writes(rows: Sequence[Write], reader: RowReader) -> tuple[RowWrite, ...]:
    """The writes for full rows from a maintenance batch. State of views is written as additions."""
    found = []
    for key, value in rows:
        if isinstance(_relation_of(reader.catalog, key), View):
            row = row_of(reader.catalog, key)
            write = _sum_difference(row, reader.get(key), value)
            found += [] if write is None else [write]
        else:
            found.append(single_cell_write(key, value))
    return tuple(found)


def _sum_difference(row: bytes, old: bytes | None, new: bytes | None) -> RowWrite | None:
    if old == new:
        return None
    before = None if old is None else accumulator.decode(old)
    after = None if new is None else accumulator.decode(new)
    payload = (after or before or (b"", ()))[0]
    width = len((after or before or (b"", ()))[1])
    was, now = (state[1] if state else (0,) * width for state in (before, after))
    return data_cells.add_to_sum(row, payload, tuple(map(int.__sub__, now, was)))


def place_writes(catalog: Catalog, writes: Sequence[RowWrite]) -> tuple[RowWrite, ...]:
    """Writes that were given keys, as writes of the rows where these are."""
    placed = ((write, row_of(catalog, write.row)) for write in writes)
    return tuple([w if row == w.row else msgspec.structs.replace(w, row=row) for w, row in placed])


def single_cell_write(row: bytes, value: bytes | None) -> RowWrite:
    """The write of a row that is stored in one cell."""
    return data_cells.delete_row(row) if value is None else data_cells.put_row(row, {ROW: value})


def _table_cells(catalog: Catalog, key: bytes) -> TableCells | None:
    return cells_of(catalog, int.from_bytes(key[1:5])) if key[0] == keyspace.ROWS else None


def is_being_built(catalog: Catalog, key: bytes) -> bool:
    """Whether the key belongs to a view whose backfill is not done: its additions are no complete
    sum."""
    item = _relation_of(catalog, key)
    return isinstance(item, View) and item.state is ObjectState.BUILDING


def _relation_of(catalog: Catalog, key: bytes) -> object:
    return catalog.get(int.from_bytes(key[1:5])) if key[0] == keyspace.ROWS else None
