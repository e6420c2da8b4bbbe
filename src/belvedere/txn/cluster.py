"""What a store that several processes use shows of them: nodes, their locks, regions."""

from __future__ import annotations

from typing import NamedTuple


class NodeStatus(NamedTuple):
    """A process that uses, or used, the store. `silent_seconds` is how long its heartbeat has not
    changed, as far as this process has seen; `alive`: for less than the lease. Lease and grace are
    those of the database."""

    node: int
    beat: int
    here: bool
    alive: bool
    silent_seconds: float
    oldest_snapshot: int | None
    lease_seconds: float
    grace_seconds: float


class NodeLock(NamedTuple):
    """A lock row and one attempt that holds it. `position`: where it may commit, once known."""

    kind: str
    key: bytes
    node: int
    attempt: int
    side: int
    position: int | None


class StoredSample(NamedTuple):
    """What a process has sampled of a table as of a position, for the others."""

    position: int
    node: int
    data: bytes


class RegionStatus(NamedTuple):
    """A range of keys of a table, and the server that has it."""

    table: str
    start: bytes
    end: bytes
    server: str
