"""The changes of a log range as Arrow columns: for batches that are added up without an object for
each row.

Rows are not consolidated. What a linear view adds for a row that changed twice is the same sum,
since everything in between goes and comes:

    s0, s1, ..   the slots of the old rows, then of the new ones
    weight       -1 for an old row, 1 for a new one
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from belvedere.codec.arrow.records_to_arrow import records_to_arrow
from belvedere.codec.arrow.rows_to_arrow import EncodedRows, arrow_type
from belvedere.codec.rows import RowLayout


class LoggedColumns:
    """The changes at start < position <= through, for all views that take them in."""

    def __init__(self, batches: Iterable[list[bytes]], start: int, through: int) -> None:
        found = [records_to_arrow(records) for records in batches if records]
        self._changes = pa.Table.from_batches(found) if found else None
        if self._changes is not None:
            at = self._changes["position"]
            inside = pc.and_(pc.greater(at, start), pc.less_equal(at, through))
            if not pc.all(inside).as_py():
                self._changes = self._changes.filter(inside)
        self._counts: dict[int, int] = {}
        if self._changes is not None:
            for one in pc.value_counts(self._changes["relation"]).to_pylist():
                self._counts[one["values"]] = one["counts"]
        self.relations = frozenset(self._counts)
        self._sides: dict[int, tuple[pa.Array, pa.Array]] = {}
        self._tables: dict[tuple[int, tuple[int, ...]], tuple[RowLayout, pa.Table]] = {}

    @property
    def size_bytes(self) -> int:
        """The size of the changes, before any row of them is decoded."""
        return 0 if self._changes is None else self._changes.nbytes

    def count_changes(self, relations: Iterable[int]) -> int:
        """How many changes there are of these relations."""
        return sum(self._counts.get(relation, 0) for relation in relations)

    def decode_weighted_rows(
        self, relation: int, layout: RowLayout, slots: Sequence[int]
    ) -> pa.Table:
        """The rows of one relation that went and came, with their weights. Unsupported when Arrow
        cannot represent a value."""
        key = relation, tuple(slots)
        known = self._tables.get(key)
        if known is None or known[0].slots != layout.slots:
            known = self._tables[key] = layout, self._decode_with_weights(relation, layout, slots)
        return known[1]

    def decode_net_rows(
        self, relation: int, layout: RowLayout, slots: Sequence[int]
    ) -> tuple[pa.Table, pa.Table]:
        """The rows of one relation that were there before the log range and are not after it, and
        those that are there after it and were not before, however often they changed. Unsupported
        when Arrow cannot represent a value."""
        names = [f"c{i}" for i in range(len(slots))]
        types = [arrow_type(layout.types[slot]) for slot in slots]
        tables = []
        for rows in self._split_net_old_and_new(relation):
            arrays = [pa.array([], one) for one in types]
            if len(rows):
                arrays = EncodedRows(layout, rows).decode_columns(slots)
            tables.append(pa.Table.from_arrays(arrays, names=names))
        return tables[0], tables[1]

    def _split_net_old_and_new(self, relation: int) -> tuple[pa.Array, pa.Array]:
        assert self._changes is not None
        changes = self._changes
        if len(self.relations) > 1:
            changes = changes.filter(pc.equal(changes["relation"], relation))
        old, new = changes["old"], changes["new"]
        keys = _combine_chunks(changes["key"]).dictionary_encode()
        if len(keys.dictionary) < len(keys):
            places = keys.indices.to_numpy()
            _, first = np.unique(places, return_index=True)
            _, last = np.unique(places[::-1], return_index=True)
            old, new = old.take(pa.array(first)), new.take(pa.array(len(places) - 1 - last))
        differ = pc.invert(pc.fill_null(pc.equal(old, new), fill_value=False))
        old, new = (_combine_chunks(side.filter(differ).drop_null()) for side in (old, new))
        return old, new

    def _decode_with_weights(
        self, relation: int, layout: RowLayout, slots: Sequence[int]
    ) -> pa.Table:
        parts = []
        for weight, rows in zip((-1, 1), self._split_old_and_new(relation), strict=True):
            arrays = EncodedRows(layout, rows).decode_columns(slots) if len(rows) else None
            if arrays is not None:
                weights = pa.array(np.full(len(rows), weight, np.int32))
                names = [f"c{i}" for i in range(len(slots) + 1)]
                parts.append(pa.RecordBatch.from_arrays([*arrays, weights], names=names))
        return pa.Table.from_batches(parts)

    def _split_old_and_new(self, relation: int) -> tuple[pa.Array, pa.Array]:
        known = self._sides.get(relation)
        if known is None:
            assert self._changes is not None
            changes = self._changes
            if len(self.relations) > 1:
                changes = changes.filter(pc.equal(changes["relation"], relation))
            old, new = (_combine_chunks(changes[side].drop_null()) for side in ("old", "new"))
            known = self._sides[relation] = old, new
        return known


def _combine_chunks(column: pa.ChunkedArray) -> pa.Array:
    found = column.cast(pa.large_binary()).combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found
