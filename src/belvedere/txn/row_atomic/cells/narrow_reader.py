"""A reader for the scans of one request: the store sends only the cells and rows it asks for.

Columns come as Arrow arrays made of the cells themselves. In a scan without a limit the next page
is fetched by another thread while one is worked on (`read_ahead`): the time of the store and that
of this process pass together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from belvedere.catalog.relation_codecs import compiled_table
from belvedere.kv.batch import SCAN_BATCH_ROWS, Pair
from belvedere.kv.cell import Cells
from belvedere.kv.cell_filter import CellFilter, compared_columns
from belvedere.txn.contracts import Reader
from belvedere.txn.history.readers import values_only
from belvedere.txn.row_atomic.cells import data_cells
from belvedere.txn.row_atomic.cells.placement import Page
from belvedere.txn.row_atomic.cells.table_cells import TableCells
from belvedere.txn.row_atomic.cells.table_filters import build_filter
from belvedere.txn.scan_request import ScanRequest

if TYPE_CHECKING:
    import pyarrow as pa

PAGE_ROWS = 1024


class FetchPage(Protocol):
    """A page of a range: from key to key, so many rows, in reverse or not; packed where the store
    can do that."""

    def __call__(
        self, start: bytes, end: bytes, rows: int, reverse: bool, packed: bool = False
    ) -> Page: ...


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
        if limit is None:
            size = min(batch_rows, PAGE_ROWS)
            pages = fetch_pages(self._fetch_page, start, end, size, reverse=reverse)
            decoded = map(self._decode_page, read_ahead(pages, self._reads_ahead))
            yield from gather_batches(decoded, batch_rows)
            return
        left = limit
        while left > 0:
            size = max(1, min(batch_rows, left))
            found, last = self._fetch_page(start, end, size, reverse)
            pairs = self._decode_page(found)
            if pairs:
                yield pairs
            if last is None:
                return
            left -= len(pairs)
            start, end = (start, last) if reverse else (last + b"\x00", end)

    def _decode_page(self, found: Sequence[tuple[bytes, Cells]]) -> list[Pair]:
        return self._table.decode_rows(data_cells.read_rows(found))

    def scan_values(
        self, start: bytes, end: bytes, *, batch_rows: int = SCAN_BATCH_ROWS
    ) -> Iterator[list[bytes]]:
        return values_only(self.scan(start, end, batch_rows=batch_rows))

    def scan_columns(self, start: bytes, end: bytes) -> Iterator[pa.RecordBatch]:
        from belvedere.codec.arrow.rows_to_arrow import rows_to_arrow  # heavy
        from belvedere.txn.row_atomic.cells import cell_columns, packed_columns  # heavy

        if cell_columns.can_make_columns(self._fetch.columns):
            fetch = partial(self._fetch_page, packed=True)
            pages = fetch_pages(fetch, start, end, PAGE_ROWS)
            for found in read_ahead(pages, self._reads_ahead):
                yield packed_columns.make_columns(found, self._fetch.columns)
            return
        layout = compiled_table(self.catalog, self._request.relation).layout
        names = [f"c{number}" for number in range(len(self._request.slots))]
        for values in self.scan_values(start, end):
            yield rows_to_arrow(layout, values, self._request.slots, names)


Rows = TypeVar("Rows")


def fetch_pages(
    fetch: Callable[[bytes, bytes, int, bool], tuple[Rows, bytes | None]],
    start: bytes,
    end: bytes,
    rows: int,
    *,
    reverse: bool = False,
) -> Iterator[tuple[Rows, bytes | None]]:
    """A range in pages of so many rows, each with the last key looked at, None at the end of the
    range."""
    while True:
        page = fetch(start, end, rows, reverse)
        yield page
        last = page[1]
        if last is None:
            return
        start, end = (start, last) if reverse else (last + b"\x00", end)


def read_ahead(pages: Iterator[tuple[Rows, bytes | None]], in_thread: bool) -> Iterator[Rows]:
    """The rows of pages; `in_thread`: each fetched while the one before is in use. The first is
    fetched by the caller: most ranges have no second."""
    found, last = next(pages)
    if last is None or not in_thread:
        yield found
        yield from (found for found, _ in pages)
        return
    with ThreadPoolExecutor(1, "belvedere read ahead") as ahead:
        while last is not None:
            coming = ahead.submit(partial(next, pages))
            yield found
            found, last = coming.result()
    yield found


def gather_batches(pages: Iterable[list[Pair]], batch_rows: int) -> Iterator[list[Pair]]:
    """The pairs of pages, none of them larger than `PAGE_ROWS`, in batches of at most so many, but
    at least one page; none of them is empty."""
    batch: list[Pair] = []
    for pairs in pages:
        batch += pairs
        if batch and len(batch) + PAGE_ROWS > batch_rows:
            yield batch
            batch = []
    if batch:
        yield batch
