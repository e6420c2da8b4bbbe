"""Splitting of a key range into parts with similar row counts, without reading all of it.

A small range is read and split exactly. A large one is sampled: keys between the first and the last
are guessed by interpolation, the store returns the next existing keys, and these give the local
density. The gap between two probes with the most estimated rows is probed again, until the gaps are
small compared to the parts.

Interpolation uses only the byte values between the smallest and the largest that the sampled keys
have at each byte position (`KeyScale`): digits and letters use a small share of a byte's values.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from belvedere.txn.contracts import Reader

EXACT_ROWS_MAX = 20_000
PROBE_ROWS = 32
PROBES_TO_LEARN = 48
PROBES_MAX = 600
GAPS_PER_PART = 24
_WIDTH = 24
"""Bytes after the common prefix that interpolation uses."""


class KeyProbe(NamedTuple):
    """Some consecutive keys."""

    keys: list[bytes]

    @property
    def first_key(self) -> bytes:
        return self.keys[0]


def split_range(reader: Reader, start: bytes, end: bytes, count: int) -> list[list[bytes]]:
    """At most `count` ranges that cover start .. end, in order. Empty ranges are left out."""
    bounds: list[bytes] | None = []
    if count > 1:
        bounds = _exact_bounds(reader, start, end, count)
        if bounds is None:
            bounds = _sampled_bounds(reader, start, end, count)
    edges = [start, *(bounds or ()), end]
    return [[low, high] for low, high in pairwise(edges) if low < high]


def _exact_bounds(reader: Reader, start: bytes, end: bytes, count: int) -> list[bytes] | None:
    keys: list[bytes] = []
    for pairs in reader.scan(start, end, limit=EXACT_ROWS_MAX + 1):
        keys += [key for key, _ in pairs]
    if len(keys) > EXACT_ROWS_MAX:
        return None
    cuts = [len(keys) * part // count for part in range(1, count)]
    return sorted({keys[cut] for cut in cuts if 0 < cut < len(keys)})


def _sampled_bounds(reader: Reader, start: bytes, end: bytes, count: int) -> list[bytes]:
    first, last = _read_probe(reader, start, end), _last_key(reader, start, end)
    if first is None or last is None or first.first_key == last:
        return []
    sample = KeySample(reader, first, last)
    wanted = min(PROBES_MAX, count * GAPS_PER_PART + 96)
    for goal in (PROBES_TO_LEARN, 2 * PROBES_TO_LEARN, wanted):
        sample.add_probes(goal)
        sample.learn_scale()
    return sample.choose_bounds(count)


class KeySample:
    """Probes of a range, and the exact row counts of gaps that were read completely, by the first
    key of the gap."""

    def __init__(self, reader: Reader, first: KeyProbe, last: bytes) -> None:
        self._reader = reader
        self._probes = {first.first_key: first, last: KeyProbe([last])}
        self._scale = KeyScale.of_all_bytes(first.first_key, last)
        self._exact_counts: dict[bytes, int] = {}

    def learn_scale(self) -> None:
        self._scale = KeyScale(key for probe in self._probes.values() for key in probe.keys)

    def add_probes(self, wanted: int) -> None:
        """Probe the gap with the most estimated rows, until there are `wanted` probes."""
        heap = [
            (-self._estimate_rows(low, high), low, high)
            for low, high in pairwise(sorted(self._probes))
        ]
        heapq.heapify(heap)
        while heap and len(self._probes) < wanted:
            _, low, high = heapq.heappop(heap)
            found = None if low in self._exact_counts else self._probe_between(low, high)
            if found is None:
                continue
            self._probes[found.first_key] = found
            for one, other in ((low, found.first_key), (found.first_key, high)):
                heapq.heappush(heap, (-self._estimate_rows(one, other), one, other))

    def _probe_between(self, low: bytes, high: bytes) -> KeyProbe | None:
        """Probe the middle between two probes; None when all rows there have been read."""
        begun = self._probes[low].keys
        near = _read_probe(self._reader, begun[-1] + b"\0", high)
        if near is None or len(near.keys) < PROBE_ROWS:
            self._exact_counts[low] = len(begun) + (0 if near is None else len(near.keys))
            return None
        lower, upper = self._scale.key_to_number(near.first_key), self._scale.key_to_number(high)
        while upper - lower > 1:
            middle = (lower + upper) // 2
            found = _read_probe(
                self._reader, max(self._scale.number_to_key(middle), near.first_key), high
            )
            if found is not None:
                return found
            upper = middle
        return near

    def _estimate_rows(self, low: bytes, high: bytes) -> float:
        """Estimate the rows between two probes, the first included."""
        if low in self._exact_counts:
            return float(self._exact_counts[low])
        width = self._scale.key_to_number(high) - self._scale.key_to_number(low)
        seen = [self._row_density(self._probes[one]) for one in (low, high)]
        known = [density for density in seen if density is not None]
        guess = width * sum(known) / len(known) if known else 0.0
        return max(guess, float(len(self._probes[low].keys)))

    def _row_density(self, probe: KeyProbe) -> float | None:
        width = self._scale.key_to_number(probe.keys[-1]) - self._scale.key_to_number(
            probe.first_key
        )
        return (len(probe.keys) - 1) / width if width > 0 else None

    def choose_bounds(self, count: int) -> list[bytes]:
        """The probed keys nearest to the bounds of `count` equal parts of the estimated rows."""
        stretches = list(pairwise(sorted(self._probes)))
        sizes = [self._estimate_rows(low, high) for low, high in stretches]
        part = sum(sizes) / count
        bounds: list[bytes] = []
        filled = 0.0
        for (_, high), size in zip(stretches, sizes):
            filled += size
            if filled >= part * (len(bounds) + 1) and len(bounds) < count - 1:
                bounds.append(high)
        return bounds


def _read_probe(reader: Reader, start: bytes, end: bytes) -> KeyProbe | None:
    for pairs in reader.scan(start, end, limit=PROBE_ROWS, batch_rows=PROBE_ROWS):
        return KeyProbe([key for key, _ in pairs])
    return None


def _last_key(reader: Reader, start: bytes, end: bytes) -> bytes | None:
    for pairs in reader.scan(start, end, reverse=True, limit=1):
        return pairs[0][0]
    return None


class KeyScale:
    """An order-preserving map between keys and numbers. Each byte position has as many digits as
    there are values from the smallest to the largest byte sampled there."""

    def __init__(self, keys: Iterable[bytes]) -> None:
        known = sorted(keys)
        self._prefix_length = _common_prefix_length(known[0], known[-1])
        self._prefix = known[0][: self._prefix_length]
        columns = zip(*[self._pad_key(key) for key in known])
        self._byte_ranges = [range(min(column), max(column) + 1) for column in columns]

    @classmethod
    def of_all_bytes(cls, first: bytes, last: bytes) -> KeyScale:
        made = cls([first, last])
        made._byte_ranges = [range(256)] * _WIDTH
        return made

    def key_to_number(self, key: bytes) -> int:
        if not key.startswith(self._prefix):
            return 0 if key < self._prefix else self._number_limit()
        number = 0
        for byte, seen in zip(self._pad_key(key), self._byte_ranges):
            number = number * len(seen) + min(max(byte - seen.start, 0), len(seen) - 1)
        return number

    def number_to_key(self, number: int) -> bytes:
        found = bytearray()
        for seen in reversed(self._byte_ranges):
            number, rank = divmod(number, len(seen))
            found.append(seen[rank])
        return self._prefix + bytes(reversed(found))

    def _pad_key(self, key: bytes) -> bytes:
        return key[self._prefix_length : self._prefix_length + _WIDTH].ljust(_WIDTH, b"\0")

    def _number_limit(self) -> int:
        size = 1
        for seen in self._byte_ranges:
            size *= len(seen)
        return size


def _common_prefix_length(low: bytes, high: bytes) -> int:
    for at, (one, other) in enumerate(zip(low, high)):
        if one != other:
            return at
    return min(len(low), len(high))
