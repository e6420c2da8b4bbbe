"""The anchor remembers, survives a torn write, and says when it does not know."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere
from belvedere.errors import Corruption, Unavailable
from belvedere.txn.batch_atomic import anchor as anchor_module
from belvedere.txn.batch_atomic.anchor import SLOT_BYTES, SLOTS, Anchor, AnchorState

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
    path.write_bytes(bytes(SLOTS * SLOT_BYTES))
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


def write_soon(anchor: Anchor, *positions: int) -> None:
    for position in positions:
        anchor.write_soon_durable(incarnation=3, position=position, hash_=0, state=AnchorState.OPEN)


class Disk:
    """Syncs of a disk that the test lets through, one by one, or lets fail."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.allowed = threading.Semaphore(0)
        self.broken = False

    def sync(self, descriptor: int) -> None:
        self.begun.release()
        self.allowed.acquire()
        if self.broken:
            raise OSError(5, "Input/output error")

    def let_all_through(self) -> None:
        self.allowed.release(1_000)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    slow = Disk()
    monkeypatch.setattr(anchor_module, "sync_file", slow.sync)
    yield slow
    slow.let_all_through()


def open_with_sync(path: Path, disk: Disk) -> Anchor:
    disk.allowed.release()
    Anchor.create(path, STORE).close()
    disk.begun.acquire()
    return Anchor.open(path)


def test_a_write_while_a_sync_runs_leaves_the_slots_of_both(path: Path, disk: Disk) -> None:
    anchor = open_with_sync(path, disk)
    durable = anchor._durable_slot
    write_soon(anchor, 5)
    disk.begun.acquire()
    synced = anchor._newest_slot
    write_soon(anchor, 6, 7)
    assert len({durable, synced, anchor._newest_slot}) == SLOTS
    content = bytearray(path.read_bytes())
    for slot in {0, 1, 2} - {durable}:
        content[slot * SLOT_BYTES] ^= 1
    path.with_name("torn").write_bytes(content)
    assert reopened(path.with_name("torn")).mark.position == 0
    disk.let_all_through()
    anchor.close()
    assert anchor._durable_slot == anchor._newest_slot
    assert reopened(path).mark.position == 7


def test_what_was_written_is_known_before_it_is_synced(path: Path, disk: Disk) -> None:
    anchor = open_with_sync(path, disk)
    write_soon(anchor, 5)
    disk.begun.acquire()
    assert reopened(path).mark.position == 5
    disk.let_all_through()
    anchor.close()


def test_a_commit_does_not_wait_for_the_sync_of_the_anchor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with belvedere.connect(tmp_path / "shop.db", autocommit=True, durability="full") as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        slow = Disk()
        monkeypatch.setattr(anchor_module, "sync_file", slow.sync)
        for number in range(5):
            connection.execute("INSERT INTO t VALUES (?)", (number,))
        slow.let_all_through()


def insert_until_refused(connection: belvedere.Connection) -> None:
    """The failure is noticed by one of the next commits."""
    for number in range(2, 1_000_000):
        connection.execute("INSERT INTO t VALUES (?)", (number,))


def test_a_failed_sync_of_the_anchor_ends_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with belvedere.connect(tmp_path / "shop.db", autocommit=True, durability="full") as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        connection.execute("INSERT INTO t VALUES (1)")
        with monkeypatch.context() as patched:
            broken = Disk()
            broken.broken = True
            broken.let_all_through()
            patched.setattr(anchor_module, "sync_file", broken.sync)
            with pytest.raises(belvedere.OperationalError) as told:
                insert_until_refused(connection)
        assert told.value.sqlstate == "08007"
        with pytest.raises(belvedere.OperationalError):
            connection.execute("INSERT INTO t VALUES (0)")
        assert connection.execute("SELECT id FROM t WHERE id = 1").fetchall() == [(1,)]
    with belvedere.connect(tmp_path / "shop.db") as connection:
        assert connection.execute("SELECT id FROM t WHERE id = 1").fetchall() == [(1,)]
