"""A simulated HBase: region servers with cores, regions on them, rows that one request at a time
changes. It says when a request is served; the network is that of `kv.doubles.cells_network`.

A request occupies a core of the server that has its region, and, when it changes a row, the row.
What is left of its latency passes without occupying anything: network, gateway, sync of the log.

The regions of the commit's own rows are those with which the tables are made (`hbase_setup`). The
rows of tables and views are in as many data regions, by a hash of their keys. Regions lie on
servers by a hash of their names.
"""

from __future__ import annotations

import heapq
import zlib
from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from belvedere.benchmarks.scaling.service_times import ServiceTimes
from belvedere.codec import keyspace
from belvedere.kv.cell import CheckAndMutate, Get, Increment, MultiGet, Mutate, Operation
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.hbase_setup import LANES_MIN, SPREAD_REGIONS, build_table_layout
from belvedere.txn.row_atomic.node import NodeSettings

BATCHED = 0.2
"""Of the occupancy of a get, what each further row of a multi-get adds."""

_FAMILIES = {layout.LOCKS: "locks", layout.LOG: "log", layout.OUTCOMES: "outcomes"}


@dataclass(frozen=True, slots=True)
class ClusterShape:
    """`regions`: over how many each of locks, log and outcomes is spread (`regions` of the URL)."""

    servers: int
    cores: int = 8
    data_regions: int = 1000
    regions: int = SPREAD_REGIONS

    @property
    def lanes(self) -> int:
        return max(LANES_MIN, self.regions)


@dataclass(slots=True)
class SimulatedCluster:
    shape: ClusterShape
    times: ServiceTimes
    busy: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Seconds in which each resource was occupied: rows that everybody changes, and servers."""
    _cores: dict[int, list[float]] = field(default_factory=dict)
    _rows: dict[bytes, float] = field(default_factory=dict)
    _splits: tuple[bytes, ...] = ()
    _servers: dict[str, int] = field(default_factory=dict)
    _hosted: dict[int, dict[str, float]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(float))
    )

    def __post_init__(self) -> None:
        settings = NodeSettings(lanes=self.shape.lanes)
        self._splits = build_table_layout(settings, self.shape.regions).system_splits

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

    def forget_past(self) -> None:
        self.busy.clear()
        self._hosted.clear()

    def find_busiest(self, seconds: float) -> list[tuple[str, float]]:
        """Rows that everybody changes, and the busiest server, by the share of the time in which
        they were occupied. The server is named by the region that kept it busy most."""
        shares = [(name, taken / seconds) for name, taken in self.busy.items()]
        for regions in self._hosted.values():
            name = max(regions, key=lambda each: regions[each])
            shares.append((f"server of {name}", sum(regions.values()) / seconds / self.shape.cores))
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

    def _occupy_core(self, region: str, begins: float, seconds: float) -> float:
        server = self._servers.get(region)
        if server is None:
            server = self._servers[region] = zlib.crc32(region.encode()) % self.shape.servers
        cores = self._cores.setdefault(server, [0.0] * self.shape.cores)
        begins = max(begins, heapq.heappop(cores))
        heapq.heappush(cores, begins + seconds)
        self._hosted[server][region] += seconds
        return begins + seconds

    def _find_region(self, row: bytes) -> str:
        if row[0] in (keyspace.ROWS, keyspace.SPREAD_ROWS):
            return f"data {zlib.crc32(row) % self.shape.data_regions}"
        number = bisect_right(self._splits, row)
        family = _FAMILIES.get(row[:1])
        return f"{family} {number}" if family else _SYSTEM_REGIONS.get(row, f"system {number}")


_SHARED_ROWS = {layout.COUNTER_ROW: "counter row", layout.POSITION_ROW: "position row"}
_SYSTEM_REGIONS = {
    layout.COUNTER_ROW: "counter",
    layout.POSITION_ROW: "positions",
    layout.CATALOG_ROW: "catalog version",
    layout.FLOOR_ROW: "floors",
}
"""Each in a region of its own, with next to nothing else."""
