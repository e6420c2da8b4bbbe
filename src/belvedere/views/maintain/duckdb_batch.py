"""The delta of a large batch by DuckDB: the same sums as the Python operators, by columns.

    by columns the old rows of the batch and the new ones are columns with a weight, straight from
               the log; the statement gives the rows or groups that go and come, and these are
               encoded by columns too; what has window functions is the definition over the
               touched partitions after the batch minus that before it
    summed     the old rows of the batch and the new ones are a table each, and what they add to the
               groups is one GROUP BY over each: sums of the new minus sums of the old
    refilled   the view is recomputed at the position the batch ends at, and compared with the
               stored state; the difference is what the batch adds, whatever the batch was

All give exactly what Python gives, or are refused with a reason: floats are added up exactly in
Python only, and plans that DuckDB has no exact form of, or fails on, stay there too. Ties are
broken as the view breaks them (`views.delta.tie_break`). A view without an exact form is refused
until its definition is compiled again; one whose values DuckDB fails on is tried again with the
next batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table
from belvedere.catalog.relation_codecs import CompiledView, compiled_table
from belvedere.codec.arrow.exact_kinds import EXACT_KINDS
from belvedere.errors import Error, Unsupported
from belvedere.execution.duckdb.engine import DuckEngine
from belvedere.execution.run import CANCELED, Interrupt, Run, make_statement_interrupt
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.fields import Field
from belvedere.plan.functions.registry import resolve
from belvedere.txn.contracts import Reader, RowChange
from belvedere.types import INTEGER, Kind, Row
from belvedere.values.decimals import EXACT
from belvedere.views.codegen.group_sums import GroupSums
from belvedere.views.compile.compile_view import MaintenancePlan
from belvedere.views.compile.distinct_rows import has_distinct_rows, has_distinct_rows_below_windows
from belvedere.views.delta.delta_plan import changes_leaf_id
from belvedere.views.delta.delta_tree import LinearCore, collect_relations, iterate_core_leaves
from belvedere.views.delta.linear_aggregates import (
    INTEGERS,
    AggregateGrouping,
    find_fixed_scale,
)
from belvedere.views.delta.linear_core import (
    CoreBranch,
    CoreLeaf,
    build_branch_plan,
    build_leaf_scan,
)
from belvedere.views.delta.sessionless_run import ENVIRONMENT, NO_SERVICES
from belvedere.views.delta.tie_break import with_total_order
from belvedere.views.maintain.difference_plan import (
    DifferencePlan,
    build_difference_plan,
    find_partitioned_window,
    sum_weights_of_equal_rows,
)
from belvedere.views.maintain.duckdb_inexactness import find_refusal_reason
from belvedere.views.maintain.state_entries import StateEntries, try_encode_columns_as_entries

if TYPE_CHECKING:
    import pyarrow as pa

    from belvedere.execution.split_tiers import SingleStatement
    from belvedere.views.maintain.column_additions import ColumnAdditions
    from belvedere.views.maintain.logged_columns import LoggedColumns

_SORTED_KINDS = frozenset((*INTEGERS, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ))


class _AmountColumn(NamedTuple):
    """A column of the aggregation; `scale` is the number of decimal digits of its values."""

    call: e.AggregateCall
    scale: int = 0


class _ChangedLeafPlan(NamedTuple):
    """A branch whose leaf `number`, a scan of this table, is replaced by the batch's rows."""

    relation: int
    slots: tuple[int, ...]
    number: int
    plan: n.Node


class DuckdbBatchEvaluator:
    """Computes the batches of one view. `refusal` is why they stay in Python."""

    def __init__(self, catalog: Catalog, compiled: MaintenancePlan) -> None:
        self._catalog = catalog
        self._tree = compiled.tree
        self._group = compiled.group
        self._amounts: list[_AmountColumn | None] = []
        self.refusal = find_refusal_reason(compiled)
        if self.refusal is None and self._group is not None:
            self._amounts = _build_amount_columns(self._group)
        self._leaf_plans: list[_ChangedLeafPlan] | None = None
        self._weighted_plans: list[_ChangedLeafPlan] | None = None
        self._difference_plans: dict[frozenset[int], DifferencePlan] = {}
        self._definition_plan: n.Node | None = None
        self._statements: dict[int, SingleStatement] = {}  # by the ids of the plans, all kept above

    @property
    def can_sum_by_group(self) -> bool:
        """Whether the view is a grouped linear core, so that changed rows can be summed by
        groups."""
        return (
            self.refusal is None and self._group is not None and isinstance(self._tree, LinearCore)
        )

    def can_sum_by_columns(self, stored: CompiledView, changed: frozenset[int]) -> bool:
        """Whether changes of these tables are added up by columns: the view's rows have keys by
        columns, and it is a difference, or a linear core in which no two occurrences of a table
        change together in one join."""
        if self.refusal is not None:
            return False
        if any(slot.type.kind not in EXACT_KINDS for slot in stored.view.stored):
            return False
        if not isinstance(self._tree, LinearCore):
            return self.uses_difference_plan
        return all(
            sum(not leaf.constant and leaf.relation in changed for leaf in branch.leaves) < 2
            for branch in self._tree.branches
        )

    @cached_property
    def uses_difference_plan(self) -> bool:
        """Whether batches by columns are the view after them minus the view before."""
        return find_partitioned_window(self._tree) is not None and all(
            leaf.constant is not None
            or (
                bool(leaf.slots)
                and all(field.type.kind in EXACT_KINDS for field in leaf.fields)
                and isinstance(self._catalog.get(leaf.relation), Table)
            )
            for leaf in iterate_core_leaves(self._tree)
        )

    # -- the three ways -------------------------------------------------------------------------

    def sum_changes_by_group(
        self, engine: DuckEngine, changes: Sequence[RowChange], reader: Reader
    ) -> GroupSums | str:
        """What these changes add, or why that cannot be computed. Each is of a table that is not
        joined with another changed table, so `reader` may show the others before or after them."""
        from belvedere.execution.duckdb.leaves import StoredDelta  # heavy

        sums: GroupSums = {}
        if self._leaf_plans is None:
            self._leaf_plans = self._build_changed_leaf_plans(weighted=False)
        for side in self._leaf_plans:
            mine = [change for change in changes if change.relation == side.relation]
            layout = compiled_table(self._catalog, side.relation).layout
            for weight, some in ((-1, [one.old for one in mine]), (1, [one.new for one in mine])):
                values = [value for value in some if value is not None]
                given = StoredDelta(layout, side.slots, values)
                if values:
                    leaves = {changes_leaf_id(side.number): given}
                    found = self._run_plan(
                        engine, side.plan, reader, leaves, make_statement_interrupt()
                    )
                    if isinstance(found, str):
                        return found
                    self._add_rows_to_sums(sums, found, weight)
        return sums

    def compute_delta_columns(
        self, engine: DuckEngine, logged: LoggedColumns, reader: Reader
    ) -> pa.Table | str:
        """The rows that the changes of a log range add to the view or take from it, as columns: the
        view's row or group, the weight, the amounts. Or why they cannot be computed. `reader` may
        show the tables that are joined with changed ones before or after them."""
        import pyarrow as pa  # heavy

        try:
            if not isinstance(self._tree, LinearCore):
                return self._compute_difference(engine, logged, reader)
            if self._weighted_plans is None:
                self._weighted_plans = self._build_changed_leaf_plans(weighted=True)
            parts: list[pa.Table] = []
            for side in self._weighted_plans:
                if side.relation in logged.relations:
                    layout = compiled_table(self._catalog, side.relation).layout
                    rows = logged.decode_weighted_rows(side.relation, layout, side.slots)
                    given = {changes_leaf_id(side.number): rows}
                    found = self._run_plan_on_columns(engine, side.plan, reader, given)
                    if isinstance(found, str):
                        return found
                    parts.append(found)
        except Unsupported as error:  # a value that Arrow cannot represent
            return str(error)
        return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})

    def _compute_difference(
        self, engine: DuckEngine, logged: LoggedColumns, reader: Reader
    ) -> pa.Table | str:
        import pyarrow as pa  # heavy

        changed = logged.relations.intersection(collect_relations(self._tree))
        if not changed:
            return pa.table({})
        found = self._difference_plans.get(changed)
        if found is None:
            found = build_difference_plan(self._tree, self._catalog, changed)
            plan = self._build_group_by_plan(found.plan, weighted=True)
            if self._group is None:
                plan = sum_weights_of_equal_rows(plan)
            found = self._difference_plans[changed] = found._replace(plan=plan)
        given: dict[int, pa.Table] = {}
        for one in found.tables:
            layout = compiled_table(self._catalog, one.relation).layout
            given[one.gone], given[one.come] = logged.decode_net_rows(
                one.relation, layout, one.slots
            )
        return self._run_plan_on_columns(engine, found.plan, reader, given)

    def _run_plan_on_columns(
        self, engine: DuckEngine, plan: n.Node, reader: Reader, given: Mapping[int, pa.Table]
    ) -> pa.Table | str:
        from belvedere.execution.duckdb.leaves import ColumnDelta  # heavy
        from belvedere.execution.duckdb.rows import TableRows  # heavy

        leaves = {number: ColumnDelta.of_table(table) for number, table in given.items()}
        found = self._run_plan(engine, plan, reader, leaves, make_statement_interrupt())
        if isinstance(found, str):
            return found
        return found.table if isinstance(found, TableRows) else "its rows are not columns"

    def try_encode_column_additions(
        self, stored: CompiledView, table: pa.Table
    ) -> ColumnAdditions | None:
        """These rows as additions to the view's state; None where they have no form by columns."""
        from belvedere.views.maintain.column_additions import try_encode_column_additions  # heavy

        return try_encode_column_additions(stored, table, self._amount_scales)

    @cached_property
    def has_distinct_rows(self) -> bool:
        """Whether no two stored rows are equal."""
        return self._group is None and (
            has_distinct_rows(self._tree.plan, self._catalog)
            or has_distinct_rows_below_windows(self._tree.plan, self._catalog)
        )

    def compute_all_rows(
        self, engine: DuckEngine, stored: CompiledView, reader: Reader, interrupt: Interrupt
    ) -> Iterator[Row] | str:
        """The rows of the view, or its groups with their amounts, computed from its tables; or why
        that cannot be done."""
        if self._definition_plan is None:
            plan = self._build_group_by_plan(with_total_order(self._tree.plan))
            self._definition_plan = _sort_by_state_key(plan, stored)
        return self._run_plan(engine, self._definition_plan, reader, {}, interrupt)

    def sum_rows_by_group(self, rows: Iterator[Row], weight: int = 1) -> GroupSums:
        """The sums of what `compute_all_rows` gave."""
        sums: GroupSums = {}
        self._add_rows_to_sums(sums, rows, weight)
        return sums

    def try_encode_by_columns(
        self, stored: CompiledView, rows: Iterator[Row]
    ) -> StateEntries | None:
        """The same rows as entries of the view's state; None where they have to be encoded one by
        one."""
        from belvedere.execution.duckdb.rows import TableRows  # heavy

        if not isinstance(rows, TableRows):
            return None
        return try_encode_columns_as_entries(stored, rows.table, self._amount_scales)

    @property
    def _amount_scales(self) -> list[int | None] | None:
        return None if self._group is None else [one and one.scale for one in self._amounts]

    def _run_plan(
        self,
        engine: DuckEngine,
        plan: n.Node,
        reader: Reader,
        given: Mapping[int, Sequence[Row]],
        interrupt: Interrupt,
    ) -> Iterator[Row] | str:
        from belvedere.execution.split_tiers import SingleStatement  # heavy

        run = Run(reader, (), ENVIRONMENT, NO_SERVICES, interrupt)
        run.deltas = given
        statement = self._statements.get(id(plan))
        if statement is None:
            statement = self._statements[id(plan)] = SingleStatement(self._catalog, plan)
        try:
            found = statement.fetch_rows(engine, run)
        except Error as error:  # of values: Python decides whether it is an error
            if error.sqlstate == CANCELED:
                raise
            return str(error)
        if isinstance(found, str):
            self.refusal = found
        return found

    def _add_rows_to_sums(self, sums: GroupSums, rows: Iterator[Row], weight: int) -> None:
        for stored, amounts in self._split_groups_and_amounts(rows):
            known = sums.get(stored)
            if known is None:
                sums[stored] = [weight * one for one in amounts]
            else:
                known[:] = [one + weight * other for one, other in zip(known, amounts)]

    def _split_groups_and_amounts(self, rows: Iterator[Row]) -> Iterator[tuple[Row, list[int]]]:
        if self._group is None:
            return ((row, [1]) for row in rows)
        width = len(self._group.groups)
        return ((row[:width], self._scale_amounts_to_integers(row[width:])) for row in rows)

    def _scale_amounts_to_integers(self, values: Row) -> list[int]:
        given = iter(values)
        return [
            0 if one is None else _scale_to_integer(next(given), one.scale) for one in self._amounts
        ]

    # -- plans --------------------------------------------------------------------------------

    def _build_changed_leaf_plans(self, *, weighted: bool) -> list[_ChangedLeafPlan]:
        assert isinstance(self._tree, LinearCore)
        build = _build_weighted_branch_plan if weighted else _build_changed_branch_plan
        return [
            _ChangedLeafPlan(
                leaf.relation,
                leaf.slots,
                at,
                self._build_group_by_plan(build(branch, at), weighted=weighted),
            )
            for branch in self._tree.branches
            for at, leaf in enumerate(branch.leaves)
            if leaf.constant is None
        ]

    def _build_group_by_plan(self, plan: n.Node, *, weighted: bool = False) -> n.Node:
        """`weighted`: the last column of the plan is the weight, and rows of each weight are summed
        by themselves."""
        group = self._group
        if group is None:
            if isinstance(plan, n.Scan):  # which is no statement by itself
                columns = [e.Column(i, one.type, one.name) for i, one in enumerate(plan.fields)]
                return n.Project(plan, tuple(columns), plan.fields)
            return plan
        calls = tuple(one.call for one in self._amounts if one is not None)
        groups = group.groups
        if weighted:
            groups += (e.Column(len(plan.fields) - 1, INTEGER, "weight"),)
        fields = [Field(f"group {i}", one.type) for i, one in enumerate(groups)]
        fields += [Field(f"amount {i}", call.type) for i, call in enumerate(calls)]
        return n.Aggregate(plan, groups, calls, tuple(fields))


def _build_weighted_branch_plan(branch: CoreBranch, changed: int) -> n.Node:
    """The plan of a branch, with one leaf replaced by the changed rows and their weight, which is
    the last column of the result."""
    leaf = branch.leaves[changed]
    at = leaf.column_range.stop
    places = {i: i + (i >= at) for i in range(branch.row_width)}
    leaves = [
        one if one.offset < at else replace(one, offset=one.offset + 1) for one in branch.leaves
    ]
    leaves[changed] = replace(leaf, fields=(*leaf.fields, Field("weight", INTEGER)))
    columns = (*transform.renumber_all(branch.columns, places), e.Column(at, INTEGER, "weight"))
    conditions = transform.renumber_all(branch.conditions, places)
    return _build_changed_branch_plan(CoreBranch(tuple(leaves), conditions, columns), changed)


def _build_changed_branch_plan(branch: CoreBranch, changed: int) -> n.Node:
    """The plan of a branch, with one leaf replaced by the changed rows."""

    def build_leaf_plan(number: int, leaf: CoreLeaf) -> n.Node:
        if number == changed:
            return n.Changes(changes_leaf_id(number), leaf.name, leaf.slots, leaf.fields)
        return build_leaf_scan(leaf)

    return build_branch_plan(branch, build_leaf_plan)


def _sort_by_state_key(plan: n.Node, stored: CompiledView) -> n.Node:
    """The rows in the order of their keys where that is an order of small values: DuckDB sorts
    these ten times faster than keys can be sorted, and in little memory."""
    if isinstance(plan, n.Sort | n.Limit | n.TopN) or any(
        column.type.kind not in _SORTED_KINDS for column in stored.key.columns
    ):
        return plan
    keys = [
        e.SortKey(e.Column(i, one.type, one.name), column.descending)
        for i, (one, column) in enumerate(zip(plan.fields, stored.key.columns, strict=False))
    ]
    return n.Sort(plan, tuple(keys))


# -- amounts ---------------------------------------------------------------------------------------


def _build_amount_columns(group: AggregateGrouping) -> list[_AmountColumn | None]:
    """The aggregate DuckDB computes for each amount that the view stores; None: it is always 0."""
    found: list[_AmountColumn | None] = [_AmountColumn(_build_aggregate_call("count", (), None))]
    for call, keep in zip(group.calls, group.linear_aggregates, strict=True):
        found.append(_AmountColumn(_build_aggregate_call("count", call.arguments, call.filter)))
        if keep.form == "count":
            continue
        scale = 0 if keep.form == "integers" else find_fixed_scale(call.arguments[0])
        assert scale is not None
        found.append(
            _AmountColumn(_build_aggregate_call("sum", call.arguments, call.filter), scale)
        )
        if keep.form != "integers":
            found.append(None)
    return found


def _build_aggregate_call(
    name: str, arguments: tuple[e.Expression, ...], condition: e.Expression | None
) -> e.AggregateCall:
    found = resolve(name, [one.type for one in arguments])
    return e.AggregateCall(found.function, arguments, found.result_type, filter=condition)


def _scale_to_integer(value: Any, scale: int) -> int:
    if value is None:
        return 0
    return int(value.scaleb(scale, EXACT)) if isinstance(value, Decimal) else int(value)
