"""A killed process loses nothing; a damaged log is refused, and salvaged to a prefix."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from rocksdict import DBRecoveryMode, Options, Rdict

from belvedere.errors import Corruption, Unavailable
from belvedere.kv.rocksdb import RocksStore
from belvedere.kv.rocksdb_log import Ingest, _scan_batches, find_damage
from tests.kv.damage import BATCHES, edit, logs, pairs, record_of
from tests.kv.stores import content, load_rocks, open_rocks


def batches_found(store: RocksStore) -> list[int]:
    """The batches in the store, each of them whole."""
    left = [int(key[1:]) for rows in store.scan(b"a", b"b") for key, _ in rows]
    right = [int(key[1:]) for rows in store.scan(b"b", b"c") for key, _ in rows]
    assert left == right, "half a batch"
    return left


def opened(directory: Path, *, salvage: bool = False) -> list[int]:
    store = RocksStore.open(directory, create=False, salvage=salvage)
    found = batches_found(store)
    store.close()
    return found


def assert_refused_then_salvaged(directory: Path, kept: int | None = None) -> None:
    """Strict refuses, twice; salvage finds a prefix; after that strict is content."""
    for _ in range(2):
        with pytest.raises(Corruption):
            RocksStore.open(directory, create=False)
    found = opened(directory, salvage=True)
    assert found == list(range(len(found))), "a hole"
    assert len(found) < BATCHES
    if kept is not None:
        assert len(found) == kept
    assert opened(directory) == found


def test_a_killed_process_loses_nothing_it_wrote(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from belvedere.kv.rocksdb import RocksStore\n"
        "store = RocksStore.open(Path(sys.argv[1]), create=True)\n"
        "for number in range(50): store.write([(b'k%03d' % number, b'v')])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "store")]
    ended = subprocess.run(command, env={**os.environ, "PYTHONPATH": "src"}, check=False)
    assert ended.returncode == -9
    store = load_rocks(tmp_path / "store")
    assert len(content(store)) == 50
    store.close()


def test_a_record_torn_at_the_end_of_the_log_is_forgotten(store_directory: Path) -> None:
    (log,) = logs(store_directory)
    edit(log, lambda bytes_: bytes_[:-10])
    assert opened(store_directory) == list(range(BATCHES - 1))


def test_a_log_left_over_by_a_killed_recovery_is_no_damage(store_directory: Path) -> None:
    (log,) = logs(store_directory)
    edit(log, lambda bytes_: bytes_[:-10])
    torn = log.read_bytes()
    store = load_rocks(store_directory)
    assert not log.exists()
    store.write(pairs(BATCHES - 1))
    log.write_bytes(torn)
    copy = Path(shutil.copytree(store_directory, store_directory.with_name("copy")))
    store.close()
    assert opened(copy) == list(range(BATCHES))


def test_batches_of_every_size_at_every_place_are_no_damage(
    tmp_path: Path, rng: random.Random
) -> None:
    """Records are split at the blocks of the log; each way to be split must be understood."""
    store = open_rocks(tmp_path / "live")
    for number in range(700):
        # The rest of a block after so many bytes of it, for every rest from 0 to 13 bytes and more.
        size = rng.choice([32_768 * 2 - 200, rng.randrange(200), 32_768 - 60 - number % 40])
        store.write([(b"%05d" % number, rng.randbytes(size))])
        store.write([])
    before = content(store)
    shutil.copytree(tmp_path / "live", tmp_path / "image")
    store.close()
    assert find_damage(tmp_path / "image") is None
    copy = load_rocks(tmp_path / "image")
    assert content(copy) == before
    copy.close()


@pytest.mark.parametrize("rest", range(16))
def test_a_record_begun_in_the_last_bytes_of_a_block_is_understood(
    tmp_path: Path, rest: int
) -> None:
    """With 7 bytes left RocksDB begins a record and puts nothing of it there."""
    store = open_rocks(tmp_path / "live")
    overhead = 7 + 12 + 1 + 1 + 1 + 3  # header, sequence, count, tag, lengths, key
    store.write([(b"k", bytes(32_768 - overhead - rest))])
    for number in range(5):
        store.write([(b"l%d" % number, b"v")])
    image = Path(shutil.copytree(tmp_path / "live", tmp_path / "image"))
    store.close()
    (log,) = logs(image)
    found = list(_scan_batches(log))
    assert [(sequence, count) for _, sequence, count in found] == [(n, 1) for n in range(1, 7)]
    assert find_damage(image) is None


def test_unused_space_after_the_log_is_no_damage(store_directory: Path) -> None:
    (log,) = logs(store_directory)
    edit(log, lambda bytes_: bytes_ + bytes(5000))
    assert opened(store_directory) == list(range(BATCHES))


BYTES = {"crc": 0, "length": 4, "sequence": 7, "count": 15, "row": 60}


@pytest.mark.parametrize(
    ("number", "part"),
    # A last record that claims to be longer than the file cannot be told from a torn one.
    sorted({*product([20, 300, BATCHES - 1], BYTES)} - {(BATCHES - 1, "length")}),
)
def test_a_flipped_bit_in_the_log_is_refused(store_directory: Path, number: int, part: str) -> None:
    (log,) = logs(store_directory)

    def transition(bytes_: bytearray) -> bytearray:
        bytes_[record_of(bytes_, number) + BYTES[part]] ^= 1
        return bytes_

    edit(log, transition)
    assert_refused_then_salvaged(store_directory, kept=number)


@pytest.mark.parametrize("kind", [2, 3, 4, 5, 6, 7, 8, 9, 11, 130, 255])
def test_a_log_record_of_another_type_is_refused_and_never_waited_for(
    store_directory: Path, kind: int
) -> None:
    (log,) = logs(store_directory)

    def change(bytes_: bytearray) -> bytearray:
        bytes_[record_of(bytes_, 200) + 6] = kind
        return bytes_

    edit(log, change)
    assert_refused_then_salvaged(store_directory, kept=200)


def test_a_zeroed_sector_in_the_log_is_refused(store_directory: Path) -> None:
    (log,) = logs(store_directory)

    def zero(bytes_: bytearray) -> bytearray:
        begin = record_of(bytes_, 200) + 30
        bytes_[begin : begin + 512] = bytes(512)
        return bytes_

    edit(log, zero)
    assert_refused_then_salvaged(store_directory, kept=200)


@pytest.mark.parametrize("inside", [0, 30], ids=["between records", "inside a record"])
def test_an_older_log_that_was_cut_is_refused(many_directory: Path, inside: int) -> None:
    oldest = logs(many_directory)[0]
    edit(oldest, lambda bytes_: bytes_[: record_of(bytes_, 20) + inside])
    assert_refused_then_salvaged(many_directory, kept=20)


def test_a_log_that_vanished_from_the_middle_is_refused(many_directory: Path) -> None:
    logs(many_directory)[1].unlink()
    assert_refused_then_salvaged(many_directory)


def test_several_whole_logs_are_no_damage(many_directory: Path) -> None:
    assert opened(many_directory) == list(range(BATCHES))


def test_salvage_keeps_what_it_cuts_off(many_directory: Path) -> None:
    removed = logs(many_directory)[1]
    after = logs(many_directory)[2].read_bytes()
    name = logs(many_directory)[2].name
    removed.unlink()
    opened(many_directory, salvage=True)
    assert (many_directory / f"{name}.lost").read_bytes() == after


def test_the_engines_own_default_would_have_opened_the_damage(store_directory: Path) -> None:
    """Why the recovery mode is set at all; should this fail, the decision can be taken anew."""
    (log,) = logs(store_directory)

    def transition(bytes_: bytearray) -> bytearray:
        bytes_[record_of(bytes_, 200) + 60] ^= 1
        return bytes_

    edit(log, transition)
    options = Options(raw_mode=True)
    options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    database = Rdict(str(store_directory), options)
    assert len(list(database.keys())) == 2 * 200
    database.close()


def ingest(store: RocksStore, path: Path, key: bytes) -> None:
    writer = store.sorted_file_writer(path)
    writer.put(key, b"ingested")
    file = writer.finish()
    assert file is not None
    store.ingest([file])


def test_numbers_taken_by_an_ingest_are_no_hole(tmp_path: Path) -> None:
    store = open_rocks(tmp_path / "live")
    for number in range(3):
        # From the second time on the key is in a table, not in memory: a number is taken, and the
        # log goes on after it.
        ingest(store, tmp_path / f"file{number}", b"k")
        store.write([(b"z%d" % number, b"v")])
    before = content(store)
    image = Path(shutil.copytree(tmp_path / "live", tmp_path / "image"))
    store.close()
    (log,) = logs(image)
    sequences = [sequence for _, sequence, _ in _scan_batches(log)]
    assert sequences[-1] - sequences[0] > len(sequences) - 1, "this ingest took no number"
    copy = load_rocks(image)
    assert content(copy) == before
    copy.close()


@pytest.mark.parametrize(
    ("expected", "found", "explained"),
    [(11, 13, True), (11, 12, True), (11, 14, False), (10, 12, False), (21, 22, False)],
)
def test_an_ingest_explains_only_its_own_numbers(
    expected: int, found: int, explained: bool
) -> None:
    assert Ingest(before=10, after=20, files=2).explains_gap(expected, found) is explained


def test_an_ingest_that_never_ended_explains_as_many_numbers_as_files() -> None:
    unfinished = Ingest(before=10, after=-1, files=2)
    assert unfinished.explains_gap(500, 502)
    assert not unfinished.explains_gap(500, 503)


def test_a_log_left_over_by_a_killed_salvage_is_no_damage(store_directory: Path) -> None:
    (log,) = logs(store_directory)

    def transition(bytes_: bytearray) -> bytearray:
        bytes_[record_of(bytes_, 200) + 60] ^= 1
        return bytes_

    edit(log, transition)
    damaged = log.read_bytes()
    store = RocksStore.open(store_directory, create=False, salvage=True)
    store.write(pairs(200))
    log.write_bytes(damaged)
    copy = Path(shutil.copytree(store_directory, store_directory.with_name("copy")))
    store.close()
    assert opened(copy) == list(range(201))


def test_salvage_touches_nothing_of_a_store_that_is_open(tmp_path: Path) -> None:
    store = open_rocks(tmp_path / "store")
    for number in range(10):
        store.write(pairs(number))
    (log,) = logs(tmp_path / "store")

    def change(bytes_: bytearray) -> bytearray:
        bytes_[record_of(bytes_, 5) + 6] = 5
        return bytes_

    edit(log, change)
    before = log.read_bytes()
    for salvage in (False, True):
        with pytest.raises(Unavailable):
            RocksStore.open(tmp_path / "store", create=False, salvage=salvage)
    assert log.read_bytes() == before
    store.close()
