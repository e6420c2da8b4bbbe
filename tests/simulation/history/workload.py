"""Sessions that run random transactions and write down what they saw.

A transaction is a generator that yields between its statements, so that one thread may run it to
its end, or a scheduler may run several of them step by step. What a lock keeps it from doing now,
it yields BLOCKED for and tries again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from belvedere.database import Database
from belvedere.errors import InvalidInput, Retry, Unavailable
from belvedere.txn import contracts
from belvedere.txn.contracts import Reader
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row
from tests.simulation.history.events import ABORTED, COMMITTED, UNKNOWN, HistoryFile, Op, Txn
from tests.simulation.history.schema import (
    ACCOUNTS,
    COUNTERS,
    LISTS,
    OWNERS,
    SHIFTS,
    append_to_list,
    delete_row,
    get_row,
    insert_row,
    put_row,
    read_list,
    scan_index,
    scan_lists,
    scan_table,
    swap_list,
)

T = TypeVar("T")
Steps = Iterator[str]
STEP, BLOCKED = "step", "blocked"
SWAP = "swap"

ISOLATION = {
    level.name: level
    for level in (contracts.READ_COMMITTED, contracts.SNAPSHOT, contracts.SERIALIZABLE)
}


# -- sessions ---------------------------------------------------------------------------------


@dataclass(slots=True)
class Shared:
    """What the sessions of one run have in common. `first` keeps numbers of runs apart."""

    database: Database
    level: str
    history: list[Txn] = field(default_factory=list)
    file: HistoryFile | None = None
    first: int = 0
    clock: Iterator[int] = field(init=False)
    numbers: Iterator[int] = field(init=False)
    names: Iterator[int] = field(init=False)
    timeouts: int = 0

    def __post_init__(self) -> None:
        self.clock = count(self.first)
        self.numbers = count(self.first + 1)
        self.names = count(self.first + 1)


class GaveUp(Exception):
    """A lock was not to be had in all the tries there are."""


@dataclass(slots=True)
class Session:
    """One client. `tries` is how often a blocked statement is tried again."""

    name: str
    shared: Shared
    rng: random.Random
    kinds: tuple[str, ...]
    tries: int = 0
    done: int = 0
    txn: Transaction | None = None
    record: Txn | None = None

    def one_transaction(self) -> Steps:
        """Run one random transaction to its end, whatever that is."""
        kind = self.rng.choice(self.kinds)
        if kind == SWAP:
            yield from self.one_swap()
            return
        self.done += 1
        shared = self.shared
        record = self.record = Txn(
            f"{self.name}.{self.done}", self.name, shared.level, next(shared.clock)
        )
        txn = self.txn = shared.database.begin(ISOLATION[shared.level])
        record.snapshot = txn.position
        asked = False
        try:
            yield from WORK[kind](self)
            yield STEP
            asked = True
            self._note(record)
            committed = txn.commit()
            record.position = committed.position if committed.time else 0
            record.outcome = COMMITTED
        except (Retry, InvalidInput, GaveUp):
            record.outcome = ABORTED
        except Unavailable as error:
            shared.timeouts += error.sqlstate == "55P03"
            record.outcome = UNKNOWN if asked else ABORTED
        finally:
            self._end(record, txn)

    def one_swap(self) -> Steps:
        """Append to a list by a single-row commit, which reads what the commit before it left."""
        self.done += 1
        shared, id_ = self.shared, self.rng.choice(LISTS)
        element = next(shared.numbers)
        record = Txn(f"{self.name}.{self.done}", self.name, shared.level, next(shared.clock))

        def asked(seen: list[int]) -> None:
            record.ops = [Op("read", id_, seen), Op("append", id_, element)]
            self._note(record)

        position = None
        try:
            for _ in range(self.tries + 1):
                yield STEP
                try:
                    position = swap_list(shared.database, id_, element, asked)
                    break
                except Unavailable as error:
                    if error.sqlstate != "55P03":
                        raise
            record.outcome = ABORTED if position is None else COMMITTED
            record.position = position or 0
            record.snapshot = position - 1 if position else 0
        except Unavailable:
            pass  # the outcome stays unknown
        record.ended = next(shared.clock)
        shared.history.append(record)
        self._note(record)

    def _end(self, record: Txn, txn: Transaction) -> None:
        txn.rollback()
        record.ended = next(self.shared.clock)
        self.shared.history.append(record)
        self._note(record)
        self.txn = self.record = None

    def _note(self, record: Txn) -> None:
        if self.shared.file is not None:
            self.shared.file.note(record)

    def told(self, kind: str, key: Any, value: Any) -> None:
        assert self.record is not None
        self.record.ops.append(Op(kind, key, value))

    def statement(self, action: Callable[[Transaction], T]) -> Iterator[str]:
        """Run one statement; the result is in `yield from`. Others may run before it."""
        assert self.txn is not None
        yield STEP
        self.txn.begin_statement()
        for _ in range(self.tries):
            try:
                return action(self.txn)
            except Unavailable as error:
                if error.sqlstate != "55P03":
                    raise
            yield BLOCKED
        if not self.tries:
            return action(self.txn)
        raise GaveUp

    def aborted_append(self, id_: int, element: int) -> None:
        """Write down an append that a ROLLBACK TO took back: nobody may ever see it."""
        assert self.record is not None
        undone = Txn(
            f"{self.record.id}/undone{element}", "undone", self.shared.level, 0, 0, ABORTED
        )
        undone.ops.append(Op("append", id_, element))
        self.shared.history.append(undone)
        self._note(undone)


# -- transactions -----------------------------------------------------------------------------


def _append(session: Session, id_: int) -> Steps:
    element = next(session.shared.numbers)
    seen = yield from session.statement(lambda txn: append_to_list(txn, id_, element))
    session.told("read", id_, seen)
    session.told("append", id_, element)


def _read(session: Session, id_: int) -> Steps:
    by_index = session.rng.random() < 0.4
    seen = yield from session.statement(lambda txn: read_list(txn, id_, by_index))
    session.told("read", id_, seen)


def _read_all(session: Session) -> Steps:
    by_index, reverse = session.rng.random() < 0.3, session.rng.random() < 0.5
    how = {} if by_index else {"reverse": reverse}
    seen = yield from session.statement(lambda txn: scan_lists(txn, by_index, **how))
    session.told("scan", None, seen)


def lists(session: Session) -> Steps:
    """Reads of and appends to several lists."""
    for _ in range(session.rng.randint(1, 5)):
        kind = session.rng.random()
        id_ = session.rng.choice(LISTS)
        if kind < 0.4:
            yield from _append(session, id_)
        elif kind < 0.8:
            yield from _read(session, id_)
        else:
            yield from _read_all(session)


def skew(session: Session) -> Steps:
    """Read one list, or all of them, and append to another."""
    one, other = session.rng.sample(LISTS, 2)
    if session.rng.random() < 0.5:
        yield from _read(session, one)
    else:
        yield from _read_all(session)
    yield from _append(session, other)


def second_thoughts(session: Session) -> Steps:
    """Append, take it back, append again; nested."""
    assert session.txn is not None
    txn, id_ = session.txn, session.rng.choice(LISTS)
    yield from _append(session, id_)
    outer = txn.set_savepoint()
    for _ in range(session.rng.randint(1, 2)):
        element = next(session.shared.numbers)
        session.aborted_append(id_, element)
        yield from session.statement(lambda txn, element=element: append_to_list(txn, id_, element))
        if session.rng.random() < 0.5:
            txn.set_savepoint()
    txn.rollback_to(outer)
    yield from _read(session, id_)
    if session.rng.random() < 0.5:
        yield from _append(session, session.rng.choice(LISTS))


def transfer(session: Session) -> Steps:
    one, other = session.rng.sample(ACCOUNTS, 2)
    amount = session.rng.randint(1, 30)

    def move(txn: Transaction, id_: int, by: int) -> None:
        row = get_row(txn, "account", id_)
        assert row is not None
        put_row(txn, "account", (id_, row[1], row[2] + by))

    yield from session.statement(lambda txn: move(txn, one, -amount))
    yield from session.statement(lambda txn: move(txn, other, amount))


def _balances(reader: Reader, by_index: bool) -> list[int]:
    if by_index:
        return [
            balance for _, _, balance in sorted(scan_index(reader, "by_branch"), key=lambda e: e[1])
        ]
    return [balance for _, _, balance in scan_table(reader, "account")]


def audit(session: Session) -> Steps:
    def look(txn: Transaction) -> list[list[int]]:
        return [_balances(txn, by_index) for by_index in (False, True)]

    for _ in range(2):
        base, copy = yield from session.statement(look)
        session.told("total", None, sum(base))
        session.told("mirror", "by_branch", [base, copy])


def increment(session: Session) -> Steps:
    id_ = session.rng.choice(COUNTERS)

    def add(txn: Transaction) -> int:
        row = get_row(txn, "counter", id_)
        assert row is not None
        put_row(txn, "counter", (id_, row[1] + 1))
        return row[1]

    seen = yield from session.statement(add)
    session.told("count", id_, seen)
    session.told("add", id_, 1)


def insert_same_key(session: Session) -> Steps:
    """A key that others may want too, under a root of its own."""
    key = max(1, next(session.shared.names) // 3)
    owner = session.rng.choice(OWNERS)
    yield from session.statement(lambda txn: insert_row(txn, "item", (key, owner)))
    session.told("insert", key, owner)


def claim_value(session: Session) -> Steps:
    number = next(session.shared.names)
    value = f"code {number // 3}"
    id_ = 1000 + number
    yield from session.statement(lambda txn: insert_row(txn, "owner", (id_, value)))
    session.told("claim", value, id_)


def _family(reader: Reader) -> list[Any]:
    parents = [row[0] for row in scan_table(reader, "parent")]
    return [parents, [[id_, parent] for id_, _, parent in scan_table(reader, "child")]]


def family(session: Session) -> Steps:
    """Parents and children come and go, under roots that have nothing in common."""
    parents, children = seen = yield from session.statement(_family)
    session.told("family", None, seen)
    what = session.rng.random()
    if what < 0.3 or not parents:
        new = session.rng.randrange(4)
        if new not in parents:
            yield from session.statement(lambda txn: insert_row(txn, "parent", (new,)))
    elif what < 0.6:
        child = (
            next(session.shared.numbers),
            session.rng.choice(OWNERS),
            session.rng.choice(parents),
        )
        yield from session.statement(lambda txn: insert_row(txn, "child", child))
    elif what < 0.8 and children:
        gone = session.rng.choice(children)[0]
        yield from session.statement(lambda txn: delete_row(txn, "child", gone))
    else:
        childless = [p for p in parents if p not in [parent for _, parent in children]]
        if childless:
            gone = session.rng.choice(childless)
            yield from session.statement(lambda txn: delete_row(txn, "parent", gone))


def on_call(session: Session) -> Steps:
    """Who is on call may leave when somebody else is, too."""
    shift = session.rng.choice(SHIFTS)

    def look(txn: Transaction) -> list[Row]:
        return [row for row in scan_table(txn, "staff") if row[1] == shift]

    staff = yield from session.statement(look)
    there = [row for row in staff if row[2]]
    session.told("shift", shift, len(there))
    row = session.rng.choice(there if len(there) > 1 else staff)
    wanted = 0 if len(there) > 1 else 1
    yield from session.statement(lambda txn: put_row(txn, "staff", (row[0], shift, wanted)))


WORK: dict[str, Callable[[Session], Steps]] = {
    work.__name__: work
    for work in (
        lists,
        skew,
        second_thoughts,
        transfer,
        audit,
        increment,
        insert_same_key,
        claim_value,
        family,
        on_call,
    )
}


def last_look(shared: Shared) -> None:
    """Everything as it is in the end, by one snapshot, from tables and indexes."""
    began = next(shared.clock)
    with shared.database.begin() as txn:
        record = Txn(f"last look {began}", "last look", shared.level, began, 0, COMMITTED)
        record.snapshot = txn.position
        found, copy = scan_lists(txn), scan_lists(txn, by_index=True)
        balances = [_balances(txn, by_index) for by_index in (False, True)]
        record.ops += [Op("scan", None, found), Op("mirror", "by_alias", [found, copy])]
        record.ops += [Op("total", None, sum(balances[0])), Op("mirror", "by_branch", balances)]
        record.ops += [Op("count", id_, value) for id_, value in scan_table(txn, "counter")]
        record.ops.append(Op("family", None, _family(txn)))
        record.ops.append(Op("inserts", None, [list(row) for row in scan_table(txn, "item")]))
        claims = [[code, id_] for id_, code in scan_table(txn, "owner") if code is not None]
        record.ops.append(Op("claims", None, claims))
        codes = [[code, id_] for code, id_ in scan_index(txn, "owner_code_key") if code is not None]
        record.ops.append(Op("mirror", "owner_code_key", [sorted(claims), sorted(codes)]))
    record.ended = next(shared.clock)
    shared.history.append(record)
    if shared.file is not None:
        shared.file.note(record)
