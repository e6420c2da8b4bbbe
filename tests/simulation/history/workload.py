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

from belvedere.catalog.definitions import (
    ColumnDefinition,
    ForeignKeyDefinition,
    IndexDefinition,
    KeyPartDefinition,
    TableDefinition,
    UniqueDefinition,
)
from belvedere.catalog.edit import Edit
from belvedere.catalog.model import Index, Table
from belvedere.catalog.relation import compiled_index, compiled_table
from belvedere.database import Database
from belvedere.errors import InvalidInput, Retry, Unavailable
from belvedere.txn import border, rows
from belvedere.txn.border import Reader
from belvedere.txn.transaction import Transaction
from belvedere.types import BIGINT, TEXT, Row
from tests.simulation.history.events import ABORTED, COMMITTED, UNKNOWN, HistoryFile, Op, Txn

T = TypeVar("T")
Steps = Iterator[str]
STEP, BLOCKED = "step", "blocked"

LISTS = range(6)
ACCOUNTS = range(5)
BALANCE = 100
TOTAL = BALANCE * len(ACCOUNTS)
COUNTERS = range(2)
OWNERS = range(4)
SHIFTS = range(2)
STAFF_PER_SHIFT = 3

ISOLATION = {
    level.name: level for level in (border.READ_COMMITTED, border.SNAPSHOT, border.SERIALIZABLE)
}


def _table(name: str, *columns: str, **more: Any) -> TableDefinition:
    """A table with the key `id`; columns are numbers, 'name text' is a text, 'name!' not NULL."""
    made = [ColumnDefinition("id", BIGINT)]
    for text in columns:
        bare, _, kind = text.partition(" ")
        made.append(
            ColumnDefinition(
                bare.rstrip("!"), TEXT if kind else BIGINT, not_null=bare.endswith("!")
            )
        )
    return TableDefinition(name, tuple(made), ("id",), **more)


def _to(column: str, parent: str) -> ForeignKeyDefinition:
    return ForeignKeyDefinition((column,), parent)


TABLES = (
    _table("list", "alias text", "elements text"),
    _table("account", "branch", "balance"),
    _table("counter", "value"),
    _table("owner", "code text", uniques=(UniqueDefinition(("code",)),)),
    _table("item", "owner!", foreign_keys=(_to("owner", "owner"),)),
    _table("parent"),
    _table(
        "child", "owner!", "parent", foreign_keys=(_to("owner", "owner"), _to("parent", "parent"))
    ),
    _table("staff", "shift", "on_call"),
)
INDEXES = (
    IndexDefinition(
        "list", (KeyPartDefinition("alias"),), "by_alias", "public", ("elements",), True
    ),
    IndexDefinition("account", (KeyPartDefinition("branch"),), "by_branch", "public", ("balance",)),
)


def prepare(database: Database) -> None:
    """Tables, and the rows that are there from the beginning."""

    def create(edit: Edit) -> None:
        for definition in TABLES:
            edit.create_table(definition)
        for index in INDEXES:
            edit.create_index(index)

    def fill(txn: Transaction) -> None:
        for id_ in ACCOUNTS:
            _insert(txn, "account", (id_, id_ % 2, BALANCE))
        for id_ in COUNTERS:
            _insert(txn, "counter", (id_, 0))
        for id_ in OWNERS:
            _insert(txn, "owner", (id_, None))
        for id_ in range(len(SHIFTS) * STAFF_PER_SHIFT):
            _insert(txn, "staff", (id_, id_ % len(SHIFTS), 1))

    database.change_schema(create)
    database.run(fill)


# -- rows -------------------------------------------------------------------------------------


def _compiled(reader: Reader, name: str) -> Any:
    return compiled_table(reader.catalog, reader.catalog.expect(Table, name).id)


def _insert(txn: Transaction, name: str, row: Row) -> None:
    rows.insert(txn, _compiled(txn, name), row)


def _get(reader: Reader, name: str, id_: int) -> Row | None:
    table = _compiled(reader, name)
    value = reader.get(table.key.encode1(id_))
    return None if value is None else table.decode(value)


def _put(txn: Transaction, name: str, row: Row) -> None:
    old = _get(txn, name, row[0])
    if old is None:
        _insert(txn, name, row)
    else:
        rows.update(txn, _compiled(txn, name), old, row)


def _delete(txn: Transaction, name: str, id_: int) -> None:
    old = _get(txn, name, id_)
    if old is None:
        raise InvalidInput("no such row")
    rows.delete(txn, _compiled(txn, name), old)


def _scan(reader: Reader, name: str, **how: Any) -> list[Row]:
    table = _compiled(reader, name)
    batches = reader.scan(table.start, table.end, batch_rows=3, **how)
    return [table.decode(value) for batch in batches for _, value in batch]


def _entries(reader: Reader, name: str) -> list[Row]:
    index = compiled_index(reader.catalog, reader.catalog.expect(Index, name).id)
    batches = reader.scan(index.start, index.end, batch_rows=3)
    return [index.layout.decode(value) for batch in batches for _, value in batch]


def _elements(text: str | None) -> list[int]:
    return [int(part) for part in (text or "").split(",") if part]


def _alias(id_: int) -> str:
    return f"list {id_}"


def read_list(reader: Reader, id_: int, by_index: bool = False) -> list[int]:
    if not by_index:
        row = _get(reader, "list", id_)
        return [] if row is None else _elements(row[2])
    index = compiled_index(reader.catalog, reader.catalog.expect(Index, "by_alias").id)
    entry = reader.get(index.unique_key.encode((_alias(id_),)))
    return [] if entry is None else _elements(index.layout.decode(entry)[2])


def append_to_list(txn: Transaction, id_: int, element: int) -> list[int]:
    """Returns the elements that were there before."""
    seen = read_list(txn, id_)
    _put(txn, "list", (id_, _alias(id_), ",".join(map(str, [*seen, element]))))
    return seen


def scan_lists(reader: Reader, by_index: bool = False, **how: Any) -> dict[int, list[int]]:
    if by_index:
        return {id_: _elements(text) for _, id_, text in _entries(reader, "by_alias")}
    return {id_: _elements(text) for id_, _, text in _scan(reader, "list", **how)}


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
        self.done += 1
        shared = self.shared
        record = self.record = Txn(
            f"{self.name}.{self.done}", self.name, shared.level, next(shared.clock)
        )
        txn = self.txn = shared.database.begin(ISOLATION[shared.level])
        record.snapshot = txn.position
        asked = False
        try:
            yield from WORK[self.rng.choice(self.kinds)](self)
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
    outer = txn.savepoint()
    for _ in range(session.rng.randint(1, 2)):
        element = next(session.shared.numbers)
        session.aborted_append(id_, element)
        yield from session.statement(lambda txn, element=element: append_to_list(txn, id_, element))
        if session.rng.random() < 0.5:
            txn.savepoint()
    txn.rollback_to(outer)
    yield from _read(session, id_)
    if session.rng.random() < 0.5:
        yield from _append(session, session.rng.choice(LISTS))


def transfer(session: Session) -> Steps:
    one, other = session.rng.sample(ACCOUNTS, 2)
    amount = session.rng.randint(1, 30)

    def move(txn: Transaction, id_: int, by: int) -> None:
        row = _get(txn, "account", id_)
        assert row is not None
        _put(txn, "account", (id_, row[1], row[2] + by))

    yield from session.statement(lambda txn: move(txn, one, -amount))
    yield from session.statement(lambda txn: move(txn, other, amount))


def _balances(reader: Reader, by_index: bool) -> list[int]:
    if by_index:
        return [
            balance for _, _, balance in sorted(_entries(reader, "by_branch"), key=lambda e: e[1])
        ]
    return [balance for _, _, balance in _scan(reader, "account")]


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
        row = _get(txn, "counter", id_)
        assert row is not None
        _put(txn, "counter", (id_, row[1] + 1))
        return row[1]

    seen = yield from session.statement(add)
    session.told("count", id_, seen)
    session.told("add", id_, 1)


def insert_same_key(session: Session) -> Steps:
    """A key that others may want too, under a root of its own."""
    key = max(1, next(session.shared.names) // 3)
    owner = session.rng.choice(OWNERS)
    yield from session.statement(lambda txn: _insert(txn, "item", (key, owner)))
    session.told("insert", key, owner)


def claim_value(session: Session) -> Steps:
    number = next(session.shared.names)
    value = f"code {number // 3}"
    id_ = 1000 + number
    yield from session.statement(lambda txn: _insert(txn, "owner", (id_, value)))
    session.told("claim", value, id_)


def _family(reader: Reader) -> list[Any]:
    parents = [row[0] for row in _scan(reader, "parent")]
    return [parents, [[id_, parent] for id_, _, parent in _scan(reader, "child")]]


def family(session: Session) -> Steps:
    """Parents and children come and go, under roots that have nothing in common."""
    parents, children = seen = yield from session.statement(_family)
    session.told("family", None, seen)
    what = session.rng.random()
    if what < 0.3 or not parents:
        new = session.rng.randrange(4)
        if new not in parents:
            yield from session.statement(lambda txn: _insert(txn, "parent", (new,)))
    elif what < 0.6:
        child = (
            next(session.shared.numbers),
            session.rng.choice(OWNERS),
            session.rng.choice(parents),
        )
        yield from session.statement(lambda txn: _insert(txn, "child", child))
    elif what < 0.8 and children:
        gone = session.rng.choice(children)[0]
        yield from session.statement(lambda txn: _delete(txn, "child", gone))
    else:
        childless = [p for p in parents if p not in [parent for _, parent in children]]
        if childless:
            gone = session.rng.choice(childless)
            yield from session.statement(lambda txn: _delete(txn, "parent", gone))


def on_call(session: Session) -> Steps:
    """Who is on call may leave when somebody else is, too."""
    shift = session.rng.choice(SHIFTS)

    def look(txn: Transaction) -> list[Row]:
        return [row for row in _scan(txn, "staff") if row[1] == shift]

    staff = yield from session.statement(look)
    there = [row for row in staff if row[2]]
    session.told("shift", shift, len(there))
    row = session.rng.choice(there if len(there) > 1 else staff)
    wanted = 0 if len(there) > 1 else 1
    yield from session.statement(lambda txn: _put(txn, "staff", (row[0], shift, wanted)))


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
        record.ops += [Op("count", id_, value) for id_, value in _scan(txn, "counter")]
        record.ops.append(Op("family", None, _family(txn)))
        record.ops.append(Op("inserts", None, [list(row) for row in _scan(txn, "item")]))
        claims = [[code, id_] for id_, code in _scan(txn, "owner") if code is not None]
        record.ops.append(Op("claims", None, claims))
        codes = [[code, id_] for code, id_ in _entries(txn, "owner_code_key") if code is not None]
        record.ops.append(Op("mirror", "owner_code_key", [sorted(claims), sorted(codes)]))
    record.ended = next(shared.clock)
    shared.history.append(record)
    if shared.file is not None:
        shared.file.note(record)
