"""What only the RocksDB store can get wrong: files, locks, damage, and the traps of its binding."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from rocksdict import RdictIter, ReadOptions

from belvedere.errors import Corruption, InvalidInput, Unavailable
from belvedere.kv.batch import BULK_BATCH_ROWS, Pair
from belvedere.kv.rocksdb import RocksStore
from belvedere.kv.rocksdb_errors import translate_error, translate_open_error
from belvedere.kv.rocksdb_scan import BulkScan, RocksScan, take_pairs, take_values
from belvedere.kv.rocksdb_settings import CACHE_BYTES
from tests.kv.damage import edit, logs
from tests.kv.stores import content, load_rocks, open_rocks

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

    def transition(bytes_: bytearray) -> bytearray:
        bytes_[len(bytes_) // 2] ^= 1
        return bytes_

    edit(table, transition)
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
        damaged_table.scan(b"k01000", b"k04000", limit=3500, batch_rows=3500),
        _fetch_later(damaged_table, reverse=False),
        _fetch_later(damaged_table, reverse=True),
        damaged_table.scan_values(b"", None),
        damaged_table.scan_values(b"", None, batch_rows=7),
        damaged_table.scan_values(b"k01000", b"k04000", batch_rows=4000),
        damaged_table.scan_values(b"", None, batch_rows=BULK_BATCH_ROWS),
        damaged_table.scan_values(b"k01000", b"k04000", batch_rows=BULK_BATCH_ROWS),
    ]
    for scan in scans:
        with pytest.raises(Corruption):
            list(scan)
        assert list(scan) == []


def _fetch_later(store: RocksStore, *, reverse: bool) -> Iterator[list[Pair]]:
    yield store.fetch_range(b"k01000", b"k04000", 3500, reverse=reverse)


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


def test_the_tables_of_a_store_without_root_and_logs_are_not_deleted(tmp_path: Path) -> None:
    """RocksDB alone would begin anew here, and remove them as left over."""
    store = open_rocks(tmp_path / "store")
    writer = store.sorted_file_writer(tmp_path / "file")
    writer.put(b"k", b"v")
    file = writer.finish()
    assert file is not None
    store.ingest([file])
    store.close()
    for path in [tmp_path / "store" / "CURRENT", *logs(tmp_path / "store")]:
        path.unlink()
    tables = list((tmp_path / "store").glob("*.sst"))
    assert tables
    with pytest.raises(Corruption):
        RocksStore.open(tmp_path / "store", create=True)
    assert list((tmp_path / "store").glob("*.sst")) == tables


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


def test_a_bulk_scan_shows_the_moment_of_its_first_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belvedere.kv.rocksdb.BULK_BATCH_ROWS", 4)
    store = open_rocks(tmp_path / "store")
    store.write([(b"k%02d" % number, b"%d" % number) for number in range(10)])
    scan = store.scan_values(b"k02", b"k90", batch_rows=4)
    assert isinstance(scan, BulkScan)
    assert next(scan) == [b"2", b"3", b"4", b"5"]
    store.write([(b"k07", b"new"), (b"k08", None), (b"k50", b"behind the end")])
    assert list(scan) == [[b"6", b"7", b"8", b"9"]]
    assert list(store.scan_values(b"k06", None, batch_rows=4)) == [
        [b"6", b"new", b"9", b"behind the end"]
    ]
    assert list(store.scan_values(b"x", None, batch_rows=4)) == []
    again = store.scan_values(b"", None, batch_rows=4)
    next(again)
    store.close()
    with pytest.raises(Unavailable):
        next(again)
    load_rocks(tmp_path / "store").close()


def test_close_waits_for_the_batch_being_read(tmp_path: Path) -> None:
    """A batch in the making holds an iterator, and with it the lock of the directory."""
    store = open_rocks(tmp_path / "store")
    store.write([(b"k", b"v")])
    reading = Event()

    def take_slowly(cursor: RdictIter, wanted: int, start: bytes) -> list[bytes]:
        reading.set()
        engine = store._database
        while not store._closed:
            engine.get(b"k")
        for _ in range(1000):
            engine.get(b"k")  # fails if the engine is closed under the iterator
        return take_values(cursor, wanted, start)

    scan = RocksScan(
        store, store._scans, take_slowly, b"", None, reverse=False, limit=None, batch_rows=9
    )
    with ThreadPoolExecutor(1) as pool:
        batch = pool.submit(next, scan)
        reading.wait()
        store.close()
        assert batch.result() == [b"v"]
    load_rocks(tmp_path / "store").close()


def test_close_waits_for_a_range_that_is_being_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds an iterator between the engine's calls, and with it the lock of the directory."""
    store = open_rocks(tmp_path / "store")
    store.write([(b"k", b"v")])
    reading, waited, drawn = Event(), Event(), []

    def fetch_slowly(
        owner: RocksStore, start: bytes, limit: int, options: ReadOptions
    ) -> list[Pair]:
        cursor = owner.open_cursor(options)
        reading.set()
        waited.wait()
        cursor.seek(start)
        drawn.extend(take_pairs(cursor, limit, start))
        return drawn

    monkeypatch.setattr("belvedere.kv.rocksdb.fetch_pairs", fetch_slowly)
    sleep = time.sleep
    monkeypatch.setattr("belvedere.kv.rocksdb.time.sleep", lambda s: (waited.set(), sleep(s)))
    with ThreadPoolExecutor(1) as pool:
        fetched = pool.submit(store.fetch_range, b"a", b"z", 9)
        reading.wait()
        store.close()
        found = list(drawn)
        waited.set()
        assert found == fetched.result() == [(b"k", b"v")]
    with pytest.raises(Unavailable):
        store.fetch_range(b"a", b"z", 9)
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
    for mapped in (translate_error, translate_open_error):
        error = mapped(Exception(text), tmp_path)
        assert type(error) is kind
        assert error.sqlstate == sqlstate
        assert error.detail == text


# ---- settings


def test_the_settings_hold_for_a_store_that_exists_already(tmp_path: Path) -> None:
    """The binding takes them from the store's own OPTIONS file unless told by column family."""
    open_rocks(tmp_path / "store").close()
    store = load_rocks(tmp_path / "store")
    capacity = store._database.property_value("rocksdb.block-cache-capacity")
    store.close()
    assert capacity == str(CACHE_BYTES)
