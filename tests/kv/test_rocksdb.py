"""What only the RocksDB store can get wrong: files, locks, damage, and the traps of its binding."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from threading import Event

import pytest
from rocksdict import DBRecoveryMode, Options, Rdict, RdictIter, WriteBatch

from belvedere.errors import Corruption, InvalidInput, Unavailable
from belvedere.kv.rocksdb import RocksStore
from belvedere.kv.rocksdb_errors import translated, translated_open
from belvedere.kv.rocksdb_log import Ingest, _batches, find_trouble
from belvedere.kv.rocksdb_scan import Scan, take_values
from tests.kv.stores import content, load_rocks, open_rocks

BATCHES = 400


def pairs(number: int) -> list[tuple[bytes, bytes]]:
    return [(b"a%05d" % number, b"left" * 20), (b"b%05d" % number, b"right" * 20)]


@pytest.fixture(scope="module")
def one_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a store as a kill leaves them: everything in one log."""
    home = tmp_path_factory.mktemp("one_log")
    store = open_rocks(home / "live")
    for number in range(BATCHES):
        store.write(pairs(number))
    shutil.copytree(home / "live", home / "image")
    store.close()
    return home / "image"


@pytest.fixture(scope="module")
def many_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, killed while several full write buffers wait to be flushed: several logs."""
    home = tmp_path_factory.mktemp("many_logs")
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(64 * 1024)
    options.set_max_write_buffer_number(30)
    options.set_min_write_buffer_number_to_merge(29)
    database = Rdict(str(home / "live"), options)
    for number in range(BATCHES):
        batch = WriteBatch(raw_mode=True)
        for key, value in pairs(number):
            batch[key] = value * 3
        database.write(batch)
    shutil.copytree(home / "live", home / "image")
    database.close()
    assert len(logs(home / "image")) >= 3
    return home / "image"


@pytest.fixture
def store_directory(one_log: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(one_log, tmp_path / "store"))


@pytest.fixture
def many_directory(many_logs: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(many_logs, tmp_path / "many"))


def logs(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def edit(path: Path, change: Callable[[bytearray], bytearray]) -> None:
    path.write_bytes(change(bytearray(path.read_bytes())))


def record_of(log: bytes, number: int) -> int:
    """Where the log record of a batch begins: header, sequence, count, one tag, one length."""
    begin = bytes(log).index(b"a%05d" % number) - (7 + 12 + 1 + 1)
    assert log[begin + 6] == 1, "choose a batch that lies in one record"
    return begin


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


# ---- a killed process, and damage to its log


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
    assert find_trouble(tmp_path / "image") is None
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
    found = list(_batches(log))
    assert [(sequence, count) for _, sequence, count in found] == [(n, 1) for n in range(1, 7)]
    assert find_trouble(image) is None


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

    def flip(bytes_: bytearray) -> bytearray:
        bytes_[record_of(bytes_, number) + BYTES[part]] ^= 1
        return bytes_

    edit(log, flip)
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

    def flip(bytes_: bytearray) -> bytearray:
        bytes_[record_of(bytes_, 200) + 60] ^= 1
        return bytes_

    edit(log, flip)
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
    sequences = [sequence for _, sequence, _ in _batches(log)]
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
    assert Ingest(before=10, after=20, files=2).explains(expected, found) is explained


def test_an_ingest_that_never_ended_explains_as_many_numbers_as_files() -> None:
    unfinished = Ingest(before=10, after=-1, files=2)
    assert unfinished.explains(500, 502)
    assert not unfinished.explains(500, 503)


def test_a_log_left_over_by_a_killed_salvage_is_no_damage(store_directory: Path) -> None:
    (log,) = logs(store_directory)

    def flip(bytes_: bytearray) -> bytearray:
        bytes_[record_of(bytes_, 200) + 60] ^= 1
        return bytes_

    edit(log, flip)
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


# ---- damage to the other files


@pytest.fixture
def damaged_table(tmp_path: Path) -> Iterator[RocksStore]:
    """A store with one flipped bit in the middle of its one table file."""
    store = open_rocks(tmp_path / "store")
    writer = store.sorted_file_writer(tmp_path / "file")
    for number in range(5000):
        writer.put(b"k%05d" % number, os.urandom(50))
    file = writer.finish()
    assert file is not None
    store.ingest([file])
    store.close()
    (table,) = (tmp_path / "store").glob("*.sst")

    def flip(bytes_: bytearray) -> bytearray:
        bytes_[len(bytes_) // 2] ^= 1
        return bytes_

    edit(table, flip)
    store = load_rocks(tmp_path / "store")
    yield store
    store.close()


def test_a_scan_over_a_damaged_table_fails_instead_of_ending_early(
    damaged_table: RocksStore,
) -> None:
    """The binding's own items() and values() just stop there."""
    scans = [
        damaged_table.scan(b"", None),
        damaged_table.scan(b"", None, reverse=True),
        damaged_table.scan(b"", None, batch_rows=7),
        damaged_table.scan(b"", b"k04000"),
        damaged_table.scan_values(b"", None),
    ]
    for scan in scans:
        with pytest.raises(Corruption):
            list(scan)
        assert list(scan) == []


def test_a_read_of_a_damaged_block_is_corruption_and_others_are_answered(
    damaged_table: RocksStore,
) -> None:
    refused = 0
    for number in range(5000):
        try:
            assert damaged_table.get(b"k%05d" % number) is not None
        except Corruption:
            refused += 1
    assert 0 < refused < 500
    with pytest.raises(Corruption):
        damaged_table.multi_get([b"k%05d" % number for number in range(5000)])


@pytest.mark.parametrize(
    "damage",
    [
        lambda store: (store / "CURRENT").write_text("MANIFEST-999999\n"),
        lambda store: (store / "CURRENT").write_text("nonsense"),
        lambda store: (store / "CURRENT").unlink(),
        lambda store: next(store.glob("MANIFEST-*")).unlink(),
        lambda store: edit(next(store.glob("MANIFEST-*")), lambda bytes_: bytes_[20:]),
    ],
    ids=["CURRENT elsewhere", "CURRENT nonsense", "no CURRENT", "no MANIFEST", "MANIFEST cut"],
)
def test_a_damaged_root_is_refused_and_nothing_is_begun_over_it(
    store_directory: Path, damage: Callable[[Path], object]
) -> None:
    damage(store_directory)
    kept = (logs(store_directory)[0]).read_bytes()
    for create in (False, True):
        with pytest.raises(Corruption):
            RocksStore.open(store_directory, create=create)
    assert (logs(store_directory)[0]).read_bytes() == kept


def test_an_ingested_file_that_is_none_is_corruption_and_changes_nothing(tmp_path: Path) -> None:
    store = open_rocks(tmp_path / "store")
    (tmp_path / "file").write_bytes(os.urandom(2000))
    with pytest.raises(Corruption):
        store.ingest([tmp_path / "file"])
    store.write([(b"k", b"v")], sync=True)
    assert content(store) == [(b"k", b"v")]
    store.close()


# ---- opening and closing


def test_what_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "file", tmp_path / "empty", tmp_path / "missing"):
        with pytest.raises(InvalidInput) as refused:
            RocksStore.open(path, create=False)
        assert refused.value.sqlstate == "3D000"
    with pytest.raises(InvalidInput):
        RocksStore.open(tmp_path / "file", create=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file"]
    assert list((tmp_path / "empty").iterdir()) == []


def test_close_lets_go_even_with_scans_open(tmp_path: Path) -> None:
    store = open_rocks(tmp_path / "store")
    store.write([(b"k%d" % number, b"v") for number in range(9)])
    store.checkpoint(tmp_path / "copy")
    scans = [store.scan(b"", None, batch_rows=1), store.scan(b"", None, reverse=True, batch_rows=2)]
    values = store.scan_values(b"", None, batch_rows=2)
    for scan in (*scans, values):
        next(scan)
    store.close()
    again = load_rocks(tmp_path / "store")
    again.write([(b"k", b"v")])
    with pytest.raises(Unavailable):
        next(scans[0])
    again.close()


def test_close_waits_for_the_batch_being_read(tmp_path: Path) -> None:
    """A batch in the making holds an iterator, and with it the lock of the directory."""
    store = open_rocks(tmp_path / "store")
    store.write([(b"k", b"v")])
    reading = Event()

    def take_slowly(cursor: RdictIter, wanted: int, start: bytes) -> list[bytes]:
        reading.set()
        while not store._closed:
            store.get(b"k")
        for _ in range(1000):
            store.get(b"k")  # fails if the database is closed under the iterator
        return take_values(cursor, wanted, start)

    scan = Scan(
        store, store._scans, take_slowly, b"", None, reverse=False, limit=None, batch_rows=9
    )
    with ThreadPoolExecutor(1) as pool:
        batch = pool.submit(next, scan)
        reading.wait()
        store.close()
        assert batch.result() == [b"v"]
    load_rocks(tmp_path / "store").close()


def test_a_second_opener_hears_who_has_the_store(tmp_path: Path) -> None:
    store = open_rocks(tmp_path / "store")
    script = (
        "import sys; from pathlib import Path\n"
        "from belvedere.kv.rocksdb import RocksStore\n"
        "from belvedere.errors import Unavailable\n"
        "for salvage in (False, True):\n"
        "    try: RocksStore.open(Path(sys.argv[1]), create=True, salvage=salvage)\n"
        "    except Unavailable as error: print(error.sqlstate, error.facts['owner_pid'])\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "store")]
    environment = {**os.environ, "PYTHONPATH": "src"}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert answer.stdout == f"55006 {os.getpid()}\n" * 2
    with pytest.raises(Unavailable) as refused:
        open_rocks(tmp_path / "store")
    assert refused.value.facts["owner_pid"] == os.getpid()
    store.write([(b"k", b"v")], sync=True)
    store.close()


# ---- a file system that refuses


def test_after_a_failed_write_reads_go_on_and_a_reopened_store_is_whole(tmp_path: Path) -> None:
    """A limit on file sizes stands in for a disk that refuses."""
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from belvedere.kv.rocksdb import RocksStore\n"
        "from belvedere.errors import Unavailable\n"
        "store = RocksStore.open(Path(sys.argv[1]), create=True)\n"
        "store.write([(b'first', b'1')], sync=True)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, resource.RLIM_INFINITY))\n"
        "number = 0\n"
        "try:\n"
        "    while number < 9999:\n"
        "        store.write([(b'k%04d' % number, bytes(100)), (b'l%04d' % number, bytes(100))])\n"
        "        number += 1\n"
        "except Unavailable as error: print(error.sqlstate, number)\n"
        "assert store.get(b'first') == b'1'\n"
        "rows = [key for batch in store.scan(b'', None) for key, _ in batch]\n"
        "assert len(rows) >= 2 * number + 1, len(rows)\n"
        "try: store.write([(b'second', b'2')], sync=True)\n"
        "except Unavailable as error: print(error.sqlstate)\n"
        "import os; os._exit(0)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "store")]
    environment = {**os.environ, "PYTHONPATH": "src"}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    first, second = answer.stdout.splitlines()
    state, written = first.split()
    assert (state, second) == ("58030", "58030")
    store = load_rocks(tmp_path / "store")
    assert [store.get(b"first"), store.get(b"second")] == [b"1", None]
    keys = [key for key, _ in content(store) if key != b"first"]
    assert len(keys) == 2 * int(written)
    store.close()


@pytest.mark.parametrize(
    ("text", "kind", "sqlstate"),
    [
        ("IO error: No space left on device: While appending to file: x", Unavailable, "53100"),
        ("IO error: While fdatasync: x: Input/output error", Unavailable, "58030"),
        ("Corruption: block checksum mismatch", Corruption, "XX001"),
        ("Shutdown in progress: ", Unavailable, "58000"),
    ],
)
def test_errors_of_the_engine_become_ours(
    text: str, kind: type[Exception], sqlstate: str, tmp_path: Path
) -> None:
    for mapped in (translated, translated_open):
        error = mapped(Exception(text), tmp_path)
        assert type(error) is kind
        assert error.sqlstate == sqlstate
        assert error.detail == text
