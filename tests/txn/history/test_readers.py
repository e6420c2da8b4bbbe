"""A read without an open snapshot is of one published moment, whatever commits beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belvedere.catalog.catalog import empty_catalog
from belvedere.kv.batch import Pair, Write
from belvedere.kv.memory import MemoryStore
from belvedere.txn.batch_atomic.visibility import Visibility
from belvedere.txn.contracts import RowChange, Snapshot
from belvedere.txn.history.undo_index import UndoIndex

KEYS = [bytes([n]) for n in range(5)]
State = dict[bytes, bytes]


class _Beside(MemoryStore):
    """A store where something happens each time a scan was opened."""

    def __init__(self, pairs: State) -> None:
        super().__init__(pairs.items())
        self.beside: Callable[[], None] = lambda: None

    def scan(self, *given: Any, **options: Any) -> Iterator[list[Pair]]:
        return self._opened(super().scan(*given, **options))

    def scan_values(self, *given: Any, **options: Any) -> Iterator[list[bytes]]:
        return self._opened(super().scan_values(*given, **options))

    def _opened(self, batches: Iterator[Any]) -> Iterator[Any]:
        first = next(batches, None)
        self.beside()
        if first is not None:
            yield first
        yield from batches


class _History:
    """Batches that are written, and published later; the state after each."""

    def __init__(self) -> None:
        start: State = dict.fromkeys(KEYS, b"\x00")
        self.states = [start]
        self.store = _Beside(start)
        self.visibility = Visibility(
            self.store, UndoIndex(1000, MemoryStore), Snapshot(0, 0, empty_catalog()), hold=True
        )

    def write(self, moved: set[int]) -> None:
        batch, before = len(self.states), self.states[-1]
        after = before | {KEYS[n]: bytes([batch]) for n in moved}
        changes = [RowChange(key, before[key], after[key]) for key in map(KEYS.__getitem__, moved)]
        self.states.append(after)
        successor = Snapshot(batch, batch, empty_catalog())
        self.visibility.write_batch([(c.key, c.new) for c in changes], successor, changes, {}, 0)

    def publish(self, through: int) -> None:
        published, written = self.visibility.published_snapshot[0], self.visibility.written[0]
        batch = min(max(through, published), written)
        self.visibility.publish_through(Snapshot(batch, batch, empty_catalog()))


BATCH = st.sets(st.integers(0, len(KEYS) - 1), min_size=1)
STEP = st.tuples(st.lists(BATCH, max_size=4), st.integers(0, 8))


@given(
    before=STEP,
    beside=st.lists(STEP, max_size=4),
    way=st.sampled_from(["scan", "values", "range", "range in reverse"]),
)
@settings(max_examples=300, deadline=None)
def test_a_scan_without_a_snapshot_is_of_one_published_moment(
    before: tuple[list[set[int]], int],
    beside: list[tuple[list[set[int]], int]],
    way: str,
) -> None:
    history = _History()
    steps = iter([before, *beside])

    def step() -> None:
        moves, through = next(steps, ([], 0))
        for moved in moves:
            history.write(moved)
        history.publish(through)

    step()
    visibility = history.visibility
    asked = visibility.published_snapshot[0]
    reader = visibility.reader(visibility.published_snapshot)
    history.store.beside = step
    if way.startswith("range"):
        reverse = way != "range"
        pairs = reader.fetch_range(b"\0", b"\xff", len(KEYS), reverse=reverse)
        found = [value for _, value in (reversed(pairs) if reverse else pairs)]
    elif way == "values":
        found = [one for batch in reader.scan_values(b"\0", b"\xff") for one in batch]
    else:
        found = [value for batch in reader.scan(b"\0", b"\xff") for _, value in batch]
    published = history.states[asked : visibility.published_snapshot[0] + 1]
    assert found in [list(state.values()) for state in published]


class _Scratch(MemoryStore):
    """Where old values go; something happens just before one is fetched, or when one is gone."""

    def __init__(self) -> None:
        super().__init__()
        self.before_get: Callable[[], None] = lambda: None
        self.after_delete: Callable[[], None] = lambda: None

    def get(self, key: bytes) -> bytes | None:
        self.before_get()
        return super().get(key)

    def write(self, batch: Sequence[Write], **options: Any) -> None:
        super().write(batch, **options)
        if batch[0][1] is None:
            self.after_delete()


def _one_hidden_change(scratch: _Scratch) -> tuple[Visibility, Snapshot]:
    """A row whose old value is spilled, and the state after its change."""
    undo = UndoIndex(0, lambda: scratch)
    store = MemoryStore([(b"k", b"old")])
    visibility = Visibility(store, undo, Snapshot(0, 0, empty_catalog()), hold=True)
    newer = Snapshot(1, 1, empty_catalog())
    visibility.write_batch([(b"k", b"new")], newer, [RowChange(b"k", b"old", b"new")], {}, 0)
    return visibility, newer


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("moment", ["before it is fetched", "while it goes"])
def test_an_old_value_that_goes_while_it_is_read_is_not_a_missing_row(
    moment: str, many: bool
) -> None:
    scratch = _Scratch()
    visibility, newer = _one_hidden_change(scratch)
    reader = visibility.reader(visibility.published_snapshot)  # without a snapshot that is open
    found = []

    def read() -> None:
        found.append(reader.multi_get([b"k"])[0] if many else reader.get(b"k"))

    if moment == "while it goes":
        scratch.after_delete = read
        visibility.publish_through(newer)
    else:
        scratch.before_get = lambda: visibility.publish_through(newer)
        read()
    assert found == [b"new"]
