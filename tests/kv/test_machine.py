"""Random histories: the two engines, mirrored, against a plain dict, with reopening and copies."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from belvedere.kv.batch import Pair, Write
from belvedere.kv.doubles.mirror import MirrorStore
from belvedere.kv.memory import MemoryStore
from belvedere.kv.rocksdb import RocksStore
from belvedere.kv.rocksdb_gather import GatheringStore
from tests.kv.stores import content, pairs_of

# Few, close keys: most of what goes wrong needs the same key twice.
KEYS = st.binary(max_size=3) | st.sampled_from(
    [bytes([first, second]) for first in (0, 97, 98, 255) for second in (0, 97, 255)]
)
VALUES = st.binary(max_size=4)
BATCHES = st.lists(st.tuples(KEYS, st.none() | VALUES), max_size=8)


class StoreMachine(RuleBasedStateMachine):
    kind = RocksStore

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="belvedere-kv-"))
        self.model: dict[bytes, bytes] = {}
        self.numbers = count()
        self.scans: list[tuple[Iterator[list[Pair]], list[Pair]]] = []

    @initialize()
    def open(self) -> None:
        self.rocks = self.kind.open(self.home / "store", create=True)
        self.memory = MemoryStore()
        self.store = MirrorStore(self.memory, self.rocks)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
        shutil.rmtree(self.home)

    def within(self, start: bytes, end: bytes | None) -> list[Pair]:
        return [
            (key, self.model[key])
            for key in sorted(self.model)
            if start <= key and (end is None or key < end)
        ]

    @rule(batch=BATCHES, sync=st.booleans())
    def write_sums_and_progress(self, batch: list[Write], sync: bool) -> None:
        self.store.write(batch, sync=sync)
        for key, value in batch:
            if value is None:
                self.model.pop(key, None)
            else:
                self.model[key] = value

    @rule(batch=BATCHES, cleared=st.lists(st.tuples(KEYS, KEYS), max_size=2))
    def write_over_ranges(self, batch: list[Write], cleared: list[tuple[bytes, bytes]]) -> None:
        self.store.write(batch, cleared=cleared)
        for start, end in cleared:
            for key, _ in self.within(start, end):
                del self.model[key]
        for key, value in batch:
            self.model.pop(key, None)
            if value is not None:
                self.model[key] = value

    @rule(start=KEYS, end=KEYS)
    def delete_range(self, start: bytes, end: bytes) -> None:
        self.store.delete_range(start, end)
        for key, _ in self.within(start, end):
            del self.model[key]

    @rule(keys=st.lists(KEYS, max_size=5))
    def read(self, keys: list[bytes]) -> None:
        expected = [self.model.get(key) for key in keys]
        assert self.store.multi_get(keys) == expected
        assert [self.store.get(key) for key in keys] == expected

    @rule(
        start=KEYS,
        end=st.none() | KEYS,
        reverse=st.booleans(),
        limit=st.none() | st.integers(0, 5),
        batch_rows=st.integers(1, 4),
    )
    def scan(
        self, start: bytes, end: bytes | None, reverse: bool, limit: int | None, batch_rows: int
    ) -> None:
        expected = self.within(start, end)
        expected = (expected[::-1] if reverse else expected)[:limit]
        scan = self.store.scan(start, end, reverse=reverse, limit=limit, batch_rows=batch_rows)
        assert pairs_of(scan) == expected
        if end is not None and limit:
            assert self.store.fetch_range(start, end, limit, reverse=reverse) == expected
        values = self.store.scan_values(start, end, batch_rows=batch_rows)
        assert [value for batch in values for value in batch] == [
            value for _, value in self.within(start, end)
        ]

    @rule(start=KEYS, reverse=st.booleans(), batch_rows=st.integers(1, 3))
    def begin_scan(self, start: bytes, reverse: bool, batch_rows: int) -> None:
        expected = self.within(start, None)
        expected = expected[::-1] if reverse else expected
        scan = self.store.scan(start, None, reverse=reverse, batch_rows=batch_rows)
        assert next(scan, []) == expected[:batch_rows]
        self.scans.append((scan, expected[batch_rows:]))

    @precondition(lambda self: self.scans)
    @rule(data=st.data())
    def finish_scan(self, data: st.DataObject) -> None:
        chosen = data.draw(st.integers(0, len(self.scans) - 1))
        scan, expected = self.scans.pop(chosen)
        assert pairs_of(scan) == expected

    @rule(files=st.lists(st.dictionaries(KEYS, VALUES, min_size=1, max_size=5), max_size=2))
    def ingest(self, files: list[dict[bytes, bytes]]) -> None:
        paths = []
        for pairs in files:
            path = self.home / f"file{next(self.numbers)}"
            writer = self.store.sorted_file_writer(path)
            for key in sorted(pairs):
                writer.put(key, pairs[key])
            assert writer.finish() == path
            paths.append(path)
        self.store.ingest(paths)
        for pairs in files:
            self.model.update(pairs)

    @rule()
    def reopen(self) -> None:
        """A clean restart of RocksDB; open scans die with the store."""
        self.scans.clear()
        self.rocks.close()
        self.rocks = self.kind.open(self.home / "store", create=False)
        self.store = MirrorStore(self.memory, self.rocks)

    @rule()
    def move_to_a_checkpoint(self) -> None:
        """Go on from a copy of each side; the originals stay behind unchanged."""
        self.scans.clear()
        self.store.checkpoint(self.home / "copy")
        self.store.close()
        shutil.rmtree(self.home / "store")
        (self.home / "copy" / "right").rename(self.home / "store")
        self.memory = MemoryStore.from_checkpoint(self.home / "copy" / "left")
        self.rocks = self.kind.open(self.home / "store", create=False)
        self.store = MirrorStore(self.memory, self.rocks)
        shutil.rmtree(self.home / "copy")

    @invariant()
    def everything_is_there(self) -> None:
        if hasattr(self, "store"):
            assert content(self.store) == self.within(b"", None)


class GatheringMachine(StoreMachine):
    """Looks by gets only: a scan has everything handed to the engine."""

    kind = GatheringStore

    @invariant()
    def everything_is_there(self) -> None:
        if hasattr(self, "store"):
            keys = list(self.model)
            assert self.store.multi_get(keys) == list(self.model.values())
            assert [self.store.get(key) for key in keys] == list(self.model.values())


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=30, stateful_step_count=25)
TestGatheringMachine = GatheringMachine.TestCase
TestGatheringMachine.settings = settings(max_examples=30, stateful_step_count=25)
