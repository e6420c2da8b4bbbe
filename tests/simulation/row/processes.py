"""The processes of the explorer's cases: each a function that starts a step of the protocol's own
code.

Most transactions append their name to lists: a list tells who was lost, who came twice and who came
from nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from belvedere.errors import Retry, Unavailable
from belvedere.kv.cell import BeginWork, Mutate, Put, ReplyLost, Step, WorkExpired
from belvedere.txn.row_atomic import bulk_commit, catalog_barrier, read_rows
from belvedere.txn.row_atomic.cells import data_cells, layout, placement
from belvedere.txn.row_atomic.cells.layout import RowWrite
from belvedere.txn.row_atomic.commit import CommitRequest, commit_transaction, prepare_commit
from belvedere.txn.row_atomic.group_commit import GroupMember, complete_group
from belvedere.txn.row_atomic.housekeeping.fold import fold_row
from belvedere.txn.row_atomic.housekeeping.sweep import sweep_locks
from belvedere.txn.row_atomic.housekeeping.vacuum import vacuum_and_trim
from belvedere.txn.row_atomic.load_holds import end_silent_holds
from belvedere.txn.row_atomic.locks import AttemptLocks, RowLock
from belvedere.txn.row_atomic.log import advance
from belvedere.txn.row_atomic.node import Node, NodeSettings, send_heartbeat
from tests.simulation.row.explorer import Outcome
from tests.txn.row_atomic.steps import change_version

TABLE = b"\x10\x00\x00\x00\x64"
INDEX = b"\x10\x00\x00\x00\x65"
END = b"\x11"
LIST = b"l"


def settings() -> NodeSettings:
    return NodeSettings(
        lanes=1,
        lease_seconds=0.0,
        grace_seconds=5.0,
        close_seconds_min=0.0,
        tries_max=2,
    )


def key(name: str) -> bytes:
    return TABLE + name.encode()


def append(
    id_: int,
    name: str,
    keys: Sequence[str],
    config: NodeSettings,
    *,
    newest: bool = False,
    index_from: int = 99,
) -> Callable[[], Step[Outcome]]:
    """A transaction that appends its name to every list in `keys`, under one lock each; from
    catalog version `index_from` on it also maintains an index of the rows."""

    def start() -> Step[Outcome]:
        node = Node(id_, config)
        return (yield from _append(node, name, keys, newest, index_from))

    return start


def _append(
    node: Node, name: str, keys: Sequence[str], newest: bool, index_from: int
) -> Step[Outcome]:
    version = yield from catalog_barrier.read_version()
    at = yield from (advance.latest_position(node) if newest else advance.snapshot_position(node))
    found = yield from read_rows.get_rows([key(k) for k in keys], at)
    writes = []
    for k, row in zip(keys, found):
        old = row.columns[LIST] if row else b""
        writes.append(data_cells.put_row(key(k), {LIST: old + name.encode()}))
        if version >= index_from:
            writes.append(data_cells.put_row(INDEX + k.encode(), {LIST: old + name.encode()}))
    taken = tuple(RowLock(layout.lock_row("root", k.encode())) for k in keys)
    return (yield from _end(node, CommitRequest(name.encode(), at, version, taken, tuple(writes))))


def load(
    id_: int, name: str, keys: Sequence[str], config: NodeSettings
) -> Callable[[], Step[Outcome]]:
    """The same as a bulk load: a hold on the table in place of locks for the rows. Each has a lock
    of its own, as loads of tables that overlap may have."""

    def start() -> Step[Outcome]:
        node = Node(id_, config)
        version = yield from catalog_barrier.read_version()
        at = yield from advance.snapshot_position(node)
        found = yield from read_rows.get_rows([key(k) for k in keys], at)
        lists = [row.columns[LIST] if row else b"" for row in found]
        writes = tuple(
            data_cells.put_row(key(k), {LIST: old + name.encode()}) for k, old in zip(keys, lists)
        )
        lock = RowLock(layout.lock_row(catalog_barrier.LOAD, name.encode()))
        work = CommitRequest(name.encode(), at, version, (lock,), writes)
        held = AttemptLocks(node.start_attempt(), version)
        try:
            record = yield from bulk_commit.hold_and_verify(
                node, held, work, {placement.relation_of(TABLE)}
            )
            return ("committed", (yield from bulk_commit.complete_bulk(node, held, record)))
        except Retry:
            return ("aborted",)
        except Unavailable:
            return ("unknown",)

    return start


def hold_sweeper(id_: int, config: NodeSettings) -> Callable[[], Step[Outcome]]:
    """Ends the holds of attempts that nobody goes on with."""

    def start() -> Step[Outcome]:
        yield from end_silent_holds(Node(id_, config))
        return ("swept",)

    return start


def end_holds_and_append(
    id_: int, name: str, keys: Sequence[str], config: NodeSettings
) -> Callable[[], Step[Outcome]]:
    """A writer that first ends the load that holds the table."""

    def start() -> Step[Outcome]:
        node = Node(id_, config)
        yield from end_silent_holds(node)
        return (yield from _append(node, name, keys, False, 99))

    return start


def append_newest(
    id_: int, name: str, keys: Sequence[str], config: NodeSettings
) -> Callable[[], Step[Outcome]]:
    """The same, but the lists are read only once the locks are held, as derived rows are: nothing
    but the locks protects it."""

    def start() -> Step[Outcome]:
        node = Node(id_, config)
        at = yield from advance.snapshot_position(node)
        work = replace(_reading_late(name, keys), snapshot=at)
        return (yield from _end(node, work))

    return start


def group(
    id_: int, wrote: dict[str, Sequence[str]], config: NodeSettings
) -> Callable[[], Step[Outcome]]:
    """Transactions of one node that go through the log together, each with all its locks held."""

    def start() -> Step[Outcome]:
        node = Node(id_, config)
        members: dict[str, GroupMember] = {}
        for name, keys in wrote.items():
            held = AttemptLocks(node.start_attempt(), 0)
            try:
                record = yield from prepare_commit(node, held, _reading_late(name, keys))
            except Retry:
                continue
            members[name] = GroupMember(held, record)
        if members:
            yield from complete_group(node, tuple(members.values()))
        return ("group", *(_fate(members.get(name)) for name in wrote))

    return start


def _fate(member: GroupMember | None) -> Outcome:
    if member is None or isinstance(member.error, Retry):
        return ("aborted",)
    return ("committed", member.position) if member.committed else ("unknown",)


def _reading_late(name: str, keys: Sequence[str]) -> CommitRequest:
    def derive() -> Step[tuple[RowWrite, ...]]:
        found = yield from read_rows.get_rows([key(k) for k in keys], None)
        lists = [row.columns[LIST] if row else b"" for row in found]
        return tuple(
            data_cells.put_row(key(k), {LIST: old + name.encode()}) for k, old in zip(keys, lists)
        )

    taken = tuple(RowLock(layout.lock_row("root", k.encode())) for k in keys)
    return CommitRequest(name.encode(), 0, 0, taken, (), derive=derive)


def _end(node: Node, work: CommitRequest) -> Step[Outcome]:
    try:
        position = yield from commit_transaction(node, work)
    except Retry:
        return ("aborted",)
    except Unavailable:
        return ("unknown",)
    return ("committed", position)


def add(
    id_: int, name: str, config: NodeSettings, fold_after: bool = False
) -> Callable[[], Step[Outcome]]:
    """A transaction that adds one to the sum 's', under a root of its own."""

    def start() -> Step[Outcome]:
        node = Node(id_, config)
        at = yield from advance.snapshot_position(node)
        lock = RowLock(layout.lock_row("root", name.encode()))
        work = CommitRequest(
            name.encode(), at, 0, (lock,), (data_cells.add_to_sum(key("s"), b"", (1,)),)
        )
        outcome = yield from _end(node, work)
        if fold_after:
            yield from fold_row(key("s"))
        return outcome

    return start


def reader(
    id_: int, keys: Sequence[str], config: NodeSettings, *, newest: bool = True
) -> Callable[[], Step[Outcome]]:
    """Reads the lists at one position, closing and helping as needed."""

    def start() -> Step[Outcome]:
        node = Node(id_, config)
        at = yield from (
            advance.latest_position(node) if newest else advance.snapshot_position(node)
        )
        found = yield from read_rows.get_rows([key(k) for k in keys], at)
        return ("read", at, *(row.columns[LIST] if row else b"" for row in found))

    return start


def folder(id_: int, config: NodeSettings) -> Callable[[], Step[Outcome]]:
    def start() -> Step[Outcome]:
        yield from advance.latest_position(Node(id_, config))
        try:
            return ("folded", (yield from fold_row(key("s"))))
        except WorkExpired:
            return ("folded", 0)

    return start


def forgetter(id_: int, config: NodeSettings) -> Callable[[], Step[Outcome]]:
    """Forgets as much as it may: old versions and the log."""

    def start() -> Step[Outcome]:
        node = Node(id_, config)
        at = yield from advance.latest_position(node)
        floors = yield from vacuum_and_trim(node, TABLE, END, at, at)
        return ("forgot", floors.versions)

    return start


def fold_and_forget(id_: int, config: NodeSettings) -> Callable[[], Step[Outcome]]:
    def start() -> Step[Outcome]:
        yield from folder(id_, config)()
        return (yield from forgetter(id_, config)())

    return start


def delete_and_forget(id_: int, config: NodeSettings) -> Callable[[], Step[Outcome]]:
    """Deletes 'x', whatever is there, then forgets as much as it may."""

    def start() -> Step[Outcome]:
        node = Node(id_, config)
        at = yield from advance.latest_position(node)
        lock = RowLock(layout.lock_row("root", b"x"))
        work = CommitRequest(b"d", at, 0, (lock,), (), derive=derive)
        outcome = yield from _end(node, work)
        yield from forgetter(id_ + 1, config)()
        return outcome

    def derive() -> Step[tuple[RowWrite, ...]]:
        yield from read_rows.get_rows([key("x")], None)
        return (data_cells.delete_row(key("x")),)

    return start


def forget_and_append(id_: int, name: str, config: NodeSettings) -> Callable[[], Step[Outcome]]:
    """Forgets as much as it may, then writes itself, breaking whatever is in its way."""

    def start() -> Step[Outcome]:
        yield from forgetter(id_, config)()
        return (yield from append_newest(id_ + 1, name, "x", config)())

    return start


def beat_and_append(id_: int, name: str, config: NodeSettings) -> Callable[[], Step[Outcome]]:
    """A node that is heard of once, before it writes."""

    def start() -> Step[Outcome]:
        with suppress(ReplyLost, WorkExpired):
            yield from send_heartbeat(Node(id_, config))
        return (yield from append_newest(id_, name, "x", config)())

    return start


def sweep_and_append(id_: int, name: str, config: NodeSettings) -> Callable[[], Step[Outcome]]:
    """Sweeps up after everybody, who is noted as gone, then writes itself."""

    def start() -> Step[Outcome]:
        try:
            yield from sweep_locks(Node(id_, config))
        except WorkExpired:
            return ("aborted",)
        return (yield from append_newest(id_ + 1, name, "x", config)())

    return start


def indexer(id_: int, keys: Sequence[str], config: NodeSettings) -> Callable[[], Step[Outcome]]:
    """DDL: a new catalog version under which writers maintain an index; then its backfill."""

    def start() -> Step[Outcome]:
        node = Node(id_, config)
        version = yield from change_version(0)
        at = yield from catalog_barrier.wait_for_older_locks(node, version)
        found = yield from read_rows.get_rows([key(k) for k in keys], at)
        yield BeginWork()
        for k, row in zip(keys, found):
            if row is not None:
                marker = Put(data_cells.MARKER, at, b"+" + at.to_bytes(8))
                yield Mutate(INDEX + k.encode(), (marker, Put(LIST, at, row.columns[LIST])))
        return ("indexed", at)

    return start
