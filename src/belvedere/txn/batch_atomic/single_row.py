"""The single-row fast path: one row replaced or inserted by its key, in a transaction of its own.

Most writes of an application change one row in a statement of its own. Such a commit needs no
snapshot, since it reads one value, and no conflict check against one: it takes the root lock of its
row, reads the newest value, makes the new one, and writes it in the commit section if the row is
still what was read. Log record, participants, group commit and publishing are those of every
commit.

Only for rows that are their own root, on a batch-atomic store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from belvedere.catalog.catalog import Catalog
from belvedere.txn.batch_atomic.commit import BatchCommit
from belvedere.txn.batch_atomic.visibility import Visibility
from belvedere.txn.contracts import RowChange, new_tuple
from belvedere.txn.transaction.locks import RowLockTable


class BatchSingleRowCommits:
    __slots__ = ("_commits", "_get", "_locks", "_suffixes", "_visibility")

    def __init__(
        self,
        commits: BatchCommit,
        visibility: Visibility,
        locks: RowLockTable,
        suffixes: Iterator[bytes],
    ) -> None:
        self._commits = commits
        self._visibility = visibility
        self._get = visibility.store.get
        self._locks = locks
        self._suffixes = suffixes

    def replace_row(
        self,
        key: bytes,
        catalog: Catalog,
        change: Callable[[bytes], bytes],
        wait_ms: int | None = None,
    ) -> int | None:
        """Replace the row under `key` by what `change` makes of it; the position. None: nothing was
        done, since there is no such row, or the catalog is another one by now."""
        visibility, locks = self._visibility, self._locks
        if locks.is_root_held(key) and self._get(key) is None:
            return (
                None  # who holds it may add the row, but nobody waits for a row that is not there
            )
        transaction = visibility.written[1].to_bytes(8) + next(self._suffixes)
        locks.acquire_root(transaction, key, wait_ms)
        try:
            seen = visibility.written
            old = self._get(key)
            if old is None or seen[2] is not catalog:
                return None
            new = new_tuple(RowChange, (key, old, change(old), seen[0]))
            return self._commits.commit_single_row(transaction, seen, new)
        finally:
            locks.release(transaction, (key,))

    def insert_row(
        self, key: bytes, catalog: Catalog, value: bytes, wait_ms: int | None = None
    ) -> int | None:
        """Add a row; the position. None: nothing was done, since the key is taken, or the catalog
        is another one by now."""
        visibility, locks = self._visibility, self._locks
        transaction = visibility.written[1].to_bytes(8) + next(self._suffixes)
        locks.acquire_root(transaction, key, wait_ms)
        try:
            seen = visibility.written
            if seen[2] is not catalog or self._get(key) is not None:
                return None
            new = new_tuple(RowChange, (key, None, value, seen[0]))
            return self._commits.commit_single_row(transaction, seen, new)
        finally:
            locks.release(transaction, (key,))
