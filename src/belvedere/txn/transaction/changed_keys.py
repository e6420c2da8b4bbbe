"""The keys that a transaction has changed, in order: its own rows of a range are found by them.

Most transactions change rows that they never scan past, so keys are put in their places when a
range is read. A short list takes them by moving what is behind; a long one would move too much, and
is kept in pieces.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence

from sortedcontainers import SortedList

from belvedere.txn.contracts import Reader, RowChange

LIST_KEYS_MAX = 20_000


def find_changes_since(
    changes: Mapping[bytes, RowChange], journal: Sequence[tuple[bytes, object]], since: int
) -> tuple[RowChange, ...]:
    """The net changes of the rows that the journal names from there on."""
    if len(journal) == since + 1:  # of one row, as most statements
        key, _ = journal[-1]
        return (changes[key],) if key in changes else ()
    keys = dict.fromkeys([key for key, _ in journal[since:]])
    return tuple([changes[key] for key in keys if key in changes])


def find_no_rows(
    changes: Mapping[bytes, RowChange],
    reads: set[bytes] | None,
    reader: Reader,
    keys: Sequence[bytes],
    end: bytes,
) -> bool:
    """Whether a table, whose keys end before `end`, is seen to have no rows under these keys. False
    is also said where the transaction has changed some of them itself. Keys after the last one of
    the table take one look; it would count as a read of the range, where reads are validated."""
    if not changes.keys().isdisjoint(keys):
        return False
    if reads is not None:
        reads.update(keys)
    elif not any(reader.scan(min(keys), end, limit=1)):
        return True
    return all(stored is None for stored in reader.multi_get(keys))


class ChangedKeys:
    __slots__ = ("_added", "_keys", "_pieces")

    def __init__(self, keys: Iterable[bytes]) -> None:
        self._keys: list[bytes] = []
        self._pieces: SortedList[bytes] | None = None  # in place of the list, when it is long
        self._added = list(keys)

    def add(self, key: bytes) -> None:
        self._added.append(key)

    def update(self, keys: Iterable[bytes]) -> None:
        self._added += keys

    def remove(self, key: bytes) -> None:
        self._place_added()
        if self._pieces is not None:
            self._pieces.remove(key)
        else:
            del self._keys[bisect_left(self._keys, key)]

    def find_range(self, start: bytes, end: bytes) -> list[bytes]:
        """The keys with start <= key < end, in order."""
        if self._added:
            self._place_added()
        if self._pieces is not None:
            return list(self._pieces.irange(start, end, inclusive=(True, False)))
        keys = self._keys
        first = bisect_left(keys, start)
        return keys[first : bisect_left(keys, end, first)]

    def _place_added(self) -> None:
        added, self._added = self._added, []
        keys = self._keys
        if self._pieces is not None:
            self._pieces.update(added)
        elif len(keys) + len(added) > LIST_KEYS_MAX:
            self._pieces, self._keys = SortedList([*keys, *added]), []
        elif len(added) * 8 > len(keys):
            keys += added
            keys.sort()
        else:
            for key in added:
                insort(keys, key)
