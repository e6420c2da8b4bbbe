"""Rows of windows read from an index: those around a change, or the first of a partition.

In the order of the index a row depends on the rows from `below` places before it to `above` after
it. A change at a place therefore touches the rows from `above` before it to `below` after it: the
*core*. Core rows are computed over the core with its surroundings, and only they are given. The
core is a range of index keys, the widest of both states, so that rows which did not change are
given twice and cancel each other.

Where rows show the first row of their partition, or the last, it is computed with them; a change at
its place touches the whole partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.execution.python.context import row_keys
from belvedere.plan.fields import Field
from belvedere.txn.contracts import Reader
from belvedere.types import Row
from belvedere.views.delta.delta_tree import Recompute
from belvedere.views.delta.min_max import find_index_ordered_by
from belvedere.views.delta.window_rows import Reach, WindowRowsQuery, match_window_rows_query
from belvedere.views.operators.index_places import IndexPlaces
from belvedere.views.operators.operator import WeightedRows

CHANGED_ROWS_MAX = 256
"""A step that changes more rows is computed by partition."""

RunOnRows = Callable[[Reader, list[Row]], Iterable[Row]]
"""The window itself, over given rows."""


class _CoreRange(NamedTuple):
    """Index keys of rows whose results may change; `first` and `last` bound their partition."""

    low: bytes
    high: bytes
    first: bytes
    last: bytes


class WindowRowsReader:
    """Reads the rows of a window around a place of an index, or at the beginning of a partition."""

    def __init__(self, catalog: Catalog, query: WindowRowsQuery, index_id: int) -> None:
        table, width = compiled_table(catalog, query.relation), len(query.slots)
        self._query = query
        self._places = IndexPlaces(
            catalog, query.relation, query.columns, index_id, width, query.partition
        )
        fields = [Field("place", table.table.columns[slot].type) for slot in query.slots]
        self._canonical = row_keys(tuple(fields))
        reach = query.reach or Reach()
        sides = [(reach.preceding, reach.first), (reach.following, reach.last)]
        below, above = reversed(sides) if query.descending else sides
        (self._below, self._needs_lowest), (self._above, self._needs_highest) = below, above

    @property
    def reads_rows_around_change(self) -> bool:
        """Whether a change touches the rows around it; else the first rows of its partition."""
        return self._query.reach is not None

    def read_first_rows(self, reader: Reader, keys: list[Row]) -> list[Row]:
        """The first rows of these partitions, and those that share the place of the last one."""
        count, found = self._query.first_rows, []
        assert count is not None
        for key in keys:
            first, last = self._places.get_place_range(key)
            entries = self._scan_entries(
                reader, first, last, count=count, reverse=self._query.descending
            )
            if entries:
                start, end = self._places.get_place_range(self._places.place_of_entry(entries[-1]))
                low, high = (start, last) if self._query.descending else (first, end)
                found += self._places.read_rows_in_range(reader, low, high)
        return found

    def compute_delta_around_changes(
        self, changed: list[Row], before: Reader, after: Reader, run: RunOnRows
    ) -> WeightedRows:
        """The delta of a step that inserts or deletes these rows."""
        for core in self._find_core_ranges(changed, (before, after)):
            for reader, weight in ((before, -1), (after, 1)):
                for row in self._compute_core_rows(reader, core, run):
                    yield row, weight

    def _find_core_ranges(self, changed: list[Row], states: Iterable[Reader]) -> list[_CoreRange]:
        """The cores of all changed places; those that meet are one."""
        places = {
            self._canonical(place): place
            for place in (tuple([row[at] for at in self._query.place]) for row in changed)
        }
        merged: list[_CoreRange] = []
        for one in sorted(self._find_core_range(place, states) for place in places.values()):
            if merged and one.low <= merged[-1].high and one.first == merged[-1].first:
                merged[-1] = merged[-1]._replace(high=max(merged[-1].high, one.high))
            else:
                merged.append(one)
        return merged

    def _find_core_range(self, place: Row, states: Iterable[Reader]) -> _CoreRange:
        first, last = self._places.get_place_range(place[: self._query.partition])
        start, end = self._places.get_place_range(place)
        if any(self._is_at_edge(reader, first, last, start) for reader in states):
            return _CoreRange(first, last, first, last)
        lows = [
            self._find_start_rows_before(reader, first, start, self._above) for reader in states
        ]
        highs = [self._find_end_rows_after(reader, end, last, self._below) for reader in states]
        return _CoreRange(min(lows), max(highs), first, last)

    def _compute_core_rows(self, reader: Reader, core: _CoreRange, run: RunOnRows) -> Iterator[Row]:
        inside = self._places.read_rows_in_range(reader, core.low, core.high)
        if not inside:
            return
        low = self._find_start_rows_before(reader, core.first, core.low, self._below)
        high = self._find_end_rows_after(reader, core.high, core.last, self._above)
        around = self._places.read_rows_in_range(
            reader, low, core.low
        ) + self._places.read_rows_in_range(reader, core.high, high)
        for start, end in self._find_edges(reader, core.first, core.last):
            if start < low or start >= high:
                around += self._places.read_rows_in_range(reader, start, end)
        wanted = set(map(self._make_canonical_place, inside))
        for row in run(reader, inside + around):
            if self._make_canonical_place(row) in wanted:
                yield row

    def _is_at_edge(self, reader: Reader, first: bytes, last: bytes, start: bytes) -> bool:
        """Whether a place is that of the row at an edge that all rows show, or beyond it."""
        edges = self._find_edges(reader, first, last)
        if self._needs_lowest and (not edges or start <= edges[0][0]):
            return True
        return self._needs_highest and (not edges or start >= edges[-1][0])

    def _find_edges(self, reader: Reader, first: bytes, last: bytes) -> list[tuple[bytes, bytes]]:
        """The places of the first and last rows of a partition that all its rows show."""
        entries = []
        for needed, reverse in ((self._needs_lowest, False), (self._needs_highest, True)):
            if needed:
                entries += self._scan_entries(reader, first, last, count=1, reverse=reverse)
        return [
            self._places.get_place_range(self._places.place_of_entry(entry)) for entry in entries
        ]

    def _make_canonical_place(self, row: Row) -> Row:
        return self._canonical(tuple([row[at] for at in self._query.place]))

    # -- the index ----------------------------------------------------------------------------

    def _find_start_rows_before(
        self, reader: Reader, first: bytes, start: bytes, count: int
    ) -> bytes:
        """Where the place begins of the row that lies so many rows before a key."""
        entries = self._scan_entries(reader, first, start, count=count, reverse=True)
        return (
            self._places.get_place_range(self._places.place_of_entry(entries[-1]))[0]
            if entries
            else start
        )

    def _find_end_rows_after(self, reader: Reader, end: bytes, last: bytes, count: int) -> bytes:
        """Where the place ends of the row that lies so many rows after a key."""
        entries = self._scan_entries(reader, end, last, count=count, reverse=False)
        return (
            self._places.get_place_range(self._places.place_of_entry(entries[-1]))[1]
            if entries
            else end
        )

    def _scan_entries(
        self, reader: Reader, start: bytes, end: bytes, *, count: int, reverse: bool
    ) -> list[bytes]:
        if not count or start >= end:
            return []
        batches = reader.scan(start, end, reverse=reverse, limit=count, batch_rows=count)
        return [entry for batch in batches for _, entry in batch]


def build_window_rows_reader(catalog: Catalog, tree: Recompute) -> WindowRowsReader | None:
    """The reader for a tree whose rows an index gives, where that exists."""
    wanted = match_window_rows_query(catalog, tree)
    if wanted is None:
        return None
    index = find_index_ordered_by(catalog, wanted.relation, wanted.slots)
    return None if index is None else WindowRowsReader(catalog, wanted, index.id)
