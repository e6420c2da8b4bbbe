"""The exact order of entries whose keys keep long values by a digest (`codec.scalars`).

Entries that share the beginning of a long value are a run: they lie together, in no order. An entry
has the whole value, so that a run can be sorted, and compared with a bound, by its exact keys. All
of this costs nothing where entries are short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from belvedere.codec.keys import KeyCodec, KeyRange
from belvedere.codec.keyspace import next_prefix
from belvedere.codec.scalars import DIGEST_BYTES, DIGEST_MARK, is_shortened
from belvedere.types import Row

Pairs = Iterable[Sequence[tuple[bytes, bytes]]]
Scan = Callable[..., Pairs]
"""`Reader.scan`: batches of keys and entries."""

_AFTER_MARK = DIGEST_BYTES - len(DIGEST_MARK) + 2
"""What a run does not share: the digits of the digest, and the end of the value."""

Bounds = tuple[Any, bool, Any, bool]
"""Low, inclusive, high, inclusive; None stands for no bound."""


def sort_runs(
    codec: KeyCodec, batches: Iterable[Sequence[bytes]], *, reverse: bool
) -> Iterator[Sequence[bytes]]:
    """The entries of a scan in the exact order of their keys."""
    if codec.long is None:
        yield from batches
        return
    may_be_long, run = codec.long.may_be_long, _Run(codec, reverse)
    for batch in batches:
        if not run.entries and not any(map(may_be_long, batch)):
            yield batch
            continue
        found: list[bytes] = []
        for entry in batch:
            if not run.take(entry):
                found += run.give()
                if not run.begin(entry):
                    found.append(entry)
        if found:
            yield found
    if run.entries:
        yield run.give()


class _Run:
    """Entries that share the beginning of a long value."""

    def __init__(self, codec: KeyCodec, reverse: bool) -> None:
        assert codec.long is not None
        self._codec, self._reverse, self._long = codec, reverse, codec.long
        self._shared = b""
        self.entries: list[bytes] = []

    def begin(self, entry: bytes) -> bool:
        """Begin a run with this entry; False when it has no long value."""
        if not self._long.may_be_long(entry):
            return False
        shared = find_run(self._codec, self._long.read_columns(entry))
        if shared is None:
            return False
        self._shared, self.entries = shared, [entry]
        return True

    def take(self, entry: bytes) -> bool:
        """Add the entry where it belongs to this run."""
        if not self.entries or not self._long.may_be_long(entry):
            return False
        if not self._codec.encode(self._long.read_columns(entry)).startswith(self._shared):
            return False
        self.entries.append(entry)
        return True

    def give(self) -> list[bytes]:
        """The entries in order; the run is over."""
        encode, read = self._codec.exact.encode, self._long.read_columns
        found, self.entries = self.entries, []
        return sorted(found, key=lambda entry: encode(read(entry)), reverse=self._reverse)


def find_run(codec: KeyCodec, values: Row, exact: int = 0) -> bytes | None:
    """What the keys of a run share, for keys with these first values, `exact` of which all have;
    None for a key in exact order."""
    if codec.long is None:
        return None
    for index in range(exact, len(values)):
        if _has_digest(codec, index, values[index]):
            part = codec.encode_column(index, values[index])
            return codec.encode_prefix(values[:index]) + part[:-_AFTER_MARK]
    return None


def read_first_entry(
    codec: KeyCodec, scan: Scan, start: bytes, end: bytes, *, reverse: bool = False
) -> bytes | None:
    """The first entry of a range, or the last."""
    first = next((pairs[0][1] for pairs in scan(start, end, reverse=reverse, limit=1)), None)
    if first is None or codec.long is None or not codec.long.may_be_long(first):
        return first
    entries = ([entry for _, entry in pairs] for pairs in scan(start, end, reverse=reverse))
    return next(batch[0] for batch in sort_runs(codec, entries, reverse=reverse))


def has_long_bound(codec: KeyCodec, index: int, bounds: Bounds) -> bool:
    """Whether a bound of a range lies in a run, which has to be read to know what is in range."""
    if codec.long is None:
        return False
    return any(_has_digest(codec, index, bound) for bound in (bounds[0], bounds[2]))


def _has_digest(codec: KeyCodec, index: int, value: Any) -> bool:
    """Whether keys keep this value of a column by a digest. Those that are too long for it are
    compared as they would be kept: CHAR loses its blanks."""
    if codec.long is None or not is_shortened(value, codec.long.cut):
        return False
    return codec.encode_column(index, value) != codec.exact.encode_column(index, value)


def find_exact_ranges(
    codec: KeyCodec, scan: Scan, prefix: Row, bounds: Bounds
) -> dict[bytes, bytes]:
    """The ranges, from start to end, of keys with these first values whose next column lies between
    bounds, of which one or both are long: each key of the runs of the bounds that is in range, and
    the keys between these runs."""
    index = len(prefix)
    low, low_inclusive, high, high_inclusive = bounds
    first, last = (high, low) if codec.columns[index].descending else (low, high)
    start, end = codec.bounded_range(prefix, low, low_inclusive, high, high_inclusive)
    runs = []
    if _has_digest(codec, index, first):
        runs.append(_find_column_run(codec, prefix, first))
        start = runs[0][1]
    if _has_digest(codec, index, last):
        runs.append(_find_column_run(codec, prefix, last))
        end = runs[-1][0]
    wanted = KeyCodec((codec.columns[index],)).bounded_range((), *bounds)
    found = {
        key: key + b"\0"
        for run in dict.fromkeys(runs)
        for pairs in scan(*run)
        for key, entry in pairs
        if _is_in_range(codec, index, entry, wanted)
    }
    if end is not None and start < end:
        found[start] = end
    return found


def _find_column_run(codec: KeyCodec, prefix: Row, value: Any) -> tuple[bytes, bytes]:
    """The keys with these first values whose next one shares its beginning with a long value."""
    part = codec.encode_column(len(prefix), value)
    start = codec.encode_prefix(prefix) + part[:-_AFTER_MARK]
    end = next_prefix(start)
    assert end is not None
    return start, end


def _is_in_range(codec: KeyCodec, index: int, entry: bytes, wanted: KeyRange) -> bool:
    assert codec.long is not None
    value = codec.long.read_columns(entry)[index]
    start, end = wanted
    part = codec.exact.encode_column(index, value)
    return start <= part and (end is None or part < end)
