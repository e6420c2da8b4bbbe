"""The anchor remembers, survives a torn write, and says when it does not know."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from belvedere.errors import Corruption, Unavailable
from belvedere.txn.batch_atomic.anchor import SLOT_BYTES, Anchor, AnchorState

STORE = b"s" * 16


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "anchor"


def write(path: Path, *positions: int, state: AnchorState = AnchorState.OPEN) -> None:
    """An anchor that was written once for each position."""
    anchor = Anchor.create(path, STORE)
    for position in positions:
        anchor.write(incarnation=3, position=position, hash_=position * 7, state=state)
    anchor.close()


def reopened(path: Path) -> Anchor:
    anchor = Anchor.open(path)
    anchor.close()
    return anchor


def test_new_anchor_is_closed_at_position_zero(path: Path) -> None:
    write(path)
    mark = reopened(path).mark
    assert (mark.store_id, mark.incarnation, mark.position, mark.state) == (
        STORE, 1, 0, AnchorState.CLOSED,
    )  # fmt: skip


@pytest.mark.parametrize("state", list(AnchorState))
def test_last_write_is_what_is_read(path: Path, state: AnchorState) -> None:
    write(path, 5, 6, 9, state=state)
    mark = reopened(path).mark
    assert (mark.incarnation, mark.position, mark.hash, mark.state) == (3, 9, 63, state)


def newest_slot(path: Path) -> int:
    return reopened(path).mark.sequence % 2


@pytest.mark.parametrize("kept", range(0, 57, 7))
def test_torn_write_leaves_the_one_before(path: Path, kept: int) -> None:
    write(path, 5, 6)
    before = path.read_bytes()
    anchor = Anchor.open(path)
    anchor.write(incarnation=3, position=7, hash_=49, state=AnchorState.OPEN)
    anchor.close()
    after, at = path.read_bytes(), newest_slot(path) * SLOT_BYTES
    path.write_bytes(before[:at] + after[at : at + kept] + before[at + kept :])
    assert reopened(path).mark.position == 6


def test_every_flipped_bit_of_the_newest_slot_is_noticed(path: Path) -> None:
    write(path, 5, 6)
    data, at = path.read_bytes(), newest_slot(path) * SLOT_BYTES
    for bit in range(57 * 8):
        damaged = bytearray(data)
        damaged[at + bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        assert reopened(path).mark.position == 5, bit


def test_two_damaged_slots_are_refused(path: Path) -> None:
    write(path, 5, 6)
    path.write_bytes(bytes(2 * SLOT_BYTES))
    with pytest.raises(Corruption, match="anchor file is damaged"):
        Anchor.open(path)


def test_missing_file_is_refused(path: Path) -> None:
    with pytest.raises(Corruption, match="anchor file is missing"):
        Anchor.open(path)


def test_failed_write_is_told_and_changes_nothing(path: Path) -> None:
    write(path, 5)
    anchor = Anchor.open(path)
    os.close(anchor._descriptor)
    with pytest.raises(Unavailable, match="anchor could not be written"):
        anchor.write(incarnation=3, position=6, hash_=1, state=AnchorState.OPEN)
    assert anchor.mark.position == 5
    assert reopened(path).mark.position == 5


def test_adopted_anchor_belongs_to_the_new_store_from_the_next_write_on(path: Path) -> None:
    write(path, 5)
    anchor = Anchor.open(path)
    anchor.adopt_store(b"t" * 16)
    anchor.write(incarnation=4, position=5, hash_=35, state=AnchorState.OPEN)
    anchor.close()
    assert reopened(path).mark.store_id == b"t" * 16
