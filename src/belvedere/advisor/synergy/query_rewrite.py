"""Query re-writing: a query over the views selected for it.

The relations of a view are replaced by the view, and the join conditions that the view contains
are removed. The text is for people: what runs is the rewriting of the optimizer, which finds the
views by itself.
"""

from __future__ import annotations

from belvedere.advisor.synergy.candidate_views import PathView
from belvedere.advisor.synergy.overlapping_joins import list_block_joins
from belvedere.advisor.synergy.schema_graph import SchemaGraph
from belvedere.advisor.synergy.view_selection import BlockSelection, QuerySelection
from belvedere.advisor.workload.join_block import Equality, JoinBlock, LeafColumn
from belvedere.plan import expressions as e
from belvedere.plan.expression_printer import ExpressionPrinter

SHOWN_COLUMNS = 5


def rewrite_query(graph: SchemaGraph, selection: QuerySelection) -> list[str]:
    """The blocks of the query for which views were selected, one line each."""
    return [_rewrite_block(graph, block) for block in selection.blocks if block.views]


def _rewrite_block(graph: SchemaGraph, selection: BlockSelection) -> str:
    block = selection.block
    sources = [_find_source(selection, number) for number in range(len(block.leaves))]
    names = dict.fromkeys(
        source.describe_path(graph) if isinstance(source, PathView) else source
        for source in sources
    )
    removed = _list_removed_joins(block, selection)
    printer = _BlockPrinter(block)
    conditions = [
        printer.expression(one)
        for one in block.conditions
        if (equality := block.find_equality(one)) is None or equality not in removed
    ]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    columns = printer.expression_list(block.columns[:SHOWN_COLUMNS])
    more = len(block.columns) - SHOWN_COLUMNS
    columns += f", .. {more} more" if more > 0 else ""
    return f"SELECT {columns} FROM {', '.join(names)}{where}"


def _find_source(selection: BlockSelection, leaf: int) -> PathView | str:
    found = selection.block.leaves[leaf]
    views = [view for view in selection.views if found.relation in view.relations]
    return views[0] if views else found.name or "(sub-query)"


def _list_removed_joins(block: JoinBlock, selection: BlockSelection) -> set[Equality]:
    """The join conditions of which both relations belong to a single view."""
    edges = [edge for view in selection.views for edge in view.path]
    removed = set[Equality]()
    for edge, parent, child in list_block_joins(edges, block):
        for key, reference in zip(edge.key, edge.foreign_key, strict=True):
            left, right = LeafColumn(parent, key), LeafColumn(child, reference)
            removed |= {Equality(left, right), Equality(right, left)}
    return removed


class _BlockPrinter(ExpressionPrinter):
    """Columns with the name of their table where another table has one of that name."""

    def __init__(self, block: JoinBlock) -> None:
        super().__init__(exact=False)
        self._block = block
        self._names = [field.name for leaf in block.leaves for field in leaf.fields]

    def expression(self, expression: e.Expression) -> str:
        if isinstance(expression, e.Column) and self._names.count(expression.name) > 1:
            for leaf in self._block.leaves:
                if expression.index in leaf.column_range and leaf.name:
                    return f"{leaf.name}.{expression.name}"
        return super().expression(expression)
