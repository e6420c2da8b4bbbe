"""MIN and MAX of groups, read from the ends of an index."""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Index
from belvedere.catalog.relation_codecs import CompiledIndex, compiled_index
from belvedere.txn.contracts import Reader
from belvedere.txn.exact_order import read_first_entry
from belvedere.types import Row
from belvedere.views.delta.min_max import MinMaxQuery
from belvedere.views.operators.exists import read_first_or_last_entry


class MinMaxReader:
    """The rows of the aggregate for some groups at a state."""

    def __init__(self, catalog: Catalog, wanted: MinMaxQuery, indexes: list[Index]) -> None:
        self._width = len(wanted.groups)
        by_slot = dict(
            zip([slots[-1] for slots in wanted.required_index_columns], indexes, strict=True)
        )
        self._index_ends = [
            _IndexEnd(compiled_index(catalog, by_slot[call.slot].id), self._width, call.largest)
            for call in wanted.calls
        ]

    def read_group_rows(self, reader: Reader, keys: list[Row]) -> Iterator[Row]:
        for key in keys:
            group = self._index_ends[0].read_group_columns(reader, key) if self._width else ()
            if group is not None:
                yield group + tuple(
                    [call.read_extreme_value(reader, key) for call in self._index_ends]
                )


class _IndexEnd:
    def __init__(self, index: CompiledIndex, width: int, largest: bool) -> None:
        self._index = index
        self._largest = largest
        self._group = index.layout.projector(tuple(range(width)))
        self._value = index.layout.projector((width,))

    def read_group_columns(self, reader: Reader, key: Row) -> Row | None:
        """The group's columns, as some row of the group has them; None when the group is empty."""
        entry = read_first_or_last_entry(reader, *self._prefix_key_range(key))
        return None if entry is None else self._group(entry)

    def read_extreme_value(self, reader: Reader, key: Row) -> object:
        start, end = self._prefix_key_range(key)
        nulls, after = self._prefix_key_range((*key, None))
        if nulls == start:  # NULLs stand first
            start = after
        else:
            end = nulls
        entry = read_first_entry(self._index.key, reader.scan, start, end, reverse=self._largest)
        return None if entry is None else self._value(entry)[0]

    def _prefix_key_range(self, key: Row) -> tuple[bytes, bytes]:
        start, end = self._index.key.prefix_range(key)
        assert end is not None
        return start, end
