"""A view as a block: its definition in normal form, and what each of its columns is over it."""

from __future__ import annotations

from dataclasses import dataclass

from belvedere.catalog.catalog import Catalog
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.views.rewrite.block import QueryBlock, build_query_block

ViewColumn = e.Expression | e.AggregateCall | None


@dataclass(frozen=True, slots=True)
class MatchRefusal:
    """Why a view does not answer a query."""

    reason: str


@dataclass(frozen=True, slots=True)
class ViewBlock:
    """`columns` are those of the view: an expression over the block's row, of a grouped block over
    its groups; an aggregate; None for what is computed from aggregates."""

    block: QueryBlock
    columns: tuple[ViewColumn, ...]


def build_view_block(definition: n.Node, catalog: Catalog) -> ViewBlock | MatchRefusal:
    """The definition is that of a view over base tables, simplified as it is compiled."""
    above: list[n.Project] = []
    node = definition
    while isinstance(node, n.Sort | n.Project):
        if isinstance(node, n.Project):
            above.append(node)
        node = node.input
    if isinstance(node, n.Filter) and _has_grouped_node(node.input):
        return MatchRefusal("it keeps only some of its groups (HAVING)")
    if isinstance(node, n.Limit | n.TopN):
        return MatchRefusal("it keeps only the first rows (LIMIT)")
    grouped = isinstance(node, n.Aggregate | n.Distinct)
    block = build_query_block(node if grouped else _remove_top_sorts(definition), catalog)
    if block is None:
        return MatchRefusal(f"its definition is a {type(node).__name__.lower()}")
    if any(leaf.plan is not None for leaf in block.leaves):
        return MatchRefusal("its definition is more than joins and groups of tables")
    if not grouped:
        return ViewBlock(block, block.outputs)
    columns: tuple[ViewColumn, ...] = (*block.outputs, *block.calls)
    for project in reversed(above):
        columns = tuple([_compose_column(one, columns) for one in project.expressions])
    return ViewBlock(block, columns)


def _has_grouped_node(node: n.Node) -> bool:
    while isinstance(node, n.Project | n.Filter | n.Sort):
        node = node.input
    return isinstance(node, n.Aggregate | n.Distinct)


def _remove_top_sorts(node: n.Node) -> n.Node:
    """The definition without ORDER BY, which says nothing about the rows of a view."""
    match node:
        case n.Sort():
            return _remove_top_sorts(node.input)
        case n.Project():
            return transform.rebuild_inputs(node, _remove_top_sorts)
        case _:
            return node


def _compose_column(expression: e.Expression, below: tuple[ViewColumn, ...]) -> ViewColumn:
    if isinstance(expression, e.Column):
        return below[expression.index]
    used = [below[i] for i in transform.columns_of(expression)]
    if any(one is None or isinstance(one, e.AggregateCall) for one in used):
        return None

    def compose_reference(column: e.Column) -> e.Expression:
        found = below[column.index]
        assert found is not None
        assert not isinstance(found, e.AggregateCall)
        return found

    return transform.map_columns(expression, compose_reference)
