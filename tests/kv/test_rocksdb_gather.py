"""What only gathered writes can get wrong: order, sight, failures, and who hands them over."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from belvedere.errors import Unavailable
from belvedere.kv import rocksdb
from belvedere.kv.batch import Write
from belvedere.kv.rocksdb import RocksStore
from belvedere.kv.rocksdb_gather import BATCH_WRITES_MAX, GATHERED_WRITES_MAX, GatheringStore
from belvedere.kv.rocksdb_scan import ScanOwner
from tests.kv.stores import content, load_rocks, open_gathering


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many writes each call of the engine had."""
    seen: list[int] = []
    write = RocksStore.write

    def counted(self: RocksStore, batch: Any, **options: Any) -> None:
        seen.append(len(batch))
        write(self, batch, **options)

    monkeypatch.setattr(RocksStore, "write", counted)
    return seen


def test_writes_between_two_syncs_are_one_call_of_the_engine(
    tmp_path: Path, calls: list[int]
) -> None:
    store = open_gathering(tmp_path / "store")
    for number in range(8):
        store.write([(b"k%d" % number, b"v"), (b"last", b"%d" % number)])
    assert calls == []
    assert store.multi_get([b"k0", b"k7", b"last"]) == [b"v", b"v", b"7"]
    store.sync()
    store.sync()
    assert calls == [9]
    store.close()
    with_all = load_rocks(tmp_path / "store")
    assert with_all.get(b"last") == b"7"
    with_all.close()


ENDS: dict[str, Callable[[GatheringStore, Path], object]] = {
    "scan": lambda store, _: next(store.scan(b"", None)),
    "first rows": lambda store, _: next(store.scan(b"", None, limit=5)),
    "last rows": lambda store, _: next(store.scan(b"", None, limit=5, reverse=True)),
    "few rows": lambda store, _: store.fetch_range(b"", b"\xff", 5),
    "few rows from the end": lambda store, _: store.fetch_range(b"", b"\xff", 5, reverse=True),
    "values": lambda store, _: next(store.scan_values(b"", None)),
    "page": lambda store, _: next(store.scan_values(b"", None, batch_rows=5)),
    "range": lambda store, _: store.delete_range(b"x", b"y"),
    "checkpoint": lambda store, home: store.checkpoint(home / "copy"),
    "sync": lambda store, _: store.sync(),
    "synced write": lambda store, _: store.write([(b"s", b"1")], sync=True),
    "clearing write": lambda store, _: store.write([(b"s", b"1")], cleared=[(b"x", b"y")]),
    "large batch": lambda store, _: store.write([(b"b", b"1")] * (BATCH_WRITES_MAX + 1)),
    "large value": lambda store, _: store.write([(b"b", bytes(70_000))]),
    "many": lambda store, _: store.write([(b"k", b"2")]),
}


@pytest.mark.parametrize("end", ENDS)
def test_what_needs_the_engine_finds_everything_there(
    tmp_path: Path, calls: list[int], end: str
) -> None:
    store = open_gathering(tmp_path / "store")
    for number in range(GATHERED_WRITES_MAX):
        store.write([(b"n%06d" % number, b"1")])
    assert calls == []
    ENDS[end](store, tmp_path)
    assert calls[0] == GATHERED_WRITES_MAX + (end == "many")
    store.close()


def test_a_deleted_key_is_gone_before_the_engine_knows(tmp_path: Path) -> None:
    store = open_gathering(tmp_path / "store")
    store.write([(b"k", b"1")], sync=True)
    store.write([(b"k", None)])
    assert store.get(b"k") is None
    assert store.multi_get([b"k"]) == [None]
    assert content(store) == []
    store.close()


def test_what_the_engine_refuses_ends_writing_but_not_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_gathering(tmp_path / "store")
    store.write([(b"a", b"1")], sync=True)
    store.write([(b"b", b"2")])

    def full(*_: object, **__: object) -> None:
        raise Unavailable("no space", sqlstate="53100")

    with monkeypatch.context() as patched:
        patched.setattr(RocksStore, "write", full)
        assert content(store) == [(b"a", b"1")]  # goes on with what is there
    for refused in (store.sync, lambda: store.write([(b"c", b"3")])):
        with pytest.raises(Unavailable, match="no space"):
            refused()
    assert store.multi_get([b"a", b"b", b"c"]) == [b"1", b"2", None]
    assert content(store) == [(b"a", b"1")]
    store.close()
    again = load_rocks(tmp_path / "store")
    assert content(again) == [(b"a", b"1")]
    again.close()


@pytest.mark.parametrize("before", [True, False])
def test_an_interrupted_hand_over_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    store, write = open_gathering(tmp_path / "store"), RocksStore.write
    store.write([(b"a", b"1"), (b"b", b"1")])

    def interrupted(self: RocksStore, batch: Any, **options: Any) -> None:
        if not before:
            write(self, batch, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(RocksStore, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.sync()
    store.write([(b"b", b"2")])
    assert store.multi_get([b"a", b"b"]) == [b"1", b"2"]
    store.sync()
    assert content(store) == [(b"a", b"1"), (b"b", b"2")]
    store.close()


def test_writes_on_their_way_to_the_engine_are_seen_at_every_step(tmp_path: Path) -> None:
    store, seen = open_gathering(tmp_path / "store"), []

    def look(frame: FrameType, event: str, _: object) -> Any:
        if (
            frame.f_code.co_filename != rocksdb.__file__
            and "_hand_over" not in frame.f_code.co_name
        ):
            return None
        if event == "line":
            seen.append((store.get(b"a"), store.multi_get([b"a", b"b"])))
        return look

    store.write([(b"a", b"1"), (b"b", None)])
    sys.settrace(look)
    try:
        store.sync()
    finally:
        sys.settrace(None)
    assert len(seen) > 10
    assert set(map(str, seen)) == {str((b"1", [b"1", None]))}
    store.close()


class _SlowBatch(list[Write]):
    """Has somebody sync while it is being gathered."""

    def __init__(self, store: GatheringStore) -> None:
        super().__init__([(b"k", b"1")])
        self.syncing = threading.Thread(target=store.sync)
        self._times = 0

    def __iter__(self) -> Iterator[Write]:
        self._times += 1
        if self._times == 2:  # the first is a look at its sizes
            self.syncing.start()
            self.syncing.join(0.3)
        return super().__iter__()


def test_a_batch_is_not_lost_when_another_thread_syncs_while_it_is_gathered(tmp_path: Path) -> None:
    store = open_gathering(tmp_path / "store")
    store.write([(b"earlier", b"1")])
    batch = _SlowBatch(store)
    store.write(batch)
    batch.syncing.join(60)
    assert store.get(b"k") == b"1"
    assert content(store) == [(b"earlier", b"1"), (b"k", b"1")]
    store.close()


def test_a_write_beside_close_is_refused_rather_than_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, close = open_gathering(tmp_path / "store"), RocksStore.close
    refused: list[str | None] = []

    def late(self: RocksStore) -> None:
        with pytest.raises(Unavailable) as error:
            self.write([(b"late", b"1")])
        refused.append(error.value.sqlstate)
        close(self)

    monkeypatch.setattr(RocksStore, "close", late)
    store.write([(b"k", b"1")])
    store.close()
    assert refused == ["57P01"]
    monkeypatch.undo()
    again = load_rocks(tmp_path / "store")
    assert content(again) == [(b"k", b"1")]
    again.close()


def test_a_writer_is_never_seen_to_go_back(tmp_path: Path) -> None:
    """One writes ever higher numbers under two keys, one syncs, two look: what a key said once it
    never falls behind again, and a scan sees both keys of a batch or none."""
    store, done = open_gathering(tmp_path / "store"), threading.Event()
    wrong: list[str] = []

    def write() -> None:
        for number in range(4000):
            value = number.to_bytes(4)
            store.write([(b"a", value), (b"b", value)])
        done.set()

    def sync() -> None:
        while not done.is_set():
            store.sync()

    def look() -> None:
        last = b""
        while not done.is_set():
            value = store.get(b"a") or b""
            if value < last:
                wrong.append(f"{value!r} after {last!r}")
            last = value

    def scan() -> None:
        while not done.is_set():
            last = store.get(b"a") or b""
            pairs = content(store)
            if len({value for _, value in pairs}) > 1 or any(v < last for _, v in pairs):
                wrong.append(f"{pairs} after {last!r}")

    threads = [threading.Thread(target=work) for work in (write, sync, look, scan)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not wrong
    store.close()


def test_every_way_to_open_an_iterator_hands_over_first() -> None:
    ways = [name for name in vars(ScanOwner) if name.startswith("open_")]
    assert len(ways) >= 3
    assert not [name for name in ways if name not in vars(GatheringStore)]
