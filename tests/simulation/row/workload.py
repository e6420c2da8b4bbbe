"""Transactions for the simulation: transfers, lists, counters, the same key under different roots,
parents and children, and DDL. Each records what it read and wrote, for the history checker.

Rows, all in one table; the root of each kind of row is given in brackets:

    a0..    accounts with a balance [itself]        l0..  lists of names [itself], indexed under DDL
    u0..    unique keys [the node of the writer], claimed      s   a sum, added to [the writer's
    own] p0..    parents [itself]            c<p>/<n>  children [the writer's own], guarded by their
    parent
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from belvedere.errors import InvalidInput
from belvedere.kv.cell import BeginWork, Step
from belvedere.txn.row_atomic import catalog_barrier, read_rows
from belvedere.txn.row_atomic.cells import data_cells, layout
from belvedere.txn.row_atomic.cells.layout import RowWrite
from belvedere.txn.row_atomic.commit import CommitRequest, RowExpectation
from belvedere.txn.row_atomic.locks import RowLock
from belvedere.txn.row_atomic.log import advance
from belvedere.txn.row_atomic.node import Node
from tests.txn.row_atomic.steps import change_version

TABLE = b"\x10\x00\x00\x00\x64"
TABLE_END = b"\x10\x00\x00\x00\x65"
VALUE = b"v"
ACCOUNTS, BALANCE = 6, 100
LISTS, UNIQUES, PARENTS = 3, 3, 2
ROWS_MAX = 100_000
"""More rows than a range of the workload ever has, deleted ones included."""


@dataclass(slots=True)
class Transaction:
    """What a client knows of one transaction. `reads`: key to value as of `snapshot`; `writes`: key
    to new value, None for a delete; `added`: to the sum. `outcome`: committed, aborted, refused,
    unknown."""

    name: str
    kind: str
    snapshot: int = -1
    reads: dict[str, str | None] = field(default_factory=dict)
    writes: dict[str, str | None] = field(default_factory=dict)
    added: int = 0
    outcome: str = ""
    position: int = 0
    token: int = 0


def row_key(name: str) -> bytes:
    return TABLE + name.encode()


def index_key(version: int, name: str) -> bytes:
    return b"\x10" + (0x1000 + version).to_bytes(4) + name.encode()


def root(name: str) -> RowLock:
    return RowLock(layout.lock_row("root", name.encode()))


class Kinds:
    """Builds the work of one transaction at a snapshot; `body` is a step because it reads."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def pick(self) -> str:
        return self.random.choices(
            ("transfer", "append", "add", "claim", "child", "parent", "look"),
            (20, 30, 15, 12, 10, 5, 8),
        )[0]

    def body(
        self, node: Node, transaction: Transaction, version: int
    ) -> Step[CommitRequest | None]:
        method: Callable[[Node, Transaction, int], Step[CommitRequest | None]]
        method = getattr(self, "_" + transaction.kind)
        return method(node, transaction, version)

    def _get(self, transaction: Transaction, *names: str) -> Step[list[str | None]]:
        found = yield from read_rows.get_rows(
            [row_key(name) for name in names], transaction.snapshot
        )
        values = [row.columns[VALUE].decode() if row else None for row in found]
        transaction.reads.update(zip(names, values))
        return values

    def _work(
        self,
        transaction: Transaction,
        version: int,
        locks: list[RowLock],
        expects: tuple[RowExpectation, ...] = (),
        derive: Callable[[], Step[tuple[RowWrite, ...]]] | None = None,
    ) -> CommitRequest:
        writes: list[RowWrite] = []
        for name, value in transaction.writes.items():
            writes.append(_write(row_key(name), value))
            if name.startswith("l"):
                writes.append(_write(index_key(version, name), value))
        if transaction.added:
            writes.append(data_cells.add_to_sum(row_key("s"), b"s", (transaction.added,)))
        return CommitRequest(
            transaction.name.encode(),
            transaction.snapshot,
            version,
            tuple(locks),
            tuple(writes),
            expects,
            derive,
        )

    def _transfer(self, node: Node, transaction: Transaction, version: int) -> Step[CommitRequest]:
        names = [f"a{n}" for n in self.random.sample(range(ACCOUNTS), 2)]
        left, right = yield from self._get(transaction, *names)
        amount = self.random.randint(1, 9)
        transaction.writes[names[0]] = str(int(left or BALANCE) - amount)
        transaction.writes[names[1]] = str(int(right or BALANCE) + amount)
        return self._work(transaction, version, [root(name) for name in names])

    def _append(self, node: Node, transaction: Transaction, version: int) -> Step[CommitRequest]:
        names = [f"l{n}" for n in self.random.sample(range(LISTS), self.random.randint(1, 2))]
        for name, old in zip(names, (yield from self._get(transaction, *names))):
            transaction.writes[name] = f"{old or ''}{transaction.name} "
        return self._work(transaction, version, [root(name) for name in names])

    def _add(self, node: Node, transaction: Transaction, version: int) -> Step[CommitRequest]:
        yield from self._get(transaction, "a0")
        transaction.added = 1
        return self._work(transaction, version, [root(f"own {transaction.name}")])

    def _claim(self, node: Node, transaction: Transaction, version: int) -> Step[CommitRequest]:
        """Insert a key, or delete it if it is there: under the writer's root, so only the claim
        excludes."""
        name = f"u{self.random.randrange(UNIQUES)}"
        (old,) = yield from self._get(transaction, name)
        transaction.writes[name] = None if old else transaction.name
        claim = RowLock(layout.lock_row("claim", name.encode()))
        expect = RowExpectation(row_key(name), old is not None, InvalidInput("duplicate key"))
        locks = [root(f"node {node.id} {self.random.randrange(2)}"), claim]
        return self._work(transaction, version, locks, (expect,))

    def _child(self, node: Node, transaction: Transaction, version: int) -> Step[CommitRequest]:
        parent = f"p{self.random.randrange(PARENTS)}"
        child = f"c{parent}/{self.random.randrange(3)}"
        _, old = yield from self._get(transaction, parent, child)
        transaction.writes[child] = None if old else transaction.name
        guard = RowLock(layout.lock_row("guard", parent.encode()), side=1)
        expects = () if old else (RowExpectation(row_key(parent), True, InvalidInput("no parent")),)
        claim = RowLock(layout.lock_row("claim", child.encode()))
        return self._work(transaction, version, [claim, guard], expects)

    def _parent(self, node: Node, transaction: Transaction, version: int) -> Step[CommitRequest]:
        """Insert a parent, or delete it if it has no children when the guard is held."""
        name = f"p{self.random.randrange(PARENTS)}"
        (old,) = yield from self._get(transaction, name)
        transaction.writes[name] = None if old else transaction.name
        locks = [root(name), RowLock(layout.lock_row("guard", name.encode()), side=2)]

        def no_children() -> Step[tuple[RowWrite, ...]]:
            start = row_key(f"c{name}/")
            found, _ = yield from read_rows.scan_rows(
                start, start + b"\xff", None, limit=ROWS_MAX, reverse=False
            )
            if found:
                raise InvalidInput("has children")
            return ()

        derive = no_children if old else None
        return self._work(transaction, version, locks, (), derive)

    def _look(self, node: Node, transaction: Transaction, version: int) -> Step[None]:
        """A reader of everything, at one position."""
        names = [f"a{n}" for n in range(ACCOUNTS)] + [f"l{n}" for n in range(LISTS)]
        names += [f"u{n}" for n in range(UNIQUES)]
        for n in range(PARENTS):
            names += [f"p{n}", *(f"cp{n}/{child}" for child in range(3))]
        yield from self._get(transaction, *names)
        row = yield from read_rows.get_row(row_key("s"), transaction.snapshot)
        transaction.reads["s"] = str(row.sum.amounts[0]) if row and row.sum else None


def _write(key: bytes, value: str | None) -> RowWrite:
    return (
        data_cells.delete_row(key)
        if value is None
        else data_cells.put_row(key, {VALUE: value.encode()})
    )


def create_index(node: Node) -> Step[tuple[int, int]]:
    """DDL: from the new version on, writers keep the index of that version; then backfill it."""
    version = yield from catalog_barrier.read_version()
    new = yield from change_version(version)
    at = yield from catalog_barrier.wait_for_older_locks(node, new)
    found = yield from read_rows.get_rows([row_key(f"l{n}") for n in range(LISTS)], at)
    writes = []
    for n, row in enumerate(found):
        if row is not None:
            writes.append(_write(index_key(new, f"l{n}"), row.columns[VALUE].decode()))
    if not writes:
        return new, at
    record = layout.Record(0, f"backfill {new}".encode(), new, 0, tuple(writes))
    yield BeginWork()
    yield from advance.write_cells(at, record)
    return new, at
