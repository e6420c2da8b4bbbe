"""The row-atomic store on HBase, through its Thrift2 gateways.

    Many          one round trip of time: calls that can share one do, the others go side by side
    MultiGet      one call for each table
    CellScan      pages of bounded size; limit, columns, versions and filter are the region server's
                  work. A filter that lets so little pass that a page takes too long is applied here

What the gateway's own client may do to a request (repeat it, answer False although it was carried
out) is within the contract (`kv.cell`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from belvedere.kv.cell import (
    Cells,
    CellScan,
    CheckAndMutate,
    Get,
    Increment,
    Mutate,
    ReplyLost,
    SingleRow,
)
from belvedere.kv.cell_filter import passes_filter
from belvedere.kv.hbase import requests
from belvedere.kv.hbase.exchange import Exchange
from belvedere.kv.hbase.requests import GatewayCall
from belvedere.kv.hbase.side_by_side import plan_calls
from belvedere.kv.hbase.tables import TableLayout, TableRouter, open_tables
from belvedere.kv.hbase.url import HBaseUrl

PAGE_ROWS = 1024
PREFIX_BYTES_MAX = 8
PAGE_BYTES = 4 * 1024 * 1024


class HBaseCells:
    """A CellStore. Safe to use from any thread; not from a forked child."""

    def __init__(self, url: HBaseUrl, layout: TableLayout, *, create: bool = True) -> None:
        self.exchange = Exchange(url)
        self.scans_filtered_here = 0
        self._router = TableRouter(url.namespace, layout)
        try:
            open_tables(self.exchange, layout, create=create)
        except BaseException:
            self.exchange.close()
            raise

    def get(self, get: Get) -> Cells:
        if get.columns == ():
            return ()
        found: Cells = self._perform_call(requests.get_call(self._router.table_of(get.row), get))
        return found

    def multi_get(self, gets: tuple[Get, ...]) -> tuple[Cells, ...]:
        found: list[Cells] = [()] * len(gets)
        by_table: dict[bytes, list[int]] = {}
        for number, get in enumerate(gets):
            if get.columns != ():
                by_table.setdefault(self._router.table_of(get.row), []).append(number)
        calls = [
            requests.multi_get_call(table, [gets[number] for number in numbers])
            for table, numbers in by_table.items()
        ]
        for numbers, answers in zip(by_table.values(), self._perform_all(calls)):
            for number, cells in zip(numbers, answers):
                found[number] = cells
        return tuple(found)

    def scan(self, scan: CellScan) -> Sequence[tuple[bytes, Cells]]:
        found: list[tuple[bytes, Cells]] = []
        if scan.columns == ():
            return ()
        if scan.packed:
            packed = self._scan_packed(scan)
            if packed is not None:
                return packed
        for table, start, end in self._router.split_scan(scan):
            left = None if scan.limit is None else scan.limit - len(found)
            if left is not None and left <= 0:
                break
            found += self._scan_table(table, replace(scan, start=start, end=end, limit=left))
        return tuple(found)

    def _scan_packed(self, scan: CellScan) -> Sequence[tuple[bytes, Cells]] | None:
        """One page, packed where the gateway's answer allows it; None when it takes several."""
        call = self._plan_page(scan)
        if call is None or call.row_prefix is None:
            return None
        try:
            found: Sequence[tuple[bytes, Cells]]
            found = self.exchange.perform_call(call, self._page_seconds(scan))
            return found
        except ReplyLost:
            if scan.filter is None:
                raise
            return self._filter_here(call.arguments["table"], scan)

    def _scan_table(self, table: bytes, scan: CellScan) -> list[tuple[bytes, Cells]]:
        found: list[tuple[bytes, Cells]] = []
        page = PAGE_ROWS
        while True:
            left = None if scan.limit is None else scan.limit - len(found)
            wanted = page if left is None else min(page, left)
            # A reverse scan may begin with the row at its end, which is not part of it.
            call = requests.scan_call(table, scan, wanted + scan.reverse)
            try:
                rows = self.exchange.perform_call(call, self._page_seconds(scan))
            except ReplyLost:
                if scan.filter is None:
                    raise
                return found + self._filter_here(table, replace(scan, limit=left))
            inside = [pair for pair in rows if _is_inside(pair[0], scan)][:wanted]
            found += inside
            if len(rows) < wanted + scan.reverse or len(inside) == left or not inside:
                return found
            last = inside[-1][0]
            scan = replace(scan, end=last) if scan.reverse else replace(scan, start=last + b"\x00")
            page = _choose_page(rows)

    def _page_seconds(self, scan: CellScan) -> float:
        """A page with a filter may be many rows of work: it gets half of the time."""
        return self.exchange.seconds_max / (1 if scan.filter is None else 2)

    def _filter_here(self, table: bytes, scan: CellScan) -> list[tuple[bytes, Cells]]:
        """The rest of a scan without its filter, which is applied to what comes."""
        wanted, found = scan.filter, list[tuple[bytes, Cells]]()
        assert wanted is not None
        self.scans_filtered_here += 1
        while True:
            rows = self._scan_table(table, replace(scan, filter=None, limit=PAGE_ROWS))
            for row, cells in rows:
                if passes_filter(wanted, {cell.column: cell.value for cell in cells}):
                    found.append((row, cells))
            if len(rows) < PAGE_ROWS or (scan.limit is not None and len(found) >= scan.limit):
                return found[: scan.limit]
            last = rows[-1][0]
            scan = replace(scan, end=last) if scan.reverse else replace(scan, start=last + b"\x00")

    def mutate(self, mutate: Mutate) -> None:
        self.execute_many((mutate,))

    def check_and_mutate(self, mutate: CheckAndMutate) -> bool:
        done: bool = self.execute_many((mutate,))[0]
        return done

    def increment(self, increment: Increment) -> int:
        number: int = self.execute_many((increment,))[0]
        return number

    def execute_many(self, operations: Sequence[SingleRow]) -> tuple[Any, ...]:
        planned = plan_calls(operations, self._router)
        answers = self._perform_all([each.call for each in planned])
        results: list[Any] = [None] * len(operations)
        for each, answer in zip(planned, answers):
            each.place_answer(answer, results)
        numbers = [n for n, operation in enumerate(operations) if isinstance(operation, CellScan)]
        scans = [operations[number] for number in numbers]
        for number, found in zip(numbers, self._scan_several(scans)):  # type: ignore[arg-type]
            results[number] = found
        return tuple(results)

    def _scan_several(self, scans: list[CellScan]) -> list[Sequence[tuple[bytes, Cells]]]:
        """Scans of a page each go side by side; where one is not answered, and otherwise, they go
        one after the other. What takes too long with a filter does so once."""
        calls = [call for scan in scans if (call := self._plan_page(scan)) is not None]
        if len(scans) < 2 or len(calls) < len(scans):
            return [self.scan(scan) for scan in scans]
        once = [replace(call, repeatable=scan.filter is None) for call, scan in zip(calls, scans)]
        try:
            return self._perform_all(once)
        except ReplyLost:
            return [
                self.scan(scan)
                if scan.filter is None
                else self._filter_here(call.arguments["table"], scan)
                for call, scan in zip(calls, scans)
            ]

    def _plan_page(self, scan: CellScan) -> GatewayCall | None:
        """The one call that a scan takes; None when it may take several."""
        parts = [*self._router.split_scan(scan)]
        if len(parts) != 1 or scan.limit is None or not 0 < scan.limit <= PAGE_ROWS:
            return None
        if scan.reverse or scan.columns == ():
            return None
        prefix = _shared_prefix(scan.start, scan.end) if _may_be_packed(scan) else None
        [(table, _, _)] = parts
        return replace(requests.scan_call(table, scan, scan.limit), row_prefix=prefix)

    def close(self) -> None:
        self.exchange.close()

    def _perform_call(self, call: GatewayCall) -> Any:
        return self.exchange.perform_call(call)

    def _perform_all(self, calls: list[GatewayCall]) -> list[Any]:
        return self.exchange.perform_calls(calls) if calls else []


def _is_inside(row: bytes, scan: CellScan) -> bool:
    return scan.start <= row and (scan.end is None or row < scan.end)


def _may_be_packed(scan: CellScan) -> bool:
    return scan.packed and not scan.all_versions


def _shared_prefix(start: bytes, end: bytes | None) -> bytes | None:
    """What all keys of a range begin with; None for less than two bytes."""
    for size in range(min(len(start), PREFIX_BYTES_MAX), 1, -1):
        after = int.from_bytes(start[:size]) + 1
        if end is not None and after < 1 << 8 * size and end <= after.to_bytes(size):
            return start[:size]
    return None


def _choose_page(rows: list[tuple[bytes, Cells]]) -> int:
    """How many rows to ask for next, so that a page of rows like these has a bounded size."""
    size = sum(len(cell.value) + len(row) for row, cells in rows for cell in cells)
    return max(1, min(4 * PAGE_ROWS, PAGE_BYTES * len(rows) // max(size, 1)))
