"""Scans of tables that others write: any column family, the newest version of each cell.

pages of bounded size; columns, limit and filter are the region server's work
a filter that lets so little pass that a page takes too long is applied here
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from belvedere.errors import Corruption, InvalidInput
from belvedere.kv.cell import ReplyLost
from belvedere.kv.cell_filter import CellFilter, passes_filter
from belvedere.kv.hbase.exchange import Exchange
from belvedere.kv.hbase.filter_text import filter_text
from belvedere.kv.hbase.requests import GatewayCall
from belvedere.kv.hbase.thrift_types import load_types
from belvedere.kv.hbase.url import HBaseUrl

PAGE_ROWS = 1024
PAGE_BYTES = 4 * 1024 * 1024
KEYS_ONLY = b"FirstKeyOnlyFilter() AND KeyOnlyFilter()"

TableRow = tuple[bytes, dict[bytes, bytes]]
"""A row key, and its cells by `family:qualifier`."""


@dataclass(frozen=True, slots=True)
class TableScan:
    """Rows with start <= key < end. `columns` are `family:qualifier`; None: every cell; (): the
    keys alone. `filters_here`: the region servers took too long."""

    table: str
    start: bytes
    end: bytes | None
    columns: tuple[bytes, ...] | None = None
    filter: CellFilter | None = None
    filters_here: bool = False


def scan_table(
    exchange: Exchange, scan: TableScan, first_page: int = PAGE_ROWS
) -> Iterator[list[TableRow]]:
    """Pages of rows; the first has at most `first_page`."""
    page = first_page
    while True:
        rows, scan = _read_page(exchange, scan, page)
        kept = rows
        if scan.filters_here and scan.filter is not None:
            wanted = scan.filter
            kept = [row for row in rows if passes_filter(wanted, row[1])]
        if kept:
            yield kept
        if len(rows) < page:
            return
        scan = replace(scan, start=rows[-1][0] + b"\x00")
        page = _choose_page(rows)


def _read_page(exchange: Exchange, scan: TableScan, page: int) -> tuple[list[TableRow], TableScan]:
    """A page, and the scan as it continues: with a filter it gets half of the time."""
    filtered = scan.filter is not None and not scan.filters_here
    try:
        seconds = exchange.seconds_max / (2 if filtered else 1)
        rows: list[TableRow] = exchange.perform_call(_make_call(scan, page), seconds)
        return rows, scan
    except ReplyLost:
        if not filtered:
            raise
        return _read_page(exchange, replace(scan, filters_here=True), page)
    except Corruption as error:
        raise _table_error(scan, error) from error


def _table_error(scan: TableScan, error: Corruption) -> InvalidInput:
    why = str(error.facts.get("why"))
    if "NoSuchColumnFamily" in why:
        return InvalidInput(
            "the hbase table has no such column family", sqlstate="HV005", table=scan.table, why=why
        )
    return InvalidInput(
        "the hbase table does not exist or is disabled", sqlstate="HV00R", table=scan.table
    )


def _make_call(scan: TableScan, rows_max: int) -> GatewayCall:
    types = load_types()
    text: bytes | None = None
    if scan.filter is not None and not scan.filters_here:
        text = filter_text(scan.filter, None)
    elif scan.columns == ():
        text = KEYS_ONLY
    columns = None
    if scan.columns:
        columns = [_make_column(types, column) for column in scan.columns]
    wanted = types.TScan(
        startRow=scan.start or None,
        stopRow=scan.end or None,
        columns=columns,
        caching=rows_max,
        maxVersions=1,
        filterString=text,
        limit=rows_max,
    )
    arguments = {"table": scan.table.encode(), "tscan": wanted, "numRows": rows_max}
    return GatewayCall("getScannerResults", arguments, _read_rows, repeatable=True)


def _make_column(types: Any, column: bytes) -> Any:
    family, _, qualifier = column.partition(b":")
    return types.TColumn(family=family, qualifier=qualifier)


def _read_rows(results: list[Any]) -> list[TableRow]:
    return [
        (
            result.row,
            {
                each.family + b":" + (each.qualifier or b""): each.value or b""
                for each in result.columnValues
            },
        )
        for result in results
    ]


def _choose_page(rows: list[TableRow]) -> int:
    size = sum(len(row) + sum(map(len, cells.values())) for row, cells in rows)
    return max(1, min(4 * PAGE_ROWS, PAGE_BYTES * len(rows) // max(size, 1)))


# -- connections -----------------------------------------------------------------------------------

_exchanges: dict[tuple[int, HBaseUrl], Exchange] = {}
_opening = threading.Lock()


def open_shared_exchange(url: HBaseUrl) -> Exchange:
    """The connections of this process to the gateways, shared by all that read from there. A
    forked child has its own."""
    with _opening:
        key = (os.getpid(), url)
        if key not in _exchanges:
            _exchanges[key] = Exchange(url)
        return _exchanges[key]
