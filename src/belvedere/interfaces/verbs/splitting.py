"""A key range cut into parts of about the same number of rows, without reading it all.

A small range is read and cut exactly. Of a large one, keys are sampled: positions between the first
and the last key are guessed by interpolation, the store says which key really comes next, and the
rows found there say how dense it is. The stretch with the most rows by this estimate is looked into
again, until the stretches are small against the parts wanted.
"""

from __future__ import annotations

import heapq
from itertools import pairwise
from typing import NamedTuple

from belvedere.txn.border import Reader

EXACT_ROWS_MAX = 20_000
PROBE_ROWS = 32
PROBES_MAX = 400
STRETCHES_PER_PART = 16
_WIDTH = 24
"""Bytes after the common prefix that count for a guess."""


class Probe(NamedTuple):
    """A key that exists, and the one `rows` rows after it."""

    key: bytes
    last: bytes
    rows: int


def split_range(reader: Reader, start: bytes, end: bytes, count: int) -> list[list[bytes]]:
    """At most `count` ranges that cover start .. end, in order. Empty ranges are left out."""
    if count > 1:
        bounds = _exact_bounds(reader, start, end, count)
        if bounds is None:
            bounds = _sampled_bounds(reader, start, end, count)
    else:
        bounds = []
    edges = [start, *bounds, end]
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
    first, last = _probe(reader, start, end), _last_key(reader, start, end)
    if first is None or last is None or first.key == last:
        return []
    probes = {first.key: first, last: Probe(last, last, 1)}
    heap = [(-float("inf"), first.key, last)]
    while heap and len(probes) < min(PROBES_MAX, count * STRETCHES_PER_PART + 64):
        _, low, high = heapq.heappop(heap)
        found = _between(reader, low, high)
        if found is None or found.key in probes:
            continue
        probes[found.key] = found
        for one, other in ((low, found.key), (found.key, high)):
            heapq.heappush(heap, (-_rows(probes[one], probes[other]), one, other))
    return _cut([probes[key] for key in sorted(probes)], count)


def _between(reader: Reader, low: bytes, high: bytes) -> Probe | None:
    """The row in the middle of the key space between two keys, as far as there is one."""
    common = _common(low, high)
    lower, upper = _number(low, common), _number(high, common)
    for share in (2, 4, 16):
        guess = lower + (upper - lower) // share
        key = low[:common] + guess.to_bytes(_WIDTH, "big")
        found = _probe(reader, max(key, low + b"\0"), high)
        if found is not None:
            return found
    return _probe(reader, low + b"\0", high)


def _rows(low: Probe, high: Probe) -> float:
    """About how many rows lie between two probes: by the denser of the two."""
    common = _common(low.key, high.key)
    width = _number(high.key, common) - _number(low.key, common)
    return max(_density(low, common), _density(high, common)) * width


def _density(probe: Probe, common: int) -> float:
    width = _number(probe.last, common) - _number(probe.key, common)
    return probe.rows / width if width > 0 else 0.0


def _cut(probes: list[Probe], count: int) -> list[bytes]:
    """The probes that come nearest to every count-th part of the rows."""
    sizes = [_mean_rows(low, high) for low, high in pairwise(probes)]
    part = sum(sizes) / count
    bounds, filled = [], 0.0
    for probe, size in zip(probes[1:], sizes):
        filled += size
        if filled >= part * (len(bounds) + 1) and len(bounds) < count - 1:
            bounds.append(probe.key)
    return bounds


def _mean_rows(low: Probe, high: Probe) -> float:
    common = _common(low.key, high.key)
    width = _number(high.key, common) - _number(low.key, common)
    return max(width * _density(low, common), float(low.rows)) if width > 0 else float(low.rows)


def _probe(reader: Reader, start: bytes, end: bytes) -> Probe | None:
    for pairs in reader.scan(start, end, limit=PROBE_ROWS, batch_rows=PROBE_ROWS):
        return Probe(pairs[0][0], pairs[-1][0], len(pairs))
    return None


def _last_key(reader: Reader, start: bytes, end: bytes) -> bytes | None:
    for pairs in reader.scan(start, end, reverse=True, limit=1):
        return pairs[0][0]
    return None


def _common(low: bytes, high: bytes) -> int:
    for at, (one, other) in enumerate(zip(low, high)):
        if one != other:
            return at
    return min(len(low), len(high))


def _number(key: bytes, common: int) -> int:
    return int.from_bytes(key[common : common + _WIDTH].ljust(_WIDTH, b"\0"), "big")
