"""A memory store that can lose power: what was not synced may go, newest first, batch by batch.

Like a write-ahead log after a power cut: some prefix of the unsynced batches survives, each
complete. Ingested files survive by themselves, even where earlier unsynced batches do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import RLock
from typing import TypeVar

from belvedere.kv.batch import KeySpan, Write, check_batch
from belvedere.kv.doubles.intercept import InterceptedStore, StoreCall
from belvedere.kv.memory import MemoryStore
from belvedere.kv.sorted_file import read_pair_file

Answer = TypeVar("Answer")
Images = dict[bytes, bytes | None]
"""Keys with the values they had before a batch; None: the key was absent."""


class PowerStore(InterceptedStore):
    """A MemoryStore with a plug. One lock: a batch and its before-images belong together."""

    __slots__ = ("_lock", "_memory", "_unsynced")

    def __init__(self, inner: MemoryStore) -> None:
        super().__init__(inner)
        self._memory = inner
        self._lock = RLock()
        self._unsynced: list[Images] = []

    @property
    def unsynced_batches(self) -> int:
        return len(self._unsynced)

    def intercept_call(self, call: StoreCall, act: Callable[[], Answer]) -> Answer:
        with self._lock:
            return act()

    def write(
        self, batch: Sequence[Write], *, sync: bool = False, cleared: Sequence[KeySpan] = ()
    ) -> None:
        check_batch(batch)
        with self._lock:
            keys = [key for start, end in cleared for key in self._list_keys(start, end)]
            keys += [key for key, _ in batch]
            self._remember_images(keys, lambda: self.inner.write(batch, cleared=cleared))
            if sync:
                self.sync()

    def delete_range(self, start: bytes, end: bytes) -> None:
        with self._lock:
            keys = self._list_keys(start, end)
            self._remember_images(keys, lambda: self.inner.delete_range(start, end))

    def _list_keys(self, start: bytes, end: bytes) -> list[bytes]:
        return [key for rows in self.inner.scan(start, end) for key, _ in rows]

    def sync(self) -> None:
        with self._lock:
            self.inner.sync()
            self._unsynced.clear()

    def ingest(self, files: Sequence[Path]) -> None:
        with self._lock:
            keys = [key for file in files for key, _ in read_pair_file(file)]
            self.inner.ingest(files)
            for images in self._unsynced:
                for key in keys:
                    images.pop(key, None)

    def cut_power(self, *, kept_batches: int = 0) -> MemoryStore:
        """What is found after a power cut that the first `kept_batches` unsynced batches survived.

        This store is closed by it, as its process is dead.
        """
        with self._lock:
            for images in reversed(self._unsynced[kept_batches:]):
                self._memory.write(list(images.items()))
            pairs = [pair for rows in self._memory.scan(b"", None) for pair in rows]
            self._memory.close()
        return MemoryStore(pairs)

    def _remember_images(self, keys: list[bytes], act: Callable[[], None]) -> None:
        """Do `act`; only then do its before-images count."""
        images = dict(zip(keys, self.inner.multi_get(keys)))
        act()
        self._unsynced.append(images)
