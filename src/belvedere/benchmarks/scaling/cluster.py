"""A simulated HBase: region servers with cores, regions on them, rows that one request at a time
changes. It says when a request is served; the network is that of `kv.doubles.cells_network`.

A request occupies a core of the server that has its region, and, when it changes a row, the row.
What is left of its latency passes without occupying anything: network, gateway, sync of the log.

    system    counter, positions, catalog version, floors, heartbeats: one region
    locks     one region, as the tables are made; or several
    log       the lanes of the log, in four regions
    outcomes  one region, or several
    data      the rows of tables and views, in all other regions, by a hash of their keys
"""

from __future__ import annotations

import heapq
import zlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from belvedere.benchmarks.scaling.service_times import ServiceTimes
from belvedere.kv.cell import CheckAndMutate, Get, Increment, MultiGet, Mutate, Operation
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.hbase_setup import LOG_REGIONS

BATCHED = 0.2
"""Of the occupancy of a get, what each further row of a multi-get adds."""


@dataclass(frozen=True, slots=True)
class ClusterShape:
    """`spread`: over how many regions locks and outcomes are."""

    servers: int
    cores: int = 8
    data_regions: int = 1000
    spread: int = 1


@dataclass(slots=True)
class SimulatedCluster:
    shape: ClusterShape
    times: ServiceTimes
    lanes: int
    busy: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Seconds in which each resource was occupied: rows that everybody changes, and regions."""
    _cores: dict[int, list[float]] = field(default_factory=dict)
    _rows: dict[bytes, float] = field(default_factory=dict)

    def serve(self, operation: Operation, arrives: float) -> float:
        """When a request that arrives at a moment has its effect."""
        match operation:
            case MultiGet(gets):
                return self._serve_gets(gets, arrives)
            case Get():
                return self._serve_gets((operation,), arrives)
            case Increment(row) | Mutate(row) | CheckAndMutate(row):
                return self._serve_change(operation, row, arrives)
            case _:
                return arrives + self.times.get_latency

    def find_busiest(self, seconds: float) -> list[tuple[str, float]]:
        """Resources by the share of the time in which they were occupied."""
        shares = [
            (name, taken / seconds / (1 if name.endswith("row") else self.shape.cores))
            for name, taken in self.busy.items()
        ]
        return sorted(shares, key=lambda pair: -pair[1])

    def _serve_gets(self, gets: tuple[Get, ...], arrives: float) -> float:
        by_region = Counter(self._find_region(get.row) for get in gets)
        occupied = self.times.get_occupancy
        ends = [
            self._occupy_core(region, arrives, occupied * (1 + BATCHED * (count - 1)))
            for region, count in by_region.items()
        ]
        rest = max(0.0, self.times.get_latency - occupied)
        return max(ends, default=arrives) + rest

    def _serve_change(self, operation: Operation, row: bytes, arrives: float) -> float:
        begins = max(arrives, self._rows.get(row, 0.0))
        end = self._occupy_core(self._find_region(row), begins, self.times.change_occupancy)
        latency = self.times.check_latency
        if isinstance(operation, Increment):
            latency = self.times.increment_latency
        elif isinstance(operation, Mutate):
            latency = self.times.put_latency
        shared = _SHARED_ROWS.get(row)
        if shared is not None:
            self.busy[shared] += self.times.row_hold
        self._rows[row] = max(begins, end - self.times.change_occupancy) + self.times.row_hold
        return end + max(0.0, latency - self.times.change_occupancy)

    def _occupy_core(self, region: tuple[str, int], begins: float, seconds: float) -> float:
        cores = self._cores.setdefault(self._find_server(region), [0.0] * self.shape.cores)
        begins = max(begins, heapq.heappop(cores))
        heapq.heappush(cores, begins + seconds)
        self.busy[f"{region[0]} region {region[1]}"] += seconds
        return begins + seconds

    def _find_server(self, region: tuple[str, int]) -> int:
        return zlib.crc32(f"{region[0]}{region[1]}".encode()) % self.shape.servers

    def _find_region(self, row: bytes) -> tuple[str, int]:
        shape = self.shape
        if row.startswith(layout.LOCKS):
            return "lock", zlib.crc32(row) % shape.spread
        if row.startswith(layout.LOG):
            lane = int.from_bytes(row[1:3])
            return "log", lane * LOG_REGIONS // self.lanes
        if row.startswith((layout.OUTCOMES, layout.CHUNKS)):
            return "outcome", zlib.crc32(row) % shape.spread
        if row in _SHARED_ROWS or row[:1] == layout.COUNTER_ROW[:1]:
            return "system", 0
        return "data", zlib.crc32(row) % shape.data_regions


_SHARED_ROWS = {layout.COUNTER_ROW: "counter row", layout.POSITION_ROW: "position row"}
