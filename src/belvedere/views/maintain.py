"""The maintenance of one view: from changes of its tables to additions to its stored state.

Immediate maintenance calls it in the commit section with one transaction's changes; the deferred
worker with the changes of a log range. The rows that the view's delta tree gives for them are
grouped, and what each group changes by goes to the Writer as an addition. A change that touches no
column the view uses adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.catalog.relation import compiled_view
from belvedere.codec import keyspace
from belvedere.txn.border import Alone, Get, LockRequest, ParticipantsFor, Reader, RowChange, Writer
from belvedere.types import Row
from belvedere.views.compile import Compiled
from belvedere.views.decoded import Decoded, decoded_beside
from belvedere.views.fill_parts import Part, parts_of
from belvedere.views.grouping import entries, entry_function
from belvedere.views.kept import Kept
from belvedere.views.large import Large
from belvedere.views.quick import Quick, Remembered
from belvedere.views.single import single_function
from belvedere.views.source import Derived, Source, Step, Weighted, derived_beside
from belvedere.views.sources import source_of
from belvedere.views.summing import Sums, adder
from belvedere.views.tree import Tree

PREFIX = keyspace.ROW_PREFIX_BYTES


class Maintainer:
    """Maintains one view. Holds no state between calls; also the view's commit participant."""

    checks = False  # a view refuses nothing

    def __init__(
        self,
        catalog: Catalog,
        view: View,
        compiled: Compiled,
        indexes: ParticipantsFor,
        kept: Kept,
    ) -> None:
        """`indexes` derives the indexes and auxiliary views that the view reads, those of `kept`
        included."""
        self._source = source_of(catalog, compiled.tree, kept)
        self._stored = compiled_view(catalog, view.id)
        self._catalog = catalog
        self._group = compiled.group
        self._alone: dict[bytes, Alone | None] = {}
        self._entry_of = entry_function(catalog, compiled.group)
        self._quick = Quick(catalog, compiled.tree, compiled.group)
        self._add_up = adder(view.amounts)
        self.indexes = indexes
        self.tree = compiled.tree
        self.kept = kept
        self._compiled = compiled

    # -- as a participant ---------------------------------------------------------------------

    def locks(self, changes: Sequence[RowChange], reader: Reader) -> Iterable[LockRequest]:
        """Additions commute: nothing is locked."""
        return ()

    def check(self, changes: Sequence[RowChange], reader: Reader) -> None:
        """A view refuses nothing."""

    def writes(
        self,
        changes: Sequence[RowChange],
        reader: Reader,
        writer: Writer,
        after: Reader | None = None,
    ) -> None:
        """Write the additions that the changes make; `reader` shows the state before them, and
        `after`, where it is already known, the state after them."""
        decoded = decoded_beside(changes, writer)
        if self._quick.covers_tables(decoded.tables):
            sums = self._quick_sums(decoded, reader)
        elif after is not None:
            sums = self._step_sums(Step(changes, reader, self.indexes, after))
        else:
            sums = self._shared_sums(derived_beside(changes, reader, writer))
        self.write_sums(sums, writer)

    def writes_beside(
        self, changes: Sequence[RowChange], reader: Reader, writer: Writer, derived: Derived
    ) -> None:
        """The same as `writes`, for an auxiliary view whose step is shared with other ones."""
        decoded = decoded_beside(changes, writer)
        covered = self._quick.covers_tables(decoded.tables)
        sums = self._quick_sums(decoded, reader) if covered else self._shared_sums(derived)
        self.write_sums(sums, writer)

    def alone(self, prefix: bytes) -> Alone | None:
        """The generated function for one changed row of the table with this prefix."""
        if prefix not in self._alone:
            legs = self._quick.legs.get(prefix, ())
            self._alone[prefix] = (
                single_function(self._catalog, legs[0], self._group, self._stored)
                if len(legs) == 1 and self._quick.covers([RowChange(prefix, None, b"")])
                else None
            )
        return self._alone[prefix]

    # -- computing ----------------------------------------------------------------------------

    def fill(self, reader: Reader, writer: Writer) -> None:
        """Compute the view from its tables at `reader` and add it to an empty state."""
        sums: Sums = {}
        self.add_rows(self._source.whole(reader), sums)
        self.write_sums(sums, writer)

    @cached_property
    def large(self) -> Large:
        """The DuckDB evaluation of large batches."""
        return Large(self._catalog, self._compiled)

    def takes_singly(self, changes: Sequence[RowChange]) -> bool:
        """Whether each change adds independently of the others: no two tables of one join
        change."""
        return self._quick.covers(changes)

    @property
    def table(self) -> int | None:
        """The table each of whose rows contributes to the view independently of the others; None
        where there is no such table."""
        return self._quick.driving

    def sum_rows(self, values: Sequence[bytes], get: Get, sums: Sums) -> None:
        """Add rows of the driving table to sums: a part of `fill`. `get` finds their join
        partners."""
        assert self.table is not None
        for leg in self._quick.legs[keyspace.row_prefix(self.table)]:
            leg.come(sums, list(map(leg.project, values)), get)

    def parts(self) -> list[Part] | None:
        """The parts whose sum `fill` adds; None where the view cannot be computed in parts."""
        return parts_of(self._source)

    def add_rows(self, rows: Iterable[Row], sums: Sums) -> None:
        """Add rows of the tree to sums."""
        self._add_up(sums, entries(self._entry_of, ((row, 1) for row in rows)))

    @property
    def reads_state(self) -> bool:
        """Whether a delta reads rows other than the changed ones."""
        return self._source.reads_state

    def looks_back(self, changes: Sequence[RowChange]) -> bool:
        """Whether the delta of these changes needs the tables as they were before them. It does
        not where look-up chains cover the changes: they read only tables that did not change."""
        return bool(changes) and self.reads_state and not self._quick.covers(changes)

    def source(self, part: Tree) -> Source:
        """The delta operator of a part of the view's tree."""
        return source_of(self._catalog, part, self.kept)

    def rows(self, changes: Sequence[RowChange], reader: Reader) -> Weighted:
        """The delta itself, before it is grouped; for display."""
        return self._source.delta(Step(changes, reader, self.indexes))

    def _quick_sums(self, decoded: Decoded, reader: Reader) -> Sums:
        """What the changes add to each group, change by change, by generated look-up chains."""
        sums: Sums = {}
        get = Remembered(reader.get).__getitem__
        for prefix in decoded.tables:
            for leg in self._quick.legs.get(prefix, ()):
                went, came = decoded.sides(prefix, leg)
                leg.gone(sums, went, get)
                leg.come(sums, came, get)
        return sums

    def _step_sums(self, step: Step) -> Sums:
        """What the step adds to each group, by the delta of the tree."""
        sums: Sums = {}
        self._add_up(sums, entries(self._entry_of, self._source.delta(step)))
        return sums

    def _shared_sums(self, derived: Derived) -> Sums:
        """The same as `_step_sums`, computed once for all callers of this step."""
        known = derived.sums.get(id(self))
        if known is None:
            step = Step(derived.changes, derived.before, self.indexes, derived=derived)
            known = derived.sums[id(self)] = (self, self._step_sums(step))
        return known[1]

    def write_sums(self, sums: Sums, writer: Writer) -> None:
        """Groups that are one key go together before any of them is added: a row that went and
        came back in another look must not be gone in between."""
        encode_row, add = self._stored.payload.encode, writer.add
        groups = [group for group, amounts in sums.items() if any(amounts)]
        keys = list(map(self._stored.key.encode, groups))
        if len(set(keys)) < len(keys):
            self._write_met(sums, groups, keys, writer)
            return
        for key, group in zip(keys, groups):
            add(key, encode_row(group), tuple(sums[group]))

    def _write_met(
        self, sums: Sums, groups: Sequence[Row], keys: Sequence[bytes], writer: Writer
    ) -> None:
        additions: dict[bytes, tuple[Row, list[int]]] = {}
        for key, group in zip(keys, groups, strict=True):
            first, total = additions.get(key, (group, [0] * len(sums[group])))
            met = [one + other for one, other in zip(total, sums[group], strict=True)]
            additions[key] = first, met
        for key, (group, amounts) in additions.items():
            if any(amounts):
                writer.add(key, self._stored.payload.encode(group), tuple(amounts))
