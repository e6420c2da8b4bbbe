"""What every batch store does, engine or transparent double."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from threading import Barrier, Event

import pytest

from belvedere.errors import Error, InvalidInput, Unavailable
from belvedere.kv.batch import KEY_BYTES_MAX, VALUE_BYTES_MAX, BatchStore, Pair
from tests.kv.stores import KINDS, Kind, content, pairs_of


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def store(kind: Kind, tmp_path: Path) -> Iterator[BatchStore]:
    opened = kind.open(tmp_path / "store")
    yield opened
    opened.close()


def filled(store: BatchStore, count: int = 10) -> list[Pair]:
    pairs = [(b"k%03d" % number, b"v%d" % number) for number in range(count)]
    store.write(pairs)
    return pairs


# ---- get and write


def test_a_written_value_is_read_and_an_absent_key_is_none(store: BatchStore) -> None:
    store.write([(b"a", b"1"), (b"empty", b"")])
    assert store.get(b"a") == b"1"
    assert store.get(b"empty") == b""
    assert store.get(b"b") is None


def test_a_bare_get_is_a_get_and_its_errors_are_mapped(store: BatchStore) -> None:
    bare = store.bare_get
    store.write([(b"a", b"1")])
    assert (bare(b"a"), bare(b"b")) == (b"1", None)
    store.write([(b"a", None), (b"b", b"2")])
    assert (bare(b"a"), bare(b"b")) == (None, b"2")
    store.close()
    with pytest.raises(Exception, match="clos") as raised:
        bare(b"a")
    mapped = raised.value if isinstance(raised.value, Error) else store.map_error(raised.value)
    assert isinstance(mapped, Unavailable)
    assert mapped.sqlstate == "57P01"


def test_the_later_write_of_a_key_in_one_batch_wins(store: BatchStore) -> None:
    store.write([(b"a", b"1"), (b"a", None), (b"a", b"2"), (b"b", b"1"), (b"b", None)])
    assert content(store) == [(b"a", b"2")]


def test_a_delete_removes_and_deleting_an_absent_key_is_no_error(store: BatchStore) -> None:
    store.write([(b"a", b"1")])
    store.write([(b"a", None), (b"never", None)], sync=True)
    assert content(store) == []


def test_an_empty_batch_and_an_empty_key_are_allowed(store: BatchStore) -> None:
    store.write([])
    store.write([(b"", b"root")])
    assert store.get(b"") == b"root"
    assert content(store) == [(b"", b"root")]


def test_multi_get_answers_in_the_order_asked_with_repeats(store: BatchStore) -> None:
    filled(store)
    asked = [b"k003", b"none", b"k001", b"k003"]
    assert store.multi_get(asked) == [b"v3", None, b"v1", b"v3"]
    assert store.multi_get(tuple(asked)) == [b"v3", None, b"v1", b"v3"]
    assert store.multi_get([]) == []


def test_keys_are_ordered_as_unsigned_bytes(store: BatchStore) -> None:
    keys = [b"\xff", b"\x80", b"\x7f", b"", b"\x00", b"\x00\x00", b"a\xff", b"b", b"\xff\xff"]
    store.write([(key, b"") for key in keys])
    assert [key for key, _ in content(store)] == sorted(keys)


# ---- scans


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize(
    ("start", "end"),
    [
        (b"", None),
        (b"k003", b"k007"),  # both bounds are keys: the start is in, the end is out
        (b"k0025", b"k0065"),  # neither bound is a key
        (b"k003", None),
        (b"", b"k003"),
        (b"", b""),
        (b"k005", b"k005"),
        (b"k007", b"k003"),
        (b"zzz", None),
        (b"", b"a"),
        (b"k009", b"\xff\xff"),
    ],
)
def test_a_scan_keeps_its_bounds(
    store: BatchStore, start: bytes, end: bytes | None, reverse: bool
) -> None:
    pairs = filled(store)
    within = [pair for pair in pairs if start <= pair[0] and (end is None or pair[0] < end)]
    for limit, batch_rows in product([None, 0, 1, 3, 10, 99], [1, 3, 4096]):
        scan = store.scan(start, end, reverse=reverse, limit=limit, batch_rows=batch_rows)
        batches = list(scan)
        expected = (within[::-1] if reverse else within)[:limit]
        assert [pair for batch in batches for pair in batch] == expected, (limit, batch_rows)
        assert all(0 < len(batch) <= batch_rows for batch in batches)
        assert all(len(batch) == batch_rows for batch in batches[:-1])
    values = store.scan_values(start, end, batch_rows=4)
    assert [value for batch in values for value in batch] == [value for _, value in within]
    if end is not None:
        for limit in (1, 3, 10, 99):
            found = store.fetch_range(start, end, limit, reverse=reverse)
            assert found == (within[::-1] if reverse else within)[:limit], limit


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
def test_a_scan_sees_the_moment_of_its_first_batch(store: BatchStore, reverse: bool) -> None:
    before = filled(store, 50)
    scan = store.scan(b"", None, reverse=reverse, batch_rows=5)
    values = store.scan_values(b"", None, batch_rows=5)
    seen = list(next(scan))
    seen_values = list(next(values))
    store.write([(b"k001x", b"new"), (b"k040x", b"new"), (b"k025", b"changed"), (b"k030", None)])
    store.delete_range(b"k008", b"k020")
    store.delete_range(b"k045", b"k048")
    seen += pairs_of(scan)
    assert seen == (before[::-1] if reverse else before)
    assert seen_values + [row for batch in values for row in batch] == [row for _, row in before]


def test_a_scan_begins_when_its_first_batch_is_asked_for(store: BatchStore) -> None:
    scan = store.scan(b"", None)
    filled(store, 3)
    assert len(next(scan)) == 3


def test_a_scan_that_ended_stays_ended(store: BatchStore) -> None:
    filled(store, 3)
    scan = store.scan(b"", None, batch_rows=2)
    assert len(list(scan)) == 2
    store.write([(b"z", b"")])
    assert list(scan) == []


def test_many_scans_may_be_open_and_abandoned(store: BatchStore) -> None:
    filled(store, 20)
    scans = [store.scan(b"k%03d" % number, None, batch_rows=1) for number in range(10)]
    assert [next(scan)[0][0] for scan in scans] == [b"k%03d" % number for number in range(10)]
    del scans[::2]
    assert [next(scan)[0][0] for scan in scans] == [b"k%03d" % number for number in range(2, 11, 2)]


@pytest.mark.parametrize("wrong", [{"limit": -1}, {"batch_rows": 0}])
def test_a_scan_with_impossible_limits_is_refused(store: BatchStore, wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        store.scan(b"", None, **wrong)  # type: ignore[arg-type]


# ---- delete_range


@pytest.mark.parametrize(
    ("start", "end", "left"),
    [
        (b"k001", b"k003", [b"k000", b"k003", b"k004"]),
        (b"", b"k003", [b"k003", b"k004"]),
        (b"k0005", b"\xff", [b"k000"]),
        (b"k003", b"k003", [b"k000", b"k001", b"k002", b"k003", b"k004"]),
        (b"k003", b"k001", [b"k000", b"k001", b"k002", b"k003", b"k004"]),
    ],
)
def test_delete_range_removes_its_half_open_range(
    store: BatchStore, start: bytes, end: bytes, left: list[bytes]
) -> None:
    filled(store, 5)
    store.delete_range(start, end)
    assert [key for key, _ in content(store)] == left
    # RocksDB refuses every write after an inverted range reached it.
    store.write([(b"k001", b"again")], sync=True)
    assert store.get(b"k001") == b"again"


def test_a_write_clears_ranges_before_what_it_writes(store: BatchStore) -> None:
    filled(store, 8)
    scan = store.scan(b"", None, batch_rows=2)
    next(scan)
    ranges = [(b"k001", b"k003"), (b"k005", b"k005"), (b"k007", b"k002"), (b"k006", b"\xff")]
    store.write([(b"k002", b"new"), (b"k003", None), (b"z", b"last")], sync=True, cleared=ranges)
    assert [key for key, _ in pairs_of(scan)] == [b"k%03d" % number for number in range(2, 8)]
    assert [key for key, _ in content(store)] == [b"k000", b"k002", b"k004", b"k005", b"z"]


# ---- limits


def test_a_key_of_the_limit_fits_and_a_longer_one_is_refused(store: BatchStore) -> None:
    longest = b"k" * KEY_BYTES_MAX
    store.write([(longest, b"v")])
    assert store.get(longest) == b"v"
    for value in (b"v", None):
        with pytest.raises(InvalidInput) as refused:
            store.write([(b"first", b"1"), (longest + b"k", value)])
        assert refused.value.sqlstate == "54000"
    assert store.get(b"first") is None


def test_a_value_of_the_limit_fits_and_a_longer_one_is_refused(store: BatchStore) -> None:
    store.write([(b"k", bytes(VALUE_BYTES_MAX))])
    with pytest.raises(InvalidInput) as refused:
        store.write([(b"first", b"1"), (b"k", bytes(VALUE_BYTES_MAX + 1))])
    assert refused.value.sqlstate == "54000"
    assert store.get(b"first") is None
    found = store.get(b"k")
    assert found is not None
    assert len(found) == VALUE_BYTES_MAX


@pytest.mark.parametrize("pair", [("text", b""), (b"k", "text"), (b"k", 5), (bytearray(b"k"), b"")])
def test_what_is_not_bytes_is_refused_and_nothing_is_written(
    store: BatchStore, pair: tuple[bytes, bytes]
) -> None:
    with pytest.raises(InvalidInput):
        store.write([(b"first", b"1"), pair])
    assert content(store) == []


def test_a_key_that_is_not_bytes_is_refused_by_reads(store: BatchStore) -> None:
    calls = [
        lambda: store.get("text"),  # type: ignore[arg-type]
        lambda: store.multi_get([b"k", "text"]),  # type: ignore[list-item]
        lambda: store.scan("text", None),  # type: ignore[arg-type]
        lambda: store.scan_values(b"", "text"),  # type: ignore[arg-type]
        lambda: store.delete_range(b"", "text"),  # type: ignore[arg-type]
        lambda: store.write([], cleared=[(b"", "text")]),  # type: ignore[list-item]
    ]
    for call in calls:
        with pytest.raises(InvalidInput):
            call()


# ---- sorted files


def sorted_file(store: BatchStore, path: Path, pairs: list[Pair]) -> Path:
    writer = store.sorted_file_writer(path)
    for key, value in pairs:
        writer.put(key, value)
    finished = writer.finish()
    assert finished is not None
    return finished


def test_ingest_adds_replaces_and_takes_the_files_away(store: BatchStore, tmp_path: Path) -> None:
    filled(store, 5)
    one = sorted_file(store, tmp_path / "one", [(b"", b"root"), (b"k001", b"new")])
    two = sorted_file(store, tmp_path / "two", [(b"k007", b"seven")])
    scan = store.scan(b"", None, batch_rows=1)
    first = next(scan)
    store.ingest([one, two])
    assert store.multi_get([b"", b"k001", b"k007", b"k002"]) == [b"root", b"new", b"seven", b"v2"]
    assert len(first + pairs_of(scan)) == 5, "a scan begun before does not see it"
    assert list(tmp_path.glob("one*")) == list(tmp_path.glob("two*")) == []
    store.write([(b"k001", b"newer")])
    assert store.get(b"k001") == b"newer"


def test_of_a_key_in_several_files_the_last_file_wins(store: BatchStore, tmp_path: Path) -> None:
    store.write([(b"b", b"old")])
    one = sorted_file(store, tmp_path / "one", [(b"a", b"1"), (b"b", b"1"), (b"d", b"1")])
    two = sorted_file(store, tmp_path / "two", [(b"b", b"2"), (b"c", b"2")])
    store.ingest([one, two])
    assert content(store) == [(b"a", b"1"), (b"b", b"2"), (b"c", b"2"), (b"d", b"1")]


def test_ingest_is_all_or_nothing(store: BatchStore, tmp_path: Path) -> None:
    good = sorted_file(store, tmp_path / "good", [(b"a", b"1")])
    with pytest.raises(InvalidInput):
        store.ingest([good, tmp_path / "missing"])
    assert content(store) == []
    store.ingest([good])
    store.ingest([])
    assert content(store) == [(b"a", b"1")]


@pytest.mark.parametrize("second", [b"a", b"b"])
def test_keys_of_a_sorted_file_must_ascend(
    store: BatchStore, tmp_path: Path, second: bytes
) -> None:
    writer = store.sorted_file_writer(tmp_path / "file")
    writer.put(b"b", b"1")
    with pytest.raises(InvalidInput):
        writer.put(second, b"2")
    writer.put(b"c", b"3")
    finished = writer.finish()
    assert finished is not None
    store.ingest([finished])
    assert content(store) == [(b"b", b"1"), (b"c", b"3")]


def test_a_sorted_file_keeps_the_limits(store: BatchStore, tmp_path: Path) -> None:
    writer = store.sorted_file_writer(tmp_path / "file")
    with pytest.raises(InvalidInput) as refused:
        writer.put(bytes(KEY_BYTES_MAX + 1), b"")
    assert refused.value.sqlstate == "54000"
    with pytest.raises(InvalidInput):
        writer.put(b"k", "text")  # type: ignore[arg-type]
    assert writer.finish() is None


def test_a_sorted_file_of_nothing_is_none_and_leaves_no_file(
    store: BatchStore, tmp_path: Path
) -> None:
    assert store.sorted_file_writer(tmp_path / "file").finish() is None
    assert list(tmp_path.glob("file*")) == []


def test_a_sorted_file_is_never_written_over_another(store: BatchStore, tmp_path: Path) -> None:
    sorted_file(store, tmp_path / "file", [(b"a", b"1")])
    with pytest.raises(InvalidInput):
        store.sorted_file_writer(tmp_path / "file")


# ---- checkpoint


def test_a_checkpoint_equals_the_store_at_its_moment(
    kind: Kind, store: BatchStore, tmp_path: Path
) -> None:
    filled(store, 20)
    store.sync()
    store.delete_range(b"k003", b"k006")
    store.write([(b"unsynced", b"too")])
    before = content(store)
    store.checkpoint(tmp_path / "checkpoint")
    store.write([(b"later", b"1"), (b"k001", None)])
    copy = kind.load(tmp_path / "checkpoint")
    assert content(copy) == before
    copy.write([(b"copy", b"only")])
    assert store.get(b"copy") is None
    copy.close()


def test_a_checkpoint_of_an_empty_store_loads(
    kind: Kind, store: BatchStore, tmp_path: Path
) -> None:
    store.checkpoint(tmp_path / "checkpoint")
    copy = kind.load(tmp_path / "checkpoint")
    assert content(copy) == []
    copy.close()


def test_a_checkpoint_never_writes_over_something(store: BatchStore, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(InvalidInput) as refused:
        store.checkpoint(tmp_path / "there")
    assert refused.value.sqlstate == "58P02"


def test_a_checkpoint_that_cannot_be_written_is_unavailable(
    store: BatchStore, tmp_path: Path
) -> None:
    with pytest.raises(Unavailable) as refused:
        store.checkpoint(tmp_path / "no" / "such" / "place")
    assert refused.value.sqlstate == "58030"
    filled(store)
    assert store.get(b"k001") == b"v1"


# ---- close


def test_after_close_every_call_is_unavailable(store: BatchStore, tmp_path: Path) -> None:
    filled(store)
    scan = store.scan(b"", None, batch_rows=1)
    values = store.scan_values(b"", None, batch_rows=1)
    fresh = store.scan(b"", None)
    next(scan), next(values)
    store.close()
    store.close()
    calls = [
        lambda: store.get(b"k"),
        lambda: store.multi_get([b"k"]),
        lambda: list(store.scan(b"", None)),
        lambda: list(store.scan_values(b"", None)),
        lambda: list(fresh),
        lambda: list(scan),
        lambda: list(values),
        lambda: store.write([(b"k", b"v")]),
        lambda: store.write([]),
        lambda: store.delete_range(b"a", b"b"),
        lambda: store.delete_range(b"b", b"a"),
        lambda: store.sync(),
        lambda: store.checkpoint(tmp_path / "late"),
        lambda: store.ingest([]),
        lambda: store.sorted_file_writer(tmp_path / "file"),
    ]
    for call in calls:
        with pytest.raises(Unavailable) as refused:
            call()
        assert refused.value.sqlstate == "57P01"
    assert not (tmp_path / "late").exists()


# ---- threads


@pytest.fixture
def often_switching() -> Iterator[None]:
    """Threads take turns every few instructions, so that a missing lock shows."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def run_threads(*works: Callable[[], None]) -> None:
    """Run all at once, each in its thread; a failure of any is raised here."""
    with ThreadPoolExecutor(len(works)) as pool:
        for running in [pool.submit(work) for work in works]:
            running.result()


@pytest.mark.usefixtures("often_switching")
def test_readers_in_other_threads_never_see_half_a_batch(store: BatchStore) -> None:
    keys = [b"p%02d" % number for number in range(20)]
    store.write([(key, b"0") for key in keys])
    start = Barrier(3)

    def write() -> None:
        start.wait()
        for number in range(150):
            store.write([(key, b"%d" % number) for key in keys])

    def read() -> None:
        start.wait()
        for _ in range(150):
            values = {value for _, value in pairs_of(store.scan(b"p", b"q", batch_rows=7))}
            assert len(values) == 1, values
            first = store.get(keys[0])
            last = store.get(keys[-1])
            assert int(first or -1) <= int(last or -1), "the second read is older than the first"

    run_threads(write, read, read)


@pytest.mark.usefixtures("often_switching")
def test_writers_in_many_threads_lose_nothing(store: BatchStore) -> None:
    def write(name: int) -> None:
        for number in range(60):
            store.write([(b"%d/%03d" % (name, number), b"v")], sync=number % 20 == 0)
            store.multi_get([b"%d/%03d" % (name, number), b"x"])
        store.delete_range(b"%d/000" % name, b"%d/030" % name)

    run_threads(*(lambda name=name: write(name) for name in range(4)))
    assert len(content(store)) == 4 * 30


@pytest.mark.usefixtures("often_switching")
def test_closing_under_running_calls_ends_them_with_unavailable(kind: Kind, tmp_path: Path) -> None:
    store = kind.open(tmp_path / "busy")
    filled(store, 200)
    start = Barrier(4)
    synced = Event()

    def use_forever() -> None:
        start.wait()
        while True:
            pairs_of(store.scan(b"", None, batch_rows=3))
            store.multi_get([b"k001", b"k002"])
            store.write([(b"k001", b"x")])
            store.write([(b"k002", b"x")], sync=True)  # most of the time is spent in here
            synced.set()

    def use() -> None:
        with pytest.raises(Unavailable):
            use_forever()

    def close() -> None:
        start.wait()
        synced.wait()
        store.close()

    run_threads(use, use, use, close)
