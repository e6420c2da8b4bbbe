"""MIN and MAX of a table's groups, or of all its rows, from the ends of an index.

An index on (group columns, value) holds each group's values in order, so the smallest and the
largest are one seek each, however large the group. NULL values stand at the end of a group and are
skipped.

State: the view's rows, and one index for each value. Cost of a change: a seek for each extremum,
before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Index, Maintenance, ObjectState
from belvedere.catalog.relation import CompiledIndex, compiled_index
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.txn.border import Reader
from belvedere.types import Row
from belvedere.views.seek import find_slot, match_plain_table, read_first_entry
from belvedere.views.tree import Recompute


class MinMaxCall(NamedTuple):
    """An aggregate call: the column of the table that it is over, and whether it is MAX."""

    slot: int
    largest: bool


class MinMaxQuery(NamedTuple):
    """A query of MIN and MAX by group over one table."""

    relation: int
    groups: tuple[int, ...]
    calls: tuple[MinMaxCall, ...]

    @property
    def index_columns(self) -> tuple[tuple[int, ...], ...]:
        """The columns of the indexes that it can be answered from."""
        return tuple(dict.fromkeys((*self.groups, call.slot) for call in self.calls))


def match_min_max(tree: Recompute) -> MinMaxQuery | None:
    """The tree as MIN and MAX by group over one table; None where it is anything else."""
    plan, branch = tree.plan, match_plain_table(tree.inputs[0].tree)
    if not isinstance(plan, n.Aggregate) or plan.grouping_sets is not None:
        return None
    if branch is None:
        return None
    slots = partial(find_slot, branch)
    groups = [slots(group) for group in plan.groups]
    calls = [_match_min_max_call(call, slots) for call in plan.aggregates]
    if not calls or None in groups or None in calls:
        return None
    return MinMaxQuery(
        branch.leaves[0].relation,
        tuple(slot for slot in groups if slot is not None),
        tuple(call for call in calls if call is not None),
    )


def _match_min_max_call(
    call: e.AggregateCall, slot_of: Callable[[e.Expression], int | None]
) -> MinMaxCall | None:
    if call.function.name not in ("min", "max") or call.filter is not None or call.order_by:
        return None
    slot = slot_of(call.arguments[0])
    return None if slot is None else MinMaxCall(slot, call.function.name == "max")


def find_serving_index(catalog: Catalog, relation: int, slots: tuple[int, ...]) -> Index | None:
    """A ready index whose entries are ordered by these columns, in this sequence."""
    for index in catalog.table_indexes(relation):
        plain = index.where is None and not index.unique
        ready = index.state is ObjectState.READY and index.maintenance is Maintenance.IMMEDIATE
        parts = [None if part.descending else part.slot for part in index.parts]
        if plain and ready and tuple(parts[: len(slots)]) == slots:
            return index
    return None


class MinMaxReader:
    """The rows of the aggregate for some groups at a state."""

    def __init__(self, catalog: Catalog, wanted: MinMaxQuery, indexes: list[Index]) -> None:
        self._width = len(wanted.groups)
        by_slot = dict(zip([slots[-1] for slots in wanted.index_columns], indexes, strict=True))
        self._index_ends = [
            _IndexEnd(compiled_index(catalog, by_slot[call.slot].id), self._width, call.largest)
            for call in wanted.calls
        ]

    def read_groups(self, reader: Reader, keys: list[Row]) -> Iterator[Row]:
        for key in keys:
            group = self._index_ends[0].read_group(reader, key) if self._width else ()
            if group is not None:
                yield group + tuple([call.read_value(reader, key) for call in self._index_ends])


class _IndexEnd:
    def __init__(self, index: CompiledIndex, width: int, largest: bool) -> None:
        self._index = index
        self._largest = largest
        self._group = index.layout.projector(tuple(range(width)))
        self._value = index.layout.projector((width,))

    def read_group(self, reader: Reader, key: Row) -> Row | None:
        """The group's columns, as some row of the group has them; None when the group is empty."""
        entry = read_first_entry(reader, *self._key_range(key))
        return None if entry is None else self._group(entry)

    def read_value(self, reader: Reader, key: Row) -> object:
        start, end = self._key_range(key)
        nulls, after = self._key_range((*key, None))
        if nulls == start:  # NULLs stand first
            start = after
        else:
            end = nulls
        entry = read_first_entry(reader, start, end, reverse=self._largest)
        return None if entry is None else self._value(entry)[0]

    def _key_range(self, key: Row) -> tuple[bytes, bytes]:
        start, end = self._index.key.prefix_range(key)
        assert end is not None
        return start, end
