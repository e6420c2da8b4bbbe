"""Merge of a scan with an overlay of replaced keys, as snapshots and transactions need it.

`overlay` says what a key is instead (None: absent). It wins over the store, wherever the key falls.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from itertools import islice

from belvedere.kv.batch import Pair

Overlay = Mapping[bytes, bytes | None]


def merge_scan(
    batches: Iterator[list[Pair]], overlay: Overlay, *, reverse: bool, limit: int | None
) -> Iterator[list[Pair]]:
    """The pairs of `batches` (in key order, or its reverse) with the overlay put in."""
    merged = _merge_overlay(batches, overlay, reverse) if overlay else batches
    return merged if limit is None else _limit_pairs(merged, limit)


def _merge_overlay(
    batches: Iterator[list[Pair]], overlay: Overlay, reverse: bool
) -> Iterator[list[Pair]]:
    keys = sorted(overlay)  # ascending; consumed from the side the scan starts at
    low, high = 0, len(keys)
    for batch in batches:
        last = batch[-1][0]
        if reverse:
            cut = bisect_left(keys, last, low, high)
            mine, high = keys[cut:high], cut
        else:
            cut = bisect_right(keys, last, low, high)
            mine, low = keys[low:cut], cut
        if mine:
            batch = _overlay_batch(batch, mine, overlay, reverse)
        if batch:
            yield batch
    rest = keys[low:high]
    tail = _overlay_batch([], rest, overlay, reverse)
    if tail:
        yield tail


def _overlay_batch(
    batch: list[Pair], keys: list[bytes], overlay: Overlay, reverse: bool
) -> list[Pair]:
    rows: dict[bytes, bytes | None] = dict(batch)
    for key in keys:
        rows[key] = overlay[key]
    return [
        (key, value) for key in sorted(rows, reverse=reverse) if (value := rows[key]) is not None
    ]


def _limit_pairs(batches: Iterator[list[Pair]], limit: int) -> Iterator[list[Pair]]:
    if limit <= 0:
        return
    for batch in batches:
        if len(batch) >= limit:
            yield list(islice(batch, limit))
            return
        limit -= len(batch)
        yield batch
