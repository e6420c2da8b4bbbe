"""Compensation: the plan that makes the rows of a query block out of the rows of a view.

Scan of the view
  joined with the leaves that the view lacks
    filtered by what the view does not guarantee
      projected to the block's columns, or rolled up to its groups
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from belvedere.catalog.catalog import Catalog
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.expression_printer import print_expression
from belvedere.plan.fields import Field, Fields
from belvedere.plan.representation import sql_equal_may_differ
from belvedere.sql.rules.access.implication import FLIPPED
from belvedere.views.rewrite.block import BlockLeaf, QueryBlock
from belvedere.views.rewrite.column_names import find_block_column_name, print_block_expression
from belvedere.views.rewrite.derive_columns import NotDerivable, RowDerivation
from belvedere.views.rewrite.match import ViewAlignment, is_never_null_column
from belvedere.views.rewrite.roll_up import AggregateColumns, AggregateNotDerivable
from belvedere.views.rewrite.view_block import MatchRefusal, ViewBlock


@dataclass(frozen=True, slots=True)
class ViewRelation:
    """A view as a plan names it; `fields` are its columns."""

    relation: int
    name: str
    fields: Fields


@dataclass(frozen=True, slots=True)
class Compensation:
    """The plan that answers the block, and what it does to the rows of the view, as text."""

    plan: n.Node
    steps: tuple[str, ...]


def build_compensation(
    query: QueryBlock,
    view: ViewBlock,
    alignment: ViewAlignment,
    rows: ViewRelation,
    catalog: Catalog,
) -> Compensation | MatchRefusal:
    """The block answered by the view; MatchRefusal when the view lacks a column."""
    builder = _CompensationBuilder(query, view, alignment, rows, catalog)
    try:
        return builder.build_grouped_answer() if query.grouped else builder.build_ungrouped_answer()
    except NotDerivable as missing:
        name = find_block_column_name(missing.column, alignment.leaves, catalog)
        return MatchRefusal(f"it lacks {name}")
    except AggregateNotDerivable as missing:
        text = print_block_expression(_to_printable_call(missing.call), alignment.leaves, catalog)
        return MatchRefusal(f"{text} does not follow from its columns")
    except GroupsLost:
        return MatchRefusal("it has one row, also for no rows at all")


class GroupsLost(Exception):
    """A view without groups has a row where the query may have none."""


def _to_printable_call(call: e.AggregateCall) -> e.Expression:
    """An aggregate as the printer takes it: like a call of a scalar function."""
    return e.Call(call.function, call.arguments, call.type)


class _CompensationBuilder:
    """The view's rows, joined with the remaining leaves and filtered."""

    def __init__(
        self,
        query: QueryBlock,
        view: ViewBlock,
        alignment: ViewAlignment,
        rows: ViewRelation,
        catalog: Catalog,
    ) -> None:
        self._query = query
        self._alignment = alignment
        self._rows = rows
        self._catalog = catalog
        self._used = _collect_used_columns(query)
        remaining: dict[int, e.Column] = {}
        width = len(rows.fields)
        for leaf in alignment.remaining:
            for column in self._list_leaf_columns(leaf):
                name = find_block_column_name(column.index, alignment.leaves, catalog)
                place = e.Column(width, column.type, name.rpartition(".")[2])
                remaining[column.index] = place
                width += 1
        names = tuple([field.name for field in rows.fields])
        usable = [
            i
            for i, field in enumerate(rows.fields)
            if not view.block.grouped or not sql_equal_may_differ(field.type)
        ]
        self._derivation = RowDerivation(alignment, names, usable, remaining)
        self._bare_groups = RowDerivation(alignment, names, range(len(names)), remaining)
        self._steps: list[str] = []

    def build_ungrouped_answer(self) -> Compensation:
        """The columns of a block without groups."""
        node = self._build_filtered_rows_plan()
        outputs = tuple([self._derivation.derive_expression(x) for x in self._query.outputs])
        made = n.Project(node, outputs, self._query.fields)
        return Compensation(made, tuple(self._steps))

    def build_grouped_answer(self) -> Compensation:
        """The groups of a grouped block: rows of the view, or rolled up from them."""
        query, alignment = self._query, self._alignment
        if not alignment.groups:
            if query.outputs or alignment.remaining or alignment.residual:
                raise GroupsLost
        node = self._build_filtered_rows_plan()
        groups = tuple([self._derive_group(one) for one in query.outputs])
        aggregates = self._build_aggregate_columns()
        if self._has_same_groups():
            try:
                values = [aggregates.read_same_group_aggregate(call) for call in query.calls]
            except AggregateNotDerivable:
                if not alignment.groups:
                    raise
            else:
                made: n.Node = n.Project(node, (*groups, *values), query.fields)
                return Compensation(made, tuple(self._steps))
        made = self._roll_up_groups(node, groups, aggregates)
        return Compensation(made, tuple(self._steps))

    def _derive_group(self, group: e.Expression) -> e.Expression:
        """A group of the query over the view's row. Groups of values that may differ in
        representation are taken only as they are."""
        try:
            return self._derivation.derive_expression(group)
        except NotDerivable:
            found = self._bare_groups.find_result_column(group)
            if found is None:
                raise
            return found

    def _has_same_groups(self) -> bool:
        """Whether each group of the query is one row of the view."""
        given = self._alignment.given
        mine = {given.canonical_form(one) for one in self._query.outputs}
        theirs = {given.canonical_form(one) for one in self._alignment.groups}
        same = theirs <= mine and not self._alignment.remaining
        return same and bool(theirs) == bool(self._query.outputs)

    def _build_aggregate_columns(self) -> AggregateColumns:
        alignment, fields = self._alignment, self._rows.fields
        columns = {
            one: e.Column(i, fields[i].type, fields[i].name)
            for i, one in enumerate(alignment.columns)
            if isinstance(one, e.AggregateCall)
        }

        def is_never_null(expression: e.Expression) -> bool:
            return isinstance(expression, e.Column) and (
                alignment.given.is_in_class(expression.index)
                or is_never_null_column(expression.index, alignment.leaves, self._catalog)
            )

        return AggregateColumns(
            columns,
            alignment.given.canonical_form,
            self._derivation.derive_expression,
            is_never_null,
        )

    def _roll_up_groups(
        self, node: n.Node, groups: tuple[e.Expression, ...], aggregates: AggregateColumns
    ) -> n.Node:
        query, width = self._query, len(groups)
        rolled = [aggregates.roll_up_call(call) for call in query.calls]
        calls = tuple([one for each in rolled for one in each.calls])
        fields = (
            *query.fields[:width],
            *(Field(one.function.name, one.type) for one in calls),
        )
        made = n.Aggregate(node, groups, calls, fields)
        columns = [e.Column(i, field.type, field.name) for i, field in enumerate(fields)]
        values: list[e.Expression] = list(columns[:width])
        at = width
        for each in rolled:
            values.append(each.finish(tuple(columns[at : at + len(each.calls)])))
            at += len(each.calls)
        names = ", ".join(map(print_expression, groups)) or "one row"
        self._steps.append(f"roll up to {names}")
        return n.Project(made, tuple(values), query.fields)

    def _build_filtered_rows_plan(self) -> n.Node:
        rows = self._rows
        slots = tuple(range(len(rows.fields)))
        node: n.Node = n.Scan(rows.relation, rows.name, slots, rows.fields)
        for leaf in self._alignment.remaining:
            node = self._join_remaining_leaf(node, leaf)
        conditions = [self._derive_condition(one) for one in self._alignment.residual]
        conditions += self._derivation.derive_missing_equalities()
        condition = transform.conjunction(conditions)
        if condition is None:
            return node
        self._steps.append(f"filter {' and '.join(map(print_expression, conditions))}")
        return n.Filter(node, condition)

    def _derive_condition(self, condition: e.Expression) -> e.Expression:
        """A condition over the result row. It may compare a group whose values may differ in
        representation, because equal ones compare the same."""
        bare = is_comparison_with_constants(condition)
        return (self._bare_groups if bare else self._derivation).derive_expression(condition)

    def _join_remaining_leaf(self, node: n.Node, leaf: BlockLeaf) -> n.Node:
        right = self._build_leaf_plan(leaf)
        self._steps.append(f"join with {_describe_leaf(leaf, self._catalog)}")
        if leaf.on is None:
            return n.Join(n.JoinKind.INNER, node, right)
        on = transform.conjunction([self._derivation.derive_expression(one) for one in leaf.on])
        return n.Join(n.JoinKind.LEFT, node, right, residual=on)

    def _build_leaf_plan(self, leaf: BlockLeaf) -> n.Node:
        if leaf.plan is not None:
            return leaf.plan
        assert leaf.relation is not None
        table = self._catalog.table(leaf.relation)
        slots = [column.index - leaf.offset for column in self._list_leaf_columns(leaf)]
        fields = tuple([Field(table.columns[i].name, table.columns[i].type) for i in slots])
        return n.Scan(leaf.relation, table.name, tuple(slots), fields)

    def _list_leaf_columns(self, leaf: BlockLeaf) -> list[e.Column]:
        """The columns of a leaf's plan: all of an opaque one, those in use of a table."""
        if leaf.plan is not None:
            fields = enumerate(leaf.plan.fields)
            return [e.Column(leaf.offset + i, field.type) for i, field in fields]
        return [self._used[i] for i in leaf.columns if i in self._used]


def _describe_leaf(leaf: BlockLeaf, catalog: Catalog) -> str:
    return "a sub-query" if leaf.relation is None else catalog.table(leaf.relation).name


def _collect_used_columns(query: QueryBlock) -> dict[int, e.Column]:
    """The columns that the block reads, by their index."""
    found: dict[int, e.Column] = {}

    def note_column(column: e.Column) -> e.Column:
        found[column.index] = replace(column, name="")
        return column

    on = [one for leaf in query.leaves for one in leaf.on or ()]
    calls = [one for call in query.calls for one in call.arguments]
    calls += [call.filter for call in query.calls if call.filter is not None]
    calls += [key.expression for call in query.calls for key in call.order_by]
    for expression in (*query.conditions, *query.outputs, *calls, *on):
        transform.map_columns(expression, note_column)
    return found


def is_comparison_with_constants(condition: e.Expression) -> bool:
    """Whether the condition compares a column with constants, or tests it for NULL."""
    match condition:
        case e.Call(function, (e.Column(), e.Literal() | e.Parameter()), _):
            return function.name in FLIPPED
        case e.InList(operand=e.Column()):
            return all(isinstance(one, e.Literal | e.Parameter) for one in condition.items)
        case e.Test(operand=e.Column(), truth=e.Truth.NULL):
            return True
        case _:
            return False
