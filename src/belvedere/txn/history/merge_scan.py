"""Merge of a scan with an overlay of replaced keys, as snapshots and transactions need it.

`overlay` says what a key is instead (None: absent). It wins over the store, wherever the key falls.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from itertools import islice

from belvedere.kv.batch import Pair
from belvedere.txn.contracts import RowChange

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
            batch = overlay_pairs(batch, mine, overlay, reverse)
        if batch:
            yield batch
    rest = keys[low:high]
    tail = overlay_pairs([], rest, overlay, reverse)
    if tail:
        yield tail


def overlay_pairs(
    batch: list[Pair], keys: list[bytes], overlay: Overlay, reverse: bool
) -> list[Pair]:
    """The pairs of a batch with these keys of the overlay put in."""
    rows: dict[bytes, bytes] = dict(batch)
    added = False
    for key in keys:
        value = overlay[key]
        if value is None:
            rows.pop(key, None)
        else:
            added = added or key not in rows
            rows[key] = value
    pairs = list(rows.items())  # in the order of the batch, which replaced rows keep
    if added:
        pairs.sort(reverse=reverse)
    return pairs


def take_changed_rows(
    changes: Mapping[bytes, RowChange], keys: Iterator[bytes], limit: int | None
) -> dict[bytes, bytes | None]:
    """The overlay of these changed rows, in the order of a scan: all, or those that can be among
    its first `limit`."""
    rows: dict[bytes, bytes | None] = {}
    missing = limit
    while taken := {key: changes[key].new for key in islice(keys, missing)}:
        rows |= taken
        missing = list(taken.values()).count(None)  # absent rows are none of the first
        if limit is None or missing == 0:
            break
    return rows


def _limit_pairs(batches: Iterator[list[Pair]], limit: int) -> Iterator[list[Pair]]:
    if limit <= 0:
        return
    for batch in batches:
        if len(batch) >= limit:
            yield list(islice(batch, limit))
            return
        limit -= len(batch)
        yield batch
