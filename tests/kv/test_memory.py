"""The memory store's files: read whole or refused whole."""

from __future__ import annotations

from pathlib import Path

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
