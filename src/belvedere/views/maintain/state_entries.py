"""The whole state of a view as sorted entries, made of what DuckDB answers: for fills and refills.

Keys and values are encoded by columns where all types allow it
(`codec.arrow.arrow_to_state`), else row by row; both give the same bytes. An entry is there once:
equal rows of a view without groups are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from belvedere.catalog.relation_codecs import CompiledView
from belvedere.codec import accumulator
from belvedere.codec.arrow.exact_kinds import EXACT_KINDS
from belvedere.execution.bulk_insert import can_cast_exactly
from belvedere.kv.batch import KEY_BYTES_MAX, Pair, Write
from belvedere.txn.contracts import Reader
from belvedere.views.changefeed.entries import Addition

if TYPE_CHECKING:
    import pyarrow as pa

    from belvedere.codec.arrow.arrow_to_state import Integers

SCAN_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class StateEntries:
    """Keys and values as binary arrays, or as pairs; sorted by key."""

    pairs: Sequence[Pair] = ()
    columns: tuple[pa.Array, pa.Array] | None = None

    def __len__(self) -> int:
        return len(self.pairs) if self.columns is None else len(self.columns[0])

    @property
    def has_storable_keys(self) -> bool:
        """Whether no key is too long for a store."""
        if self.columns is None:
            return all(len(key) <= KEY_BYTES_MAX for key, _ in self.pairs)
        import pyarrow.compute as pc  # heavy

        return (pc.max(pc.binary_length(self.columns[0])).as_py() or 0) <= KEY_BYTES_MAX

    def list_writes(self) -> list[Write]:
        """The entries, to be written where none is."""
        if self.columns is None:
            return list(self.pairs)
        from belvedere.codec.arrow.arrow_to_rows import split_binary  # heavy

        return list(zip(*map(split_binary, self.columns), strict=True))

    def list_batches_from(self, first: bytes, rows: int) -> Iterator[list[Pair]]:
        """The entries from this key on, in lists of at most so many."""
        for some in self._split_into_batches(rows):
            if some[-1][0] >= first:
                yield some if some[0][0] >= first else [one for one in some if one[0] >= first]

    def _split_into_batches(self, rows: int) -> Iterator[list[Pair]]:
        if self.columns is None:
            for start in range(0, len(self.pairs), rows):
                yield list(self.pairs[start : start + rows])
            return
        from belvedere.codec.arrow.arrow_to_state import split_into_pairs  # heavy

        yield from split_into_pairs(*self.columns, rows)


def try_compute_replacing_writes(
    reader: Reader, stored: CompiledView, wanted: StateEntries
) -> list[Write] | None:
    """The writes that turn the stored state of a view into the wanted one, without an object for
    each entry that stays; None where these are not columns."""
    import numpy as np  # heavy
    import pyarrow as pa  # heavy
    import pyarrow.compute as pc  # heavy

    from belvedere.codec.arrow.arrow_to_rows import split_binary  # heavy

    if wanted.columns is None:
        return None
    keys, values = wanted.columns
    if pc.max(pc.binary_length(keys)).as_py() > KEY_BYTES_MAX:
        return None
    known_keys, known_values = _read_stored_entries(reader, stored)
    places = pc.index_in(keys, value_set=known_keys)
    same = pc.equal(values, known_values.take(places)).fill_null(False)
    new = pc.invert(same)
    left = np.ones(len(known_keys), np.bool_)
    left[places.drop_null().to_numpy()] = False
    gone = known_keys.filter(pa.array(left))
    writes: list[Write] = [(key, None) for key in split_binary(gone)]
    writes += zip(split_binary(keys.filter(new)), split_binary(values.filter(new)), strict=True)
    return writes


def _read_stored_entries(reader: Reader, stored: CompiledView) -> tuple[pa.Array, pa.Array]:
    import pyarrow as pa  # heavy

    found: list[list[pa.Array]] = [[pa.array([], pa.large_binary())] for _ in range(2)]
    for batch in reader.scan(stored.start, stored.end, batch_rows=SCAN_ROWS):
        for arrays, column in zip(found, zip(*batch, strict=True), strict=True):
            arrays.append(pa.array(column, pa.large_binary()))
    keys, values = (pa.concat_arrays(arrays) for arrays in found)
    return keys, values


def encode_additions_as_entries(additions: Sequence[Addition]) -> StateEntries:
    """The entries that these additions, one of a key, make in an empty state."""
    encode = accumulator.encode
    found = [(key, encode(payload, amounts)) for key, payload, amounts in additions]
    found.sort()
    return StateEntries(found)


def try_encode_columns_as_entries(
    stored: CompiledView, table: pa.Table, scales: Sequence[int | None] | None
) -> StateEntries | None:
    """The entries of a table with the group's columns, then the amounts; None where a value has no
    form by columns. `scales`: of each amount, None for one that is always 0 and has no column.
    Without scales the columns are the view's rows, which are counted."""
    import pyarrow as pa  # heavy

    from belvedere.codec.arrow import arrow_to_state as form  # heavy
    from belvedere.codec.arrow.arrow_to_rows import arrow_to_row_array  # heavy

    width = len(stored.view.stored)
    columns = [combine_chunks(table.column(at)) for at in range(width)]
    if not table.num_rows:
        return StateEntries()
    if not can_encode_by_columns(stored, columns):
        return None
    amounts = try_build_amount_matrix(table, width, scales)
    keys = None if amounts is None else form.arrow_to_keys(stored.key, columns)
    if amounts is None or keys is None:
        return None
    keys, order, amounts = _merge_equal_keys(keys, amounts, may_merge=scales is None)
    if amounts is None:
        return None
    names = [str(at) for at in range(width)]
    rows = arrow_to_row_array(stored.payload, pa.record_batch(columns, names).take(order))
    return StateEntries(columns=(keys, form.encode_state_values(rows, amounts)))


def can_encode_by_columns(stored: CompiledView, columns: Sequence[pa.Array]) -> bool:
    """Whether the columns of a view's state have exact keys and payloads by columns."""
    return all(
        slot.type.kind in EXACT_KINDS and can_cast_exactly(slot.type, array.type)
        for slot, array in zip(stored.view.stored, columns, strict=True)
    )


def combine_chunks(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found.chunk(0) if hasattr(found, "chunk") else found


def find_key_order(keys: pa.Array) -> pa.Array:
    """The places of the keys in order."""
    import numpy as np  # heavy
    import pyarrow as pa  # heavy
    import pyarrow.compute as pc  # heavy

    last = max(len(keys) - 1, 0)
    if pc.all(pc.less_equal(keys.slice(0, last), keys.slice(1))).as_py():
        return pa.array(np.arange(len(keys)))  # the statement gave them in order
    return pc.sort_indices(keys)


def _merge_equal_keys(
    keys: pa.Array, amounts: Integers, *, may_merge: bool
) -> tuple[pa.Array, pa.Array, Integers | None]:
    """The keys in order and each once, where their rows are, and the sums of their amounts."""
    import numpy as np  # heavy
    import pyarrow as pa  # heavy
    import pyarrow.compute as pc  # heavy

    order = find_key_order(keys)
    keys = keys.take(order)
    amounts = amounts[order.to_numpy()]
    others = pc.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1))
    if pc.all(others).as_py():
        return keys, order, amounts
    if not may_merge:
        return keys, order, None
    starts = np.flatnonzero(np.concatenate([[True], others.to_numpy(zero_copy_only=False)]))
    places = pa.array(starts)
    return keys.take(places), order.take(places), np.add.reduceat(amounts, starts, axis=0)


def try_build_amount_matrix(
    table: pa.Table, width: int, scales: Sequence[int | None] | None
) -> Integers | None:
    """The amounts as a matrix; None when one does not fit into eight bytes."""
    import numpy as np  # heavy

    if scales is None:
        return np.ones((table.num_rows, 1), np.int64)
    given = iter(range(width, table.num_columns))
    found = []
    for scale in scales:
        if scale is None:
            found.append(np.zeros(table.num_rows, np.int64))
            continue
        units = _try_convert_to_units(combine_chunks(table.column(next(given))), scale)
        if units is None:
            return None
        found.append(units)
    return np.stack(found, axis=1)


def _try_convert_to_units(array: pa.Array, scale: int) -> Any:
    """A column in units of the last of so many digits; None where a value does not fit."""
    import numpy as np  # heavy
    import pyarrow.types as at  # heavy

    if at.is_integer(array.type) and scale == 0:
        return array.cast("int64").fill_null(0).to_numpy(zero_copy_only=False)
    if not at.is_decimal128(array.type) or array.type.scale != scale:
        return None
    words = np.frombuffer(array.buffers()[1], "<i8")[2 * array.offset :][: 2 * len(array)]
    low, high = words[0::2].copy(), words[1::2]
    known = array.is_valid().to_numpy(zero_copy_only=False)
    low[~known] = 0
    fits = (high == low >> 63) | ~known
    return low if fits.all() else None
