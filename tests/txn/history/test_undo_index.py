"""The undo index against a plain model of versions, in memory and spilled."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belvedere.errors import Unavailable
from belvedere.kv.memory import MemoryStore
from belvedere.txn.history.undo_index import UndoIndex

KEYS = [bytes([n]) for n in range(6)]


class Versions:
    """Every value a key ever had: what the undo index must be able to tell."""

    def __init__(self) -> None:
        self.history: dict[bytes, list[tuple[int, bytes | None]]] = {k: [(0, None)] for k in KEYS}
        self.batch = 0

    def write(self, values: dict[bytes, bytes | None]) -> list[tuple[bytes, bytes | None]]:
        """A batch; returns the values before it."""
        self.batch += 1
        images = [(key, self.at(key, self.batch)) for key in values]
        for key, value in values.items():
            self.history[key].append((self.batch, value))
        return images

    def at(self, key: bytes, batch: int) -> bytes | None:
        versions = self.history[key]
        return versions[bisect_right(versions, batch, key=lambda v: v[0]) - 1][1]

    def changed_after(self, key: bytes, batch: int) -> bool:
        return self.history[key][-1][0] > batch


values = st.one_of(st.none(), st.binary(max_size=12))
batches = st.dictionaries(st.sampled_from(KEYS), values, min_size=1)
steps = st.lists(st.one_of(batches, st.integers(0, 3)), max_size=30)


@settings(max_examples=150)
@given(steps, st.sampled_from([0, 10, 40, 10_000]))
def test_every_snapshot_that_is_open_sees_its_own_past(
    script: list[dict[bytes, bytes | None] | int], bytes_max: int
) -> None:
    """A batch, or how far to move the floor; after each step everything above it is asked for."""
    versions, undo, floor = Versions(), UndoIndex(bytes_max, MemoryStore), 0
    for step in script:
        if isinstance(step, int):
            floor = min(versions.batch, floor + step)
            undo.purge(floor)
        else:
            images = versions.write(step)
            undo.publish_images(versions.batch, versions.batch * 10, images)
        _require_agreement(undo, versions, floor)
    undo.purge(versions.batch)
    assert len(undo) == 0
    assert undo.bytes_in_memory == 0
    assert list(_scratch(undo)) == [], "what was spilled is gone too"


def _require_agreement(undo: UndoIndex, versions: Versions, floor: int) -> None:
    for batch in range(floor, versions.batch + 1):
        for key in KEYS:
            newest = versions.at(key, versions.batch)
            assert undo.value_at(key, batch, newest) == versions.at(key, batch)
            changed = versions.changed_after(key, batch)
            position = versions.history[key][-1][0] * 10
            assert undo.changed_after(key, batch) == (position if changed else 0)
        images = undo.images_at(KEYS[1], KEYS[4], batch)
        inside = [key for key in KEYS[1:4] if versions.changed_after(key, batch)]
        assert images == {key: versions.at(key, batch) for key in inside}
        assert bool(undo.range_changed_after(KEYS[1], KEYS[4], batch)) == bool(inside)


def _scratch(undo: UndoIndex) -> Iterator[bytes]:
    if undo._scratch is not None:
        for batch in undo._scratch.scan(b"", None):
            yield from (key for key, _ in batch)


def test_a_withdrawn_batch_never_was() -> None:
    undo = UndoIndex(3, MemoryStore)
    undo.publish_images(1, 1, [(b"a", b"one"), (b"b", None)])
    undo.publish_images(2, 2, [(b"a", b"two"), (b"c", b"three")])
    undo.withdraw_batch(2)
    assert undo.changed_after(b"c", 0) == 0
    assert undo.changed_after(b"a", 0) == 1
    assert undo.value_at(b"a", 0, b"x") == b"one"
    assert undo.value_at(b"a", 1, b"x") == b"x"
    undo.purge(1)
    assert (len(undo), undo.bytes_in_memory, list(_scratch(undo))) == (0, 0, [])


def test_only_what_does_not_fit_is_spilled() -> None:
    undo = UndoIndex(10, MemoryStore)
    undo.publish_images(1, 1, [(b"a", b"12345678"), (b"b", b"123"), (b"c", b"12"), (b"d", None)])
    assert (undo.bytes_in_memory, undo.spilled_count) == (10, 1)
    assert undo.value_at(b"b", 0, None) == b"123"
    undo.purge(1)
    undo.publish_images(2, 2, [(b"a", b"1234567890")])
    assert (undo.bytes_in_memory, undo.spilled_count) == (10, 1)


def test_a_closed_index_says_so() -> None:
    undo = UndoIndex(0, MemoryStore)
    undo.publish_images(1, 1, [(b"a", b"value")])
    undo.close()
    undo.close()
    with pytest.raises(Unavailable):
        undo.value_at(b"a", 0, None)
