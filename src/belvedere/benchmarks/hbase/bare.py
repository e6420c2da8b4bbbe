"""The peer: bare calls of one gateway, on a connection of their own, answers decoded by Thrift
alone."""

from __future__ import annotations

import time
from typing import Any

from belvedere.kv.cell import Cells, CellScan, Get, Mutate, Put
from belvedere.kv.hbase import requests
from belvedere.kv.hbase.connections import GatewayConnection
from belvedere.kv.hbase.requests import GatewayCall
from belvedere.kv.hbase.url import HBaseUrl

PAGE_ROWS = 1000
SECONDS_MAX = 60.0


class BareGateway:
    """One connection, for the table that has the rows of all relations."""

    def __init__(self, url: HBaseUrl) -> None:
        self.table = f"{url.namespace}:rows".encode()
        self._connection = GatewayConnection(url.gateways[0], SECONDS_MAX, time.monotonic)

    def get(self, row: bytes) -> Any:
        return self._call(requests.get_call(self.table, Get(row)))

    def put(self, row: bytes, cells: Cells) -> None:
        """Cells in rows of their own, which no relation has: after the last one of all."""
        puts = tuple(Put(cell.column, 1, cell.value) for cell in cells)
        self._call(requests.put_calls(self.table, [Mutate(row, puts)], 2**20)[0])

    def read_cells(self, row: bytes) -> Cells:
        return requests.read_cells(self.get(row))

    def scan(self, start: bytes, end: bytes) -> int:
        """The number of rows in a range, read in pages."""
        count = 0
        while True:
            call = requests.scan_call(self.table, CellScan(start, end), PAGE_ROWS)
            rows = self._call(call)
            count += len(rows)
            if len(rows) < PAGE_ROWS:
                return count
            start = rows[-1].row + b"\x00"

    def scan_some(self, start: bytes, end: bytes, count: int) -> Any:
        """The first rows of a range, in one call."""
        return self._call(requests.scan_call(self.table, CellScan(start, end), count))

    def _call(self, call: GatewayCall) -> Any:
        deadline = time.monotonic() + SECONDS_MAX
        self._connection.send_call(call.name, call.arguments, deadline)
        return self._connection.receive_reply(call.name)

    def close(self) -> None:
        self._connection.close()
