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
from belvedere.catalog.model import Index, Maintenance, State
from belvedere.catalog.relation import CompiledIndex, compiled_index
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.txn.border import Reader
from belvedere.types import Row
from belvedere.views.seek import first, only_branch, slot_of
from belvedere.views.tree import Recompute


class Extremum(NamedTuple):
    """An aggregate call: the column of the table that it is over, and whether it is MAX."""

    slot: int
    largest: bool


class Extrema(NamedTuple):
    """A query of MIN and MAX by group over one table."""

    relation: int
    groups: tuple[int, ...]
    calls: tuple[Extremum, ...]

    @property
    def indexes(self) -> tuple[tuple[int, ...], ...]:
        """The columns of the indexes that it can be answered from."""
        return tuple(dict.fromkeys((*self.groups, call.slot) for call in self.calls))


def extrema_of(tree: Recompute) -> Extrema | None:
    """The tree as MIN and MAX by group over one table; None where it is anything else."""
    plan, branch = tree.plan, only_branch(tree.inputs[0].tree)
    if not isinstance(plan, n.Aggregate) or plan.grouping_sets is not None:
        return None
    if branch is None:
        return None
    slots = partial(slot_of, branch)
    groups = [slots(group) for group in plan.groups]
    calls = [_extremum(call, slots) for call in plan.aggregates]
    if not calls or None in groups or None in calls:
        return None
    return Extrema(
        branch.leaves[0].relation,
        tuple(slot for slot in groups if slot is not None),
        tuple(call for call in calls if call is not None),
    )


def _extremum(
    call: e.AggregateCall, slot_of: Callable[[e.Expression], int | None]
) -> Extremum | None:
    if call.function.name not in ("min", "max") or call.filter is not None or call.order_by:
        return None
    slot = slot_of(call.arguments[0])
    return None if slot is None else Extremum(slot, call.function.name == "max")


def serving_index(catalog: Catalog, relation: int, slots: tuple[int, ...]) -> Index | None:
    """A ready index whose entries are ordered by these columns, in this sequence."""
    for index in catalog.indexes_of(relation):
        plain = index.where is None and not index.unique
        ready = index.state is State.READY and index.maintenance is Maintenance.IMMEDIATE
        parts = [None if part.descending else part.slot for part in index.parts]
        if plain and ready and tuple(parts[: len(slots)]) == slots:
            return index
    return None


class ExtremaReader:
    """The rows of the aggregate for some groups at a state."""

    def __init__(self, catalog: Catalog, wanted: Extrema, indexes: list[Index]) -> None:
        self._width = len(wanted.groups)
        by_slot = dict(zip([slots[-1] for slots in wanted.indexes], indexes, strict=True))
        self._calls = [
            _End(compiled_index(catalog, by_slot[call.slot].id), self._width, call.largest)
            for call in wanted.calls
        ]

    def rows(self, reader: Reader, keys: list[Row]) -> Iterator[Row]:
        for key in keys:
            group = self._calls[0].group(reader, key) if self._width else ()
            if group is not None:
                yield group + tuple([call.value(reader, key) for call in self._calls])


class _End:
    def __init__(self, index: CompiledIndex, width: int, largest: bool) -> None:
        self._index = index
        self._largest = largest
        self._group = index.layout.projector(tuple(range(width)))
        self._value = index.layout.projector((width,))

    def group(self, reader: Reader, key: Row) -> Row | None:
        """The group's columns, as some row of the group has them; None when the group is empty."""
        entry = first(reader, *self._range(key))
        return None if entry is None else self._group(entry)

    def value(self, reader: Reader, key: Row) -> object:
        start, end = self._range(key)
        nulls, after = self._range((*key, None))
        if nulls == start:  # NULLs stand first
            start = after
        else:
            end = nulls
        entry = first(reader, start, end, reverse=self._largest)
        return None if entry is None else self._value(entry)[0]

    def _range(self, key: Row) -> tuple[bytes, bytes]:
        start, end = self._index.key.prefix_range(key)
        assert end is not None
        return start, end
