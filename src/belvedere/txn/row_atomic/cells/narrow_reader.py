"""A reader for the scans of one request: the store sends only the cells and rows it asks for.

Columns come as Arrow arrays made of the cells themselves, and the next page is fetched by another
thread while one is worked on: the time of the store and that of this process pass together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from belvedere.catalog.relation_codecs import compiled_table
from belvedere.kv.batch import SCAN_BATCH_ROWS, Pair
from belvedere.kv.cell import Cells
from belvedere.kv.cell_filter import CellFilter, compared_columns
from belvedere.txn.contracts import Reader
from belvedere.txn.history.readers import values_only
from belvedere.txn.row_atomic.cells import data_cells
from belvedere.txn.row_atomic.cells.table_cells import TableCells
from belvedere.txn.row_atomic.cells.table_filters import build_filter
from belvedere.txn.scan_request import ScanRequest

if TYPE_CHECKING:
    import pyarrow as pa

PAGE_ROWS = 1024

Page = tuple[tuple[tuple[bytes, Cells], ...], bytes | None]
"""Rows, and the last key looked at; None at the end of the range."""

FetchPage = Callable[[bytes, bytes, int, bool], Page]
"""A page of a range: from key to key, so many rows, in reverse or not."""


class CellFetch:
    """What a request asks for, in terms of cells: columns and filter."""

    def __init__(self, table: TableCells, request: ScanRequest) -> None:
        self.columns = [table.column_of(slot) for slot in request.slots]
        condition = request.condition
        self.filter: CellFilter | None = (
            None if condition is None else build_filter(condition, table.column_of)
        )
        names = {column.name for column in self.columns}
        names.update(() if self.filter is None else compared_columns(self.filter))
        all_names = table.column_names
        self.names = None if names >= all_names else (data_cells.MARKER, *sorted(names))


class NarrowRowReader:
    """A `NarrowReader`. Single rows are read whole, by the reader it was made of."""

    def __init__(
        self,
        under: Reader,
        fetch_page: FetchPage,
        fetch: CellFetch,
        request: ScanRequest,
        table: TableCells,
        *,
        reads_ahead: bool,
    ) -> None:
        self.get, self.multi_get = under.get, under.multi_get
        self.position, self.catalog = under.position, under.catalog
        self._fetch_page = fetch_page
        self._fetch = fetch
        self._request = request
        self._table = table
        self._reads_ahead = reads_ahead

    def scan(
        self,
        start: bytes,
        end: bytes,
        *,
        reverse: bool = False,
        limit: int | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
    ) -> Iterator[list[Pair]]:
        left = limit
        while left is None or left > 0:
            size = batch_rows if left is None else max(1, min(batch_rows, left))
            found, last = self._fetch_page(start, end, size, reverse)
            pairs = self._table.decode_rows(data_cells.read_rows(found))
            if pairs:
                yield pairs
            if last is None:
                return
            if left is not None:
                left -= len(pairs)
            start, end = (start, last) if reverse else (last + b"\x00", end)

    def scan_values(
        self, start: bytes, end: bytes, *, batch_rows: int = SCAN_BATCH_ROWS
    ) -> Iterator[list[bytes]]:
        return values_only(self.scan(start, end, batch_rows=batch_rows))

    def scan_columns(self, start: bytes, end: bytes) -> Iterator[pa.RecordBatch]:
        from belvedere.codec.arrow.rows_to_arrow import rows_to_arrow  # heavy
        from belvedere.txn.row_atomic.cells import cell_columns  # heavy

        if cell_columns.can_make_columns(self._fetch.columns):
            pages = self._pages(start, end)
            for found in read_ahead(pages) if self._reads_ahead else _rows_of(pages):
                yield cell_columns.make_columns(found, self._fetch.columns)
            return
        layout = compiled_table(self.catalog, self._request.relation).layout
        names = [f"c{number}" for number in range(len(self._request.slots))]
        for values in self.scan_values(start, end):
            yield rows_to_arrow(layout, values, self._request.slots, names)

    def _pages(self, start: bytes, end: bytes) -> Iterator[Page]:
        while True:
            page = self._fetch_page(start, end, PAGE_ROWS, False)
            yield page
            if page[1] is None:
                return
            start = page[1] + b"\x00"


def _rows_of(pages: Iterator[Page]) -> Iterator[tuple[tuple[bytes, Cells], ...]]:
    return (found for found, _ in pages)


def read_ahead(pages: Iterator[Page]) -> Iterator[tuple[tuple[bytes, Cells], ...]]:
    """The rows of pages, each fetched while the one before is in use. The first is fetched by the
    caller: most ranges have no second."""
    found, last = next(pages)
    if last is None:
        yield found
        return
    with ThreadPoolExecutor(1, "belvedere read ahead") as ahead:
        while last is not None:
            coming = ahead.submit(partial(next, pages))
            yield found
            found, last = coming.result()
    yield found
