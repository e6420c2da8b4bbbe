"""Readers of auxiliary views, for the maintenance of other views.

`AuxiliaryViews` says which auxiliary views a view has; an operator without one scans rows instead.
They are read at the state of the reader, which shows auxiliary views as it shows indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate, chain
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation_codecs import compiled_view
from belvedere.codec import accumulator
from belvedere.execution.python.context import row_keys
from belvedere.plan.fields import Field
from belvedere.txn.contracts import Reader
from belvedere.txn.exact_order import read_first_entry, sort_runs
from belvedere.types import Row
from belvedere.views.compile.auxiliary_containment import (
    locate_contained_calls,
    locate_contained_columns,
)
from belvedere.views.compile.auxiliary_views import (
    Auxiliary,
    AuxiliaryGroups,
    AuxiliaryRows,
    define_auxiliary_rows_by_keys,
)
from belvedere.views.delta.delta_tree import DeltaTree
from belvedere.views.delta.linear_aggregates import Amounts
from belvedere.views.delta.linear_core import Expressions
from belvedere.views.operators.operator import KeyLookup

_BATCH_ROWS = 32
"""Most ranges are read for few rows."""


class AuxiliaryMatch(NamedTuple):
    """A required auxiliary view, and the stored one that contains it, perhaps with more."""

    required: Auxiliary
    stored: Auxiliary
    id: int


class AuxiliaryViews:
    """The backfilled auxiliary views of a view; and the view's own id."""

    def __init__(self, catalog: Catalog, view: int, known: tuple[AuxiliaryMatch, ...] = ()) -> None:
        self._catalog = catalog
        self.view = view
        self._known = known

    def find_auxiliary_match(self, wanted: Auxiliary | None) -> AuxiliaryMatch | None:
        if wanted is not None:
            for one in self._known:
                if one.required.has_same_definition(wanted):
                    return one
        return None

    def build_rows_reader(self, wanted: AuxiliaryRows | None) -> AuxiliaryRowsReader | None:
        found = self.find_auxiliary_match(wanted)
        if found is None or wanted is None:
            return None
        assert isinstance(found.stored, AuxiliaryRows)
        return AuxiliaryRowsReader(self._catalog, found.id, found.stored, wanted)

    def build_groups_reader(self, wanted: AuxiliaryGroups) -> AuxiliaryGroupsReader | None:
        found = self.find_auxiliary_match(wanted)
        if found is None:
            return None
        assert isinstance(found.stored, AuxiliaryGroups)
        return AuxiliaryGroupsReader(self._catalog, found.id, found.stored, wanted)

    def build_auxiliary_key_lookup(self, tree: DeltaTree, keys: Expressions) -> KeyLookup | None:
        """A look-up of the tree's rows by keys in an auxiliary view; None without one."""
        found = (
            self.build_rows_reader(define_auxiliary_rows_by_keys(tree, keys))
            if keys and self._known
            else None
        )
        return None if found is None else found.read_rows_by_keys


class AuxiliaryRowsReader:
    """Reads auxiliary rows in the order of their keys."""

    def __init__(
        self, catalog: Catalog, id_: int, kept: AuxiliaryRows, wanted: AuxiliaryRows
    ) -> None:
        stored = compiled_view(catalog, id_)
        columns = locate_contained_columns(kept, wanted)
        assert columns is not None, "an auxiliary view has what it is used for"
        first = len(kept.keys)
        self._key = stored.key
        self._range = (stored.start, stored.end)
        self._row = stored.payload.projector(tuple(first + at for at in columns))
        self._values = stored.payload.projector(tuple(range(len(wanted.keys))))
        self._canonical_keys = row_keys(build_key_fields(wanted))

    def read_rows_by_keys(self, reader: Reader, keys: list[Row]) -> Iterator[Row]:
        for key in keys:
            start, end = self._key.prefix_range(key)
            assert end is not None
            for state in _scan_state_values(reader, start, end):
                payload, amounts = accumulator.decode(state)
                row = self._row(payload)
                yield from (row for _ in range(amounts[0]))

    def read_first_rows(self, reader: Reader, count: int, *, ties: bool) -> list[Row]:
        """The first rows; with ties also those that have the keys of the last one."""
        found: list[Row] = []
        last: Row | None = None
        if count <= 0:
            return found
        pairs = reader.scan(*self._range, batch_rows=_BATCH_ROWS)
        batches = ([state for _, state in batch] for batch in pairs)
        for state in chain.from_iterable(sort_runs(self._key, batches, reverse=False)):
            payload, amounts = accumulator.decode(state)
            values = self._canonical_keys(self._values(payload)) if ties else ()
            if len(found) >= count and (not ties or values != last):
                break
            last = values
            row = self._row(payload)
            found += [row] * (amounts[0] if ties else min(amounts[0], count - len(found)))
        return found

    def read_extreme_value(self, reader: Reader, key: Row, *, largest: bool) -> object:
        """The least or largest non-NULL value of the last key among the rows whose other keys are
        these."""
        start, end = self._key.not_null_range(key)
        assert end is not None
        state = read_first_entry(self._key, reader.scan, start, end, reverse=largest)
        return None if state is None else self._values(accumulator.decode(state)[0])[-1]


def build_key_fields(kept: AuxiliaryRows) -> tuple[Field, ...]:
    return tuple(Field(f"key {i}", key.expression.type) for i, key in enumerate(kept.keys))


class AuxiliaryGroupsReader:
    """Reads auxiliary groups with the required amounts, in the order required."""

    def __init__(
        self, catalog: Catalog, id_: int, kept: AuxiliaryGroups, wanted: AuxiliaryGroups
    ) -> None:
        stored = compiled_view(catalog, id_)
        self._encode = stored.key.encode
        self._decode: Callable[[bytes], Row] = stored.payload.decode
        at = locate_contained_calls(kept, wanted)
        assert at is not None, "an auxiliary view has what it is used for"
        self._amounts = (
            _locate_call_amounts(kept, at) if at != tuple(range(len(kept.calls))) else None
        )

    def read_group(self, reader: Reader, key: Row) -> tuple[Row, Amounts] | None:
        """The group with this key, in the representation of one of its rows, and its amounts."""
        state = reader.get(self._encode(key))
        if state is None:
            return None
        payload, amounts = accumulator.decode(state)
        if self._amounts is not None:
            amounts = tuple([amounts[at] for at in self._amounts])
        return self._decode(payload), amounts


def _locate_call_amounts(kept: AuxiliaryGroups, calls: tuple[int, ...]) -> tuple[int, ...]:
    """The positions of the row count and of some calls' amounts in a stored group."""
    ends = list(
        accumulate((keep.width for keep in kept.aggregate_grouping.linear_aggregates), initial=1)
    )
    return (0, *(at for call in calls for at in range(ends[call], ends[call + 1])))


def _scan_state_values(reader: Reader, start: bytes, end: bytes) -> Iterator[bytes]:
    for batch in reader.scan(start, end, batch_rows=_BATCH_ROWS):
        for _, state in batch:
            yield state
