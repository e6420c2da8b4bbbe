"""The maintenance of one view: from changes of its tables to additions to its stored state.

Immediate maintenance calls it in the commit section with one transaction's changes; the deferred
worker with the changes of a log range. The rows that the view's delta tree gives for them are
grouped, and what each group changes by goes to the Writer as an addition. A change that touches no
column the view uses adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.catalog.relation_codecs import compiled_view
from belvedere.codec import keyspace
from belvedere.errors import InvalidInput
from belvedere.execution.duckdb.engine import DuckEngine
from belvedere.execution.run import Interrupt
from belvedere.kv.batch import Write
from belvedere.txn.contracts import (
    Get,
    KeyRange,
    LockRequest,
    ParticipantsFor,
    Reader,
    RowChange,
    SingleRowWrites,
    Writer,
)
from belvedere.types import Row
from belvedere.views.codegen.group_sums import GroupSums, compile_group_adder
from belvedere.views.codegen.lookup_chain import LookupCache, LookupChain, TreeLookupChains
from belvedere.views.codegen.row_entries import (
    compile_row_entry_function,
    rows_to_weighted_entries,
)
from belvedere.views.codegen.single_row import compile_single_row_function
from belvedere.views.compile.compile_view import MaintenancePlan
from belvedere.views.delta.delta_tree import DeltaTree
from belvedere.views.maintain.decoded_changes import DecodedChanges, get_shared_decoded_changes
from belvedere.views.maintain.duckdb_batch import DuckdbBatchEvaluator
from belvedere.views.maintain.failed_expression import build_backfill_error, build_view_error
from belvedere.views.maintain.state_entries import (
    StateEntries,
    encode_additions_as_entries,
    try_compute_replacing_writes,
)
from belvedere.views.maintain.view_family import FamilyMember, find_family_key
from belvedere.views.operators.auxiliary_readers import AuxiliaryViews
from belvedere.views.operators.backfill_parts import BackfillPart, build_parts_if_divisible
from belvedere.views.operators.build import build_delta_operator
from belvedere.views.operators.operator import (
    DeltaOperator,
    DeltaStep,
    DerivationCache,
    WeightedRows,
    get_derivation_cache,
)
from belvedere.views.state.additions import AdditionRecorder

if TYPE_CHECKING:
    from belvedere.views.maintain.logged_columns import LoggedColumns

PREFIX = keyspace.ROW_PREFIX_BYTES


class ViewMaintainer:
    """Maintains one view. Holds no state between calls; also the view's commit participant."""

    checks = False  # a view refuses nothing

    def __init__(
        self,
        catalog: Catalog,
        view: View,
        compiled: MaintenancePlan,
        indexes: ParticipantsFor,
        kept: AuxiliaryViews,
    ) -> None:
        """`indexes` derives the indexes and auxiliary views that the view reads, those of
        `auxiliary_views` included."""
        self._source = build_delta_operator(catalog, compiled.tree, kept)
        self._stored = compiled_view(catalog, view.id)
        self._catalog = catalog
        self._view = view
        self._group = compiled.group
        self._single_row_functions: dict[bytes, SingleRowWrites | None] = {}
        self._can_sum_by_columns: dict[frozenset[int], bool] = {}
        self._entry_of = compile_row_entry_function(catalog, compiled.group)
        self._lookup_chains = TreeLookupChains(catalog, compiled.tree, compiled.group)
        self._add_up = compile_group_adder(view.amounts)
        self.indexes = indexes
        self.tree = compiled.tree
        self.auxiliary_views = kept
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
        decoded = get_shared_decoded_changes(changes, writer)
        try:
            if self._lookup_chains.covers_changed_tables(decoded.tables):
                sums = self._sum_by_lookup_chains(decoded, reader)
            elif after is not None:
                sums = self._sum_by_delta_tree(DeltaStep(changes, reader, self.indexes, after))
            else:
                sums = self._sum_delta_once_per_step(get_derivation_cache(changes, reader, writer))
        except InvalidInput as error:
            step = DeltaStep(changes, reader, self.indexes, after)
            raise build_view_error(
                self._catalog, self._view, self._compiled, self.auxiliary_views, step, error
            ) from error
        self.write_sums_as_additions(sums, writer)

    def write_additions_from_cache(
        self, changes: Sequence[RowChange], reader: Reader, writer: Writer, derived: DerivationCache
    ) -> None:
        """The same as `writes`, for an auxiliary view whose step is shared with other ones."""
        decoded = get_shared_decoded_changes(changes, writer)
        covered = self._lookup_chains.covers_changed_tables(decoded.tables)
        sums = (
            self._sum_by_lookup_chains(decoded, reader)
            if covered
            else self._sum_delta_once_per_step(derived)
        )
        self.write_sums_as_additions(sums, writer)

    def single_row_writes(self, prefix: bytes) -> SingleRowWrites | None:
        """The generated function for one changed row of the table with this prefix."""
        if prefix not in self._single_row_functions:
            legs = self._lookup_chains.chains_by_table.get(prefix, ())
            self._single_row_functions[prefix] = (
                compile_single_row_function(self._catalog, legs[0], self._group, self._stored)
                if len(legs) == 1
                and self._lookup_chains.covers_all_changes([RowChange(prefix, None, b"")])
                else None
            )
        return self._single_row_functions[prefix]

    # -- computing ----------------------------------------------------------------------------

    def backfill_state(self, reader: Reader, writer: Writer) -> None:
        """Compute the view from its tables at `reader` and add it to an empty state."""
        sums: GroupSums = {}
        self.sum_output_rows(self._source.compute_all_rows(reader), sums)
        self.write_sums_as_additions(sums, writer)

    def build_backfill_error(self, reader: Reader, error: InvalidInput) -> InvalidInput:
        """The error of a fill from these tables with the view, the expression and the row."""
        kept = self.auxiliary_views
        return build_backfill_error(self._catalog, self._view, self._compiled, kept, reader, error)

    def compute_state_by_duckdb(
        self, engine: DuckEngine, reader: Reader, interrupt: Interrupt
    ) -> StateEntries | str:
        """The same by DuckDB, as sorted entries; or why it cannot compute them."""
        found = self.duckdb_evaluator.compute_all_rows(engine, self._stored, reader, interrupt)
        if isinstance(found, str):
            return found
        entries = self.duckdb_evaluator.try_encode_by_columns(self._stored, found)
        if entries is None:
            recorder = AdditionRecorder()
            self.write_sums_as_additions(self.duckdb_evaluator.sum_rows_by_group(found), recorder)
            entries = encode_additions_as_entries(recorder.additions)
        return entries

    @cached_property
    def family_member(self) -> FamilyMember:
        """The view as one of those that are added up together."""
        return FamilyMember(self._compiled, self._stored)

    @cached_property
    def family_key(self) -> object | None:
        """What the views have in common that are added up together; None: it is added up alone."""
        return find_family_key(self.family_member)

    @property
    def state_range(self) -> KeyRange:
        """The keys of the view's state."""
        return KeyRange(self._stored.start, self._stored.end)

    def try_compute_replacing_writes(
        self, reader: Reader, entries: StateEntries
    ) -> list[Write] | None:
        """The writes that turn the stored state into these entries, by columns; None where they
        have no form by columns."""
        return try_compute_replacing_writes(reader, self._stored, entries)

    @property
    def is_grouped(self) -> bool:
        """Whether changes are added up by groups, so that several of them write one row."""
        return self._group is not None

    def can_sum_by_columns(self, changed: frozenset[int] = frozenset()) -> bool:
        """Whether changes of these tables are added up by columns. Nobody asks then what was
        added, so a view that keeps its changes has none."""
        if self._view.options.keep_changes is not None:
            return False
        known = self._can_sum_by_columns
        if changed not in known:
            known[changed] = self.duckdb_evaluator.can_sum_by_columns(self._stored, changed)
        return known[changed]

    def compute_column_writes(
        self, engine: DuckEngine, logged: LoggedColumns, reader: Reader
    ) -> list[Write] | str:
        """The state rows after the changes of a log range, by columns; or why they cannot be
        computed so. `reader` shows the state before them."""
        from belvedere.views.maintain import column_additions as adding  # heavy

        if not self.can_sum_by_columns(logged.relations):
            return "tables of one join changed together"
        found = self.duckdb_evaluator.compute_delta_columns(engine, logged, reader)
        if isinstance(found, str):
            return found
        if not found.num_rows:
            return []
        added = self.duckdb_evaluator.try_encode_column_additions(self._stored, found)
        if added is None:
            writes = None
        elif self.duckdb_evaluator.has_distinct_rows:
            writes = adding.try_build_distinct_row_writes(added)
        else:
            writes = adding.try_build_summed_writes(reader, self._stored, added)
        return "a value has no form by columns" if writes is None else writes

    @cached_property
    def duckdb_evaluator(self) -> DuckdbBatchEvaluator:
        """The DuckDB evaluation of large batches."""
        return DuckdbBatchEvaluator(self._catalog, self._compiled)

    def has_independent_changes(self, changes: Sequence[RowChange]) -> bool:
        """Whether each change adds independently of the others: no two tables of one join
        change."""
        return self._lookup_chains.covers_all_changes(changes)

    @cached_property
    def driving_table(self) -> int | None:
        """The table each of whose rows contributes to the view independently of the others; None
        where there is no such table."""
        return self._lookup_chains.driving_table

    @cached_property
    def _driving_chains(self) -> Sequence[LookupChain]:
        assert self.driving_table is not None
        return self._lookup_chains.chains_by_table[keyspace.row_prefix(self.driving_table)]

    def sum_driving_table_rows(self, values: Sequence[bytes], get: Get, sums: GroupSums) -> None:
        """Add rows of the driving table to sums: a part of `backfill_state`. `get` finds their join
        partners."""
        for leg in self._driving_chains:
            leg.add_inserted(sums, list(map(leg.project, values)), get)

    def list_backfill_parts(self) -> list[BackfillPart] | None:
        """The parts whose sum `backfill_state` adds; None where the view cannot be computed in
        parts."""
        return build_parts_if_divisible(self._source)

    def sum_output_rows(self, rows: Iterable[Row], sums: GroupSums) -> None:
        """Add rows of the tree to sums."""
        self._add_up(sums, rows_to_weighted_entries(self._entry_of, ((row, 1) for row in rows)))

    @property
    def reads_unchanged_rows(self) -> bool:
        """Whether a delta reads rows other than the changed ones."""
        return self._source.reads_state

    def needs_tables_before(self, changes: Sequence[RowChange]) -> bool:
        """Whether the delta of these changes needs the tables as they were before them. It does
        not where look-up chains cover the changes: they read only tables that did not change."""
        return (
            bool(changes)
            and self.reads_unchanged_rows
            and not self._lookup_chains.covers_all_changes(changes)
        )

    def build_part_operator(self, part: DeltaTree) -> DeltaOperator:
        """The delta operator of a part of the view's tree."""
        return build_delta_operator(self._catalog, part, self.auxiliary_views)

    def compute_delta_rows(self, changes: Sequence[RowChange], reader: Reader) -> WeightedRows:
        """The delta itself, before it is grouped; for display."""
        return self._source.compute_delta(DeltaStep(changes, reader, self.indexes))

    def _sum_by_lookup_chains(self, decoded: DecodedChanges, reader: Reader) -> GroupSums:
        """What the changes add to each group, change by change, by generated look-up chains."""
        sums: GroupSums = {}
        get = LookupCache(reader.get).__getitem__
        for prefix in decoded.tables:
            for leg in self._lookup_chains.chains_by_table.get(prefix, ()):
                went, came = decoded.project_deleted_and_inserted(prefix, leg)
                leg.add_deleted(sums, went, get)
                leg.add_inserted(sums, came, get)
        return sums

    def _sum_by_delta_tree(self, step: DeltaStep) -> GroupSums:
        """What the step adds to each group, by the delta of the tree."""
        sums: GroupSums = {}
        self._add_up(
            sums, rows_to_weighted_entries(self._entry_of, self._source.compute_delta(step))
        )
        return sums

    def _sum_delta_once_per_step(self, derived: DerivationCache) -> GroupSums:
        """The same as `_sum_by_delta_tree`, computed once for all callers of this step."""
        known = derived.sums.get(id(self))
        if known is None:
            step = DeltaStep(derived.changes, derived.before, self.indexes, derived=derived)
            known = derived.sums[id(self)] = (self, self._sum_by_delta_tree(step))
        return known[1]

    def write_sums_as_additions(self, sums: GroupSums, writer: Writer) -> None:
        """Groups that are one key go together before any of them is added: a row that went and
        came back in another look must not be gone in between."""
        encode_row, add = self._stored.payload.encode, writer.add
        groups = [group for group, amounts in sums.items() if any(amounts)]
        keys = list(map(self._stored.key.encode, groups))
        if len(set(keys)) < len(keys):
            self._write_groups_merged_by_key(sums, groups, keys, writer)
            return
        for key, group in zip(keys, groups):
            add(key, encode_row(group), tuple(sums[group]))

    def _write_groups_merged_by_key(
        self, sums: GroupSums, groups: Sequence[Row], keys: Sequence[bytes], writer: Writer
    ) -> None:
        additions: dict[bytes, tuple[Row, list[int]]] = {}
        for key, group in zip(keys, groups, strict=True):
            first, total = additions.get(key, (group, [0] * len(sums[group])))
            met = [one + other for one, other in zip(total, sums[group], strict=True)]
            additions[key] = first, met
        for key, (group, amounts) in additions.items():
            if any(amounts):
                writer.add(key, self._stored.payload.encode(group), tuple(amounts))
