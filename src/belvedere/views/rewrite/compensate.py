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
from belvedere.views.rewrite.block import BlockLeaf, QueryBlock
from belvedere.views.rewrite.column_names import find_column_name
from belvedere.views.rewrite.derive_columns import NotDerivable, RowDerivation
from belvedere.views.rewrite.match import ViewAlignment
from belvedere.views.rewrite.view_block import MatchRefusal, ViewBlock


@dataclass(frozen=True, slots=True)
class ViewRows:
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
    rows: ViewRows,
    catalog: Catalog,
) -> Compensation | MatchRefusal:
    """The block answered by the view; MatchRefusal when the view lacks a column."""
    builder = _ResultRow(query, view, alignment, rows, catalog)
    try:
        return builder.build_projection()
    except NotDerivable as missing:
        name = find_column_name(missing.column, alignment.leaves, catalog)
        return MatchRefusal(f"it lacks {name}")


class _ResultRow:
    """The view's rows, joined with the remaining leaves and filtered."""

    def __init__(
        self,
        query: QueryBlock,
        view: ViewBlock,
        alignment: ViewAlignment,
        rows: ViewRows,
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
                name = find_column_name(column.index, alignment.leaves, catalog)
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
        self._steps: list[str] = []

    def build_projection(self) -> Compensation:
        """The columns of a block without groups."""
        node = self._build_filtered_rows()
        outputs = tuple([self._derivation.derive_expression(x) for x in self._query.outputs])
        made = n.Project(node, outputs, self._query.fields)
        return Compensation(made, tuple(self._steps))

    def _build_filtered_rows(self) -> n.Node:
        rows = self._rows
        slots = tuple(range(len(rows.fields)))
        node: n.Node = n.Scan(rows.relation, rows.name, slots, rows.fields)
        for leaf in self._alignment.remaining:
            node = self._join_leaf(node, leaf)
        derive = self._derivation.derive_expression
        conditions = [derive(one) for one in self._alignment.residual]
        conditions += self._derivation.derive_equalities()
        condition = transform.conjunction(conditions)
        if condition is None:
            return node
        self._steps.append(f"filter {' and '.join(map(print_expression, conditions))}")
        return n.Filter(node, condition)

    def _join_leaf(self, node: n.Node, leaf: BlockLeaf) -> n.Node:
        right = self._build_leaf_plan(leaf)
        self._steps.append(f"join with {_name_leaf(leaf, self._catalog)}")
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


def _name_leaf(leaf: BlockLeaf, catalog: Catalog) -> str:
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
