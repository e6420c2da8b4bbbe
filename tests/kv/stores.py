"""Every store of the conformance suite: how to open it, and how to load its checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from belvedere.kv.batch import BatchStore, Pair
from belvedere.kv.doubles.counter import CountingStore
from belvedere.kv.doubles.faults import FaultyStore
from belvedere.kv.doubles.mirror import MirrorStore
from belvedere.kv.doubles.power_loss import PowerStore
from belvedere.kv.doubles.recorder import RecordingStore
from belvedere.kv.memory import MemoryStore
from belvedere.kv.rocksdb import RocksStore
from belvedere.kv.rocksdb_gather import GatheringStore


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    open: Callable[[Path], BatchStore]
    load: Callable[[Path], BatchStore]


def open_rocks(directory: Path) -> RocksStore:
    return RocksStore.open(directory, create=True)


def load_rocks(directory: Path) -> RocksStore:
    return RocksStore.open(directory, create=False)


def open_gathering(directory: Path) -> GatheringStore:
    return GatheringStore.open(directory, create=True)


def _load_mirror(directory: Path) -> MirrorStore:
    return MirrorStore(
        MemoryStore.from_checkpoint(directory / "left"), load_rocks(directory / "right")
    )


KINDS = [
    Kind("memory", lambda _: MemoryStore(), MemoryStore.from_checkpoint),
    Kind("rocksdb", open_rocks, load_rocks),
    Kind("gathering", open_gathering, load_rocks),
    Kind("mirror", lambda path: MirrorStore(MemoryStore(), open_rocks(path)), _load_mirror),
    Kind("recorder", lambda _: RecordingStore(MemoryStore()), MemoryStore.from_checkpoint),
    Kind("counter", lambda _: CountingStore(MemoryStore()), MemoryStore.from_checkpoint),
    Kind("faults", lambda path: FaultyStore(open_rocks(path)), load_rocks),
    Kind("power", lambda _: PowerStore(MemoryStore()), MemoryStore.from_checkpoint),
]


def pairs_of(batches: Iterator[list[Pair]]) -> list[Pair]:
    return [pair for batch in batches for pair in batch]


def content(store: BatchStore) -> list[Pair]:
    return pairs_of(store.scan(b"", None))
