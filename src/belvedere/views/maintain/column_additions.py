"""What a batch adds to the state of a view, by columns: encoded, summed by key, and applied to the
stored entries, without an object for each row.

The result is what additions one by one give (`views.state.additions.build_state_row_writes`). A
value without a form by columns, or a total beyond eight bytes, is no addition here: the caller then
computes the batch row by row.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from belvedere.catalog.relation_codecs import CompiledView
from belvedere.codec.arrow import arrow_to_state as form
from belvedere.codec.arrow.arrow_to_rows import arrow_to_row_array, split_binary
from belvedere.codec.arrow.rows_to_arrow import JoinedValues
from belvedere.codec.arrow.state_to_arrow import copy_payloads, decode_amounts
from belvedere.kv.batch import KEY_BYTES_MAX, Write
from belvedere.txn.contracts import Reader
from belvedere.views.maintain.state_entries import (
    can_encode_by_columns,
    combine_chunks,
    find_key_order,
    try_build_amount_matrix,
)

if TYPE_CHECKING:
    from belvedere.codec.arrow.arrow_to_state import Integers

SCANNED_SHARE = 3
"""State is scanned as long as that reads at most so many entries for each one that is added to: a
scanned entry costs a third of one that is looked up."""

SCAN_ROWS = 5_000
_TOTAL_MAX = 2**62


class ColumnAdditions(NamedTuple):
    """Keys in order and each once, the payloads of their rows, and a line of amounts for each."""

    keys: pa.Array
    payloads: pa.Array
    amounts: Integers


def try_encode_column_additions(
    stored: CompiledView, table: pa.Table, scales: Sequence[int | None] | None
) -> ColumnAdditions | None:
    """The additions of a table with the group's columns, the weight, then the amounts; None where a
    value has no form by columns. `scales` is as for `try_encode_columns_as_entries`."""
    width = len(stored.view.stored)
    columns = [combine_chunks(table.column(at)) for at in range(width)]
    if not can_encode_by_columns(stored, columns):
        return None
    weights = combine_chunks(table.column(width)).to_numpy(zero_copy_only=False)
    amounts = try_build_amount_matrix(table, width + 1, scales)
    keys = None if amounts is None else form.arrow_to_keys(stored.key, columns)
    if amounts is None or keys is None:
        return None
    if len(keys) and pc.max(pc.binary_length(keys)).as_py() > KEY_BYTES_MAX:
        return None
    keys, order, amounts = _sum_by_key(keys, amounts, weights)
    if amounts is None:
        return None
    names = [str(at) for at in range(width)]
    rows = arrow_to_row_array(stored.payload, pa.record_batch(columns, names).take(order))
    return ColumnAdditions(keys, rows, amounts)


def select_amounts_of_view(
    added: ColumnAdditions, stored: CompiledView, places: Sequence[int]
) -> ColumnAdditions:
    """The additions to one view of those to a family of views, whose keys differ in the prefix."""
    amounts = added.amounts[:, list(places)]
    kept = amounts.any(axis=1)
    keys, payloads = added.keys, added.payloads
    if not kept.all():
        mask = pa.array(kept)
        keys, payloads, amounts = keys.filter(mask), payloads.filter(mask), amounts[kept]
    return ColumnAdditions(_replace_prefix(keys, stored.key.prefix), payloads, amounts)


def _replace_prefix(keys: pa.Array, prefix: bytes) -> pa.Array:
    """Keys of one relation as those of another."""
    if not len(keys):
        return keys
    _, offsets, data = keys.buffers()
    starts = np.frombuffer(offsets, np.int64)[keys.offset :][: len(keys)]
    copied = np.frombuffer(data, np.uint8).copy()
    for at, byte in enumerate(prefix):
        copied[starts + at] = byte
    buffers = [None, offsets, pa.py_buffer(copied)]
    return pa.Array.from_buffers(keys.type, len(keys), buffers, offset=keys.offset)


def _has_amount_beyond(amounts: Integers, limit: int) -> bool:
    return bool(amounts.size) and max(int(amounts.max()), -int(amounts.min())) >= limit


def _sum_by_key(
    keys: pa.Array, amounts: Integers, weights: Integers
) -> tuple[pa.Array, pa.Array, Integers | None]:
    """The keys in order and each once, the place of a row of each, and the weighted sums of the
    amounts, without those that are zero; no sums where one might not fit."""
    order = find_key_order(keys)
    if not len(keys):
        return keys, order, amounts
    keys = keys.take(order)
    others = pc.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1))
    starts = np.flatnonzero(np.concatenate([[True], others.to_numpy(zero_copy_only=False)]))
    most = int(np.diff(starts, append=len(keys)).max())
    if _has_amount_beyond(amounts, _TOTAL_MAX // most):
        return keys, order, None
    weighted = amounts * weights.astype(np.int64)[:, None]
    sums = np.add.reduceat(weighted[order.to_numpy()], starts, axis=0)
    kept = sums.any(axis=1)
    places = pa.array(starts[kept])
    return keys.take(places), order.take(places), sums[kept]


def try_build_distinct_row_writes(added: ColumnAdditions) -> list[Write] | None:
    """The state rows that result from the additions to a view no two of whose rows are equal: one
    that comes was not there, one that goes was there once. None where they are not that."""
    amounts = added.amounts[:, 0]
    if (np.abs(amounts) != 1).any():
        return None
    return _build_put_and_delete_writes(added.keys, added.payloads, added.amounts)


def _build_put_and_delete_writes(
    keys: pa.Array, payloads: pa.Array, amounts: Integers
) -> list[Write]:
    """The state rows with these amounts; those that stand for no row any more are deleted."""
    here = amounts[:, 0] > 0
    mask = pa.array(here)
    values = form.encode_state_values(payloads.filter(mask), amounts[here])
    writes: list[Write] = [(key, None) for key in split_binary(keys.filter(pc.invert(mask)))]
    writes += zip(split_binary(keys.filter(mask)), split_binary(values), strict=True)
    return writes


def try_build_summed_writes(
    reader: Reader, stored: CompiledView, added: ColumnAdditions
) -> list[Write] | None:
    """The state rows that result from the additions; None where a stored entry has another form."""
    if not len(added.keys):
        return []
    keys = split_binary(added.keys)
    known = _read_stored_values(reader, stored, keys)
    there = np.fromiter((value is not None for value in known), np.bool_, len(known))
    values = JoinedValues([value for value in known if value is not None])
    width = added.amounts.shape[1]
    before = decode_amounts(values, width)
    if (
        before is None
        or _has_amount_beyond(added.amounts, _TOTAL_MAX)
        or _has_amount_beyond(before, _TOTAL_MAX)
    ):
        return None
    amounts = added.amounts.copy()
    amounts[there] += before
    if (amounts[:, 0] < 0).any() or amounts[amounts[:, 0] == 0].any():
        return None
    payloads = _prefer_stored_payloads(values, there, width, added.payloads)
    return _build_put_and_delete_writes(added.keys, payloads, amounts)


def _read_stored_values(
    reader: Reader, stored: CompiledView, keys: list[bytes]
) -> list[bytes | None]:
    """The stored values of these sorted keys: by a scan where many of the entries are wanted, by
    look-ups where few are."""
    found: dict[bytes, bytes] = {}
    left = len(keys) * SCANNED_SHARE
    rest = 0
    for batch in reader.scan(keys[0], stored.end, batch_rows=SCAN_ROWS):
        found.update(batch)
        left -= len(batch)
        if batch[-1][0] >= keys[-1]:
            rest = len(keys)
            break
        if left < 0:
            rest = bisect_right(keys, batch[-1][0])
            break
    else:
        rest = len(keys)
    return [*map(found.get, keys[:rest]), *(reader.multi_get(keys[rest:]) if keys[rest:] else ())]


def _prefer_stored_payloads(
    values: JoinedValues, there: npt.NDArray[np.bool_], width: int, added: pa.Array
) -> pa.Array:
    """The payload of an existing state stays."""
    count = len(values.lengths)
    if not count:
        return added
    known = copy_payloads(values, width)
    if count == len(there):
        return known
    places = np.where(there, np.cumsum(there) - 1, count + np.arange(len(there)))
    return pa.concat_arrays([known, added]).take(pa.array(places))
