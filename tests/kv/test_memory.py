"""The memory store: its files are read whole or refused whole; a scan costs what is read of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from belvedere.errors import Corruption, InvalidInput
from belvedere.kv.memory import CHECKPOINT_FILE, MemoryStore
from tests.kv.stores import content


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    store = MemoryStore([(b"", b""), (b"key", b"value"), (b"other", b"x" * 50)])
    store.checkpoint(tmp_path / "copy")
    return tmp_path / "copy"


def test_every_cut_of_a_checkpoint_is_refused(checkpoint: Path) -> None:
    file = checkpoint / CHECKPOINT_FILE
    whole = file.read_bytes()
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        with pytest.raises(Corruption):
            MemoryStore.from_checkpoint(checkpoint)


def test_every_flipped_bit_of_a_checkpoint_is_refused(checkpoint: Path) -> None:
    file = checkpoint / CHECKPOINT_FILE
    whole = file.read_bytes()
    for place in range(len(whole) * 8):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        file.write_bytes(damaged)
        with pytest.raises(Corruption):
            MemoryStore.from_checkpoint(checkpoint)


def test_a_directory_without_a_checkpoint_is_invalid_input(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        MemoryStore.from_checkpoint(tmp_path)
    assert refused.value.sqlstate == "58P01"


def test_a_damaged_file_is_not_ingested_and_stays(tmp_path: Path) -> None:
    store = MemoryStore()
    writer = store.sorted_file_writer(tmp_path / "file")
    writer.put(b"a", b"1")
    file = writer.finish()
    assert file is not None
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(Corruption):
        store.ingest([file])
    assert content(store) == []
    assert file.exists()


def test_a_scan_reads_only_what_is_taken_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore([(bytes([i]), b"v") for i in range(200)])
    read: list[int] = []
    read_batch = MemoryStore._read_batch

    def count_pairs(self: MemoryStore, scan: Any, rows: int | None) -> list[Any]:
        found = read_batch(self, scan, rows)
        read.append(len(found))
        return found

    monkeypatch.setattr(MemoryStore, "_read_batch", count_pairs)
    for reverse in (False, True):
        scan = store.scan(b"", None, reverse=reverse, batch_rows=3)
        next(scan)
        del scan
    assert read == [3, 3]
    store.write([(b"x", b"new")])
    assert read == [3, 3], "a scan that nobody reads is forgotten"


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("limit", [None, 4, 7])
def test_a_scan_shows_what_was_there_when_it_began(
    reverse: bool, limit: int | None, tmp_path: Path
) -> None:
    pairs = [(bytes([i]), b"old") for i in range(10)]
    file = MemoryStore().sorted_file_writer(tmp_path / "file")
    file.put(bytes([5, 5]), b"new")
    path = file.finish()
    assert path is not None
    store = MemoryStore(pairs)
    scans = [
        store.scan(bytes([1]), bytes([9]), reverse=reverse, limit=limit, batch_rows=2)
        for _ in range(4)
    ]
    seen = [next(scan) for scan in scans]
    store.write([(bytes([3]), b"new"), (bytes([4]), None), (bytes([4, 4]), b"new")])
    seen[1] += next(scans[1])
    store.delete_range(bytes([5]), bytes([7]))
    seen[2] += next(scans[2])
    store.ingest([path])
    expected = pairs[1:9][::-1] if reverse else pairs[1:9]
    for scan, first in zip(scans, seen):
        assert [*first, *(pair for batch in scan for pair in batch)] == expected[:limit]
