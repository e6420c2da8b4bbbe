"""Short words for tests of single steps: run one on a store, with a clock that stands still."""

from __future__ import annotations

from typing import Any

from belvedere.errors import Retry
from belvedere.kv.cell import BeginWork, CheckAndMutate, Driver, Put, ReplyLost, Step, WorkExpired
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.txn.row_atomic.cells import data_cells, layout
from belvedere.txn.row_atomic.commit import CommitRequest
from belvedere.txn.row_atomic.locks import RowLock
from belvedere.txn.row_atomic.log import advance
from belvedere.txn.row_atomic.node import Node, NodeSettings

TABLE = b"\x10\x00\x00\x00\x64"


class Bench:
    """A store, a clock to be moved by hand, and as many nodes as wanted."""

    def __init__(self, **settings: Any) -> None:
        self.store = MemoryCells()
        self.now = 0.0
        self.settings = NodeSettings(**settings)
        self.round_trips = 0

    def node(self, id_: int) -> Node:
        return Node(id_, self.settings)

    def run(self, step: Step[Any]) -> Any:
        driver = Driver(self.store, lambda: self.now, self._sleep, 2.0)
        try:
            return driver.run_step(step)
        finally:
            self.round_trips = driver.round_trips

    def _sleep(self, seconds: float) -> None:
        self.now += seconds


def key(name: str) -> bytes:
    return TABLE + name.encode()


def root(name: str) -> bytes:
    return layout.lock_row("root", name.encode())


def work(name: str, at: int, *rows: str, value: bytes = b"v", **more: Any) -> CommitRequest:
    """A transaction that writes `rows`, each under its own root lock."""
    more.setdefault("locks", tuple(RowLock(root(row)) for row in rows))
    more.setdefault("writes", tuple(data_cells.put_row(key(row), {b"c": value}) for row in rows))
    return CommitRequest(name.encode(), at, 0, **more)


def latest(bench: Bench, node: Node) -> int:
    found: int = bench.run(advance.latest_position(node))
    return found


def change_version(seen: int) -> Step[int]:
    """A catalog change without catalog rows: `seen` + 1 becomes the version. Retry when somebody
    else did, or may have done, so."""
    new = seen + 1
    expected = seen.to_bytes(8) if seen else None
    put = Put(layout.VERSION, layout.ONLY, new.to_bytes(8))
    yield BeginWork()
    try:
        won = yield CheckAndMutate(layout.CATALOG_ROW, layout.VERSION, expected, (put,))
    except (ReplyLost, WorkExpired):
        won = False
    if not won:
        raise Retry("catalog changed", seen=seen)
    return new
