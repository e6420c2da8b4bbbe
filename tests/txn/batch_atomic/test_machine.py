"""Several open transactions against a plain model: a dict of rows for every position.

The model knows nothing of undo, locks of the engine, overlays or previews. It says for every step
what is seen, and whether it is refused.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from belvedere.catalog.definitions import IndexDefinition, KeyPartDefinition
from belvedere.catalog.relation_codecs import CompiledTable
from belvedere.config import Config, Durability
from belvedere.database import Database
from belvedere.errors import Retry, Unavailable
from belvedere.txn.contracts import (
    READ_COMMITTED,
    SERIALIZABLE,
    SNAPSHOT,
    Isolation,
    LockRequest,
    TransactionSavepoint,
)
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import TEXT, Row
from tests.mutations.registry import mutated
from tests.txn.shop import column, entries, pairs, scan, table, table_of

Rows = dict[int, str]
KEYS = range(8)
keys = st.sampled_from(KEYS)
texts = st.sampled_from(("a", "b", "c", "long " * 10))
which = st.integers(0, 7)


@dataclass(slots=True)
class Model:
    """Every committed state by position, and when each row and index entry changed last."""

    states: list[Rows]
    row_changed: dict[int, int] = field(default_factory=dict)
    row_changes: dict[int, list[int]] = field(default_factory=dict)
    entry_changed: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def position(self) -> int:
        return len(self.states) - 1

    def commit(self, writes: dict[int, str | None]) -> None:
        state = dict(self.states[-1])
        self.states.append(state)
        for key, new in writes.items():
            old = state.pop(key, None)
            if new is not None:
                state[key] = new
            self.row_changed[key] = self.position
            self.row_changes.setdefault(key, []).append(self.position)
            if old != new:
                for text in (old, new):
                    if text is not None:
                        self.entry_changed[text, key] = self.position


@dataclass(slots=True)
class Seen:
    """What the model knows of one transaction."""

    txn: Transaction
    isolation: Isolation
    at: int
    writes: dict[int, str | None] = field(default_factory=dict)
    old: dict[int, tuple[str | None, int]] = field(default_factory=dict)
    reads: set[int] = field(default_factory=set)
    ranges: list[tuple[int, int]] = field(default_factory=list)
    index_read: bool = False
    savepoints: list[tuple[TransactionSavepoint, dict[int, Any], dict[int, Any]]] = field(
        default_factory=list
    )
    locks: set[tuple[int, bool]] = field(default_factory=set)

    def visible(self, model: Model) -> Rows:
        merged = {**model.states[self.at], **self.writes}
        return {key: text for key, text in merged.items() if text is not None}

    def write(self, key: int, old: str | None, new: str | None) -> None:
        if key in self.writes and self.old[key][0] == new:
            del self.writes[key], self.old[key]
        elif key in self.writes or (old, new) != (None, None):
            self.old.setdefault(key, (old, self.at))
            self.writes[key] = new

    def is_doomed(self, model: Model) -> bool:
        """Whether a row it wrote was changed by another, in a state that it has moved on to since:
        it can only fail, and what it derives from that row is anybody's guess. Root locks, which
        this test does without, keep that from happening."""
        return any(
            seen < position <= self.at
            for key, (_, seen) in self.old.items()
            for position in model.row_changes.get(key, ())
        )

    def conflicts(self, model: Model) -> bool:
        if any(model.row_changed.get(key, 0) > seen for key, (_, seen) in self.old.items()):
            return True
        if self.isolation is not SERIALIZABLE or not self.writes:
            return False
        changed = {key for key, position in model.row_changed.items() if position > self.at}
        in_range = any(low <= key < high for key in changed for low, high in self.ranges)
        entries_moved = any(position > self.at for position in model.entry_changed.values())
        return bool(changed & self.reads) or in_range or (self.index_read and entries_moved)


class Transactions(RuleBasedStateMachine):
    """The rules. `engine` and `undo_bytes` are set by the tests below."""

    engine = "memory"
    undo_bytes = 1 << 20

    @initialize()
    def open(self) -> None:
        self.directory = Path(tempfile.mkdtemp())
        durability = Durability.FULL if self.engine.endswith("full") else Durability.OFF
        config = Config(
            durability=durability, lock_wait_ms_max=0, undo_bytes_in_memory_max=self.undo_bytes
        )
        path = ":memory:" if self.engine == "memory" else self.directory / "store"
        self.database = Database.open(path, config)

        def create(edit: Any) -> None:
            edit.create_table(table_of("t", column("id"), column("text", TEXT)))
            edit.create_index(IndexDefinition("t", (KeyPartDefinition("text"),), name="by_text"))

        self.database.change_schema(create)
        self.table: CompiledTable = table(self.database, "t")
        self.first = self.database.position
        self.model = Model([{}])
        self.open_now: list[Seen] = []

    def teardown(self) -> None:
        if hasattr(self, "database"):
            try:
                for seen in self.open_now:
                    seen.txn.rollback()
                assert len(self.database.visibility.undo) == 0
                assert self.database.locks.list_locks() == []
            finally:
                self.database.close()
                shutil.rmtree(self.directory)

    def pick(self, number: int) -> Seen:
        return self.open_now[number % len(self.open_now)]

    def end(self, seen: Seen) -> None:
        self.open_now.remove(seen)

    @rule(isolation=st.sampled_from((SNAPSHOT, SNAPSHOT, READ_COMMITTED, SERIALIZABLE)))
    def begin(self, isolation: Isolation) -> None:
        if len(self.open_now) < 4:
            txn = self.database.begin(isolation)
            self.open_now.append(Seen(txn, isolation, self.model.position))

    @precondition(lambda self: self.open_now)
    @rule(number=which, key=keys)
    def get(self, number: int, key: int) -> None:
        seen = self.pick(number)
        value = seen.txn.get(self.table.key.encode((key,)))
        assert (value and self.table.decode(value)[1]) == seen.visible(self.model).get(key)
        if key not in seen.writes:
            seen.reads.add(key)

    @precondition(lambda self: self.open_now)
    @rule(number=which, low=keys, high=keys, reverse=st.booleans(), limit=st.integers(0, 5))
    def scan(self, number: int, low: int, high: int, reverse: bool, limit: int) -> None:
        seen = self.pick(number)
        start, end = self.table.key.encode((low,)), self.table.key.encode((high,))
        some = limit or None
        found = pairs(seen.txn.scan(start, end, reverse=reverse, limit=some, batch_rows=2))
        visible = seen.visible(self.model)
        expected = sorted((k, v) for k, v in visible.items() if low <= k < high)
        expected = (expected[::-1] if reverse else expected)[:some]
        assert [self.table.decode(value) for _, value in found] == expected
        seen.ranges.append((low, high))

    @precondition(lambda self: self.open_now)
    @rule(number=which, reverse=st.booleans())
    def scan_index(self, number: int, reverse: bool) -> None:
        seen = self.pick(number)
        if seen.is_doomed(self.model):
            return
        expected = sorted(((v, k) for k, v in seen.visible(self.model).items()), reverse=reverse)
        assert entries(seen.txn, "by_text", reverse=reverse) == expected
        seen.index_read = True

    @precondition(lambda self: self.open_now)
    @rule(number=which, key=keys, text=st.one_of(st.none(), texts))
    def write_sums_and_progress(self, number: int, key: int, text: str | None) -> None:
        """By way of the transaction itself, without a lock: conflicts are then found at commit."""
        seen = self.pick(number)
        old = seen.visible(self.model).get(key)
        if key not in seen.writes and (old, text) != (None, None):
            moved_on = self.model.row_changed.get(key, 0) > seen.at
        else:
            moved_on = False
        refused = False
        try:
            seen.txn.write(
                self.table.key.encode((key,)), self._value(key, old), self._value(key, text)
            )
        except Retry:
            refused = True
        assert refused == moved_on
        if not refused:
            seen.write(key, old, text)

    def _value(self, key: int, text: str | None) -> bytes | None:
        return None if text is None else self.table.encode((key, text))

    @precondition(lambda self: self.open_now)
    @rule(number=which, key=keys, shared=st.booleans())
    def lock(self, number: int, key: int, shared: bool) -> None:
        seen = self.pick(number)
        held = {
            mode
            for other in self.open_now
            if other is not seen
            for locked, mode in other.locks
            if locked == key
        }
        expected = (key, shared) not in seen.locks and (not all(held) if shared else bool(held))
        refused = False
        try:
            seen.txn.acquire_lock(LockRequest("root", bytes([key]), shared))
        except Unavailable:
            refused = True
        assert refused == expected
        if not refused:
            seen.locks.add((key, shared))

    @precondition(lambda self: self.open_now)
    @rule(number=which)
    def begin_statement(self, number: int) -> None:
        seen = self.pick(number)
        seen.txn.begin_statement()
        if seen.isolation is READ_COMMITTED:
            seen.at = self.model.position

    @precondition(lambda self: self.open_now)
    @rule(number=which)
    def savepoint(self, number: int) -> None:
        seen = self.pick(number)
        seen.savepoints.append((seen.txn.set_savepoint(), dict(seen.writes), dict(seen.old)))

    @precondition(lambda self: self.open_now)
    @rule(number=which, back=st.integers(0, 3))
    def rollback_to(self, number: int, back: int) -> None:
        seen = self.pick(number)
        if seen.savepoints:
            del seen.savepoints[max(len(seen.savepoints) - back, 1) :]
            savepoint, writes, old = seen.savepoints[-1]
            seen.txn.rollback_to(savepoint)
            seen.writes, seen.old = dict(writes), dict(old)

    @precondition(lambda self: self.open_now)
    @rule(number=which)
    def commit(self, number: int) -> None:
        seen = self.pick(number)
        conflicts = seen.conflicts(self.model)
        self.end(seen)
        if conflicts:
            with pytest.raises(Retry) as lost:
                seen.txn.commit()
            assert 0 < lost.value.lost_to - self.first <= self.model.position
            return
        committed = seen.txn.commit()
        if seen.writes:
            self.model.commit(seen.writes)
            assert committed.position == self.first + self.model.position

    @precondition(lambda self: self.open_now)
    @rule(number=which)
    def rollback(self, number: int) -> None:
        seen = self.pick(number)
        seen.txn.rollback()
        self.end(seen)

    @rule(back=st.integers(0, 20))
    def look_back(self, back: int) -> None:
        position = max(0, self.model.position - back)
        with self.database.open_past_reader(self.first + position) as past:
            assert scan(past, "t") == sorted(self.model.states[position].items())

    @invariant()
    def newest_is_right(self) -> None:
        if not hasattr(self, "model"):
            return
        with self.database.begin() as txn:
            newest: list[Row] = sorted(self.model.states[-1].items())
            assert scan(txn, "t") == newest
            assert entries(txn, "by_text") == sorted((text, key) for key, text in newest)


def run(engine: str, undo_bytes: int, examples: int) -> None:
    """Short scripts, which Hypothesis shrinks."""
    machine = type(f"On_{engine}", (Transactions,), {"engine": engine, "undo_bytes": undo_bytes})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=40)
    )


def drive(engine: str, undo_bytes: int, seed: str, steps: int) -> None:
    """One long script of weighted steps. To find the step of a failure, print them here."""
    rng = random.Random(seed)
    world = type("Driven", (Transactions,), {"engine": engine, "undo_bytes": undo_bytes})()
    world.open()
    try:
        for _ in range(steps):
            _step(world, rng)
        world.newest_is_right()
    except BaseException as error:
        error.add_note(f"engine {engine}, seed {seed!r}, {steps} steps")
        raise
    finally:
        world.teardown()


def _step(world: Transactions, rng: random.Random) -> None:
    if not world.open_now or (len(world.open_now) < 4 and rng.random() < 0.3):
        world.begin(rng.choice((SNAPSHOT, READ_COMMITTED, SERIALIZABLE)))
        return
    at, key = rng.randrange(8), rng.choice(KEYS)
    steps: tuple[tuple[int, Callable[[], None]], ...] = (
        (
            8,
            lambda: world.write_sums_and_progress(
                at, key, rng.choice((None, "a", "b", "c", "long " * 10))
            ),
        ),
        (4, lambda: world.get(at, key)),
        (3, lambda: world.scan(at, key, rng.choice(KEYS), rng.random() < 0.5, rng.randrange(6))),
        (3, lambda: world.scan_index(at, rng.random() < 0.5)),
        (2, lambda: world.savepoint(at)),
        (2, lambda: world.rollback_to(at, rng.randrange(4))),
        (2, lambda: world.begin_statement(at)),
        (1, lambda: world.lock(at, key, rng.random() < 0.5)),
        (4, lambda: world.commit(at)),
        (1, lambda: world.rollback(at)),
        (1, lambda: world.look_back(rng.randrange(30))),
        (1, lambda: world.newest_is_right()),
    )
    weights = [weight for weight, _ in steps]
    rng.choices(steps, weights)[0][1]()


@pytest.mark.parametrize("undo_bytes", [1 << 20, 20])
def test_short_scripts_in_memory_do_what_the_model_says(undo_bytes: int) -> None:
    run("memory", undo_bytes, 40)


@pytest.mark.parametrize(
    ("engine", "undo_bytes", "runs"),
    [("memory", 1 << 20, 60), ("memory", 20, 20), ("rocksdb", 20, 6), ("rocksdb-full", 1 << 20, 4)],
)
def test_long_scripts_do_what_the_model_says(
    seed: int, engine: str, undo_bytes: int, runs: int
) -> None:
    for number in range(runs):
        drive(engine, undo_bytes, f"{seed}/{number}", 400)


@pytest.mark.parametrize(
    "bug",
    [
        "undo_skipped",
        "undo_purged_early",
        "conflict_unchecked",
        "reads_unvalidated",
        "ranges_unvalidated",
        "lock_kept",
        "savepoint_keeps_changes",
    ],
)
def test_the_model_notices_a_planted_bug(bug: str) -> None:
    def drive_some() -> None:
        for number in range(30):
            drive("memory", 1 << 20, f"planted/{number}", 400)

    drive_some()
    with mutated(bug), pytest.raises((AssertionError, pytest.fail.Exception, Retry)):
        drive_some()
