"""Expressions over a block's row as text: its columns get the names of their tables' columns."""

from __future__ import annotations

from collections.abc import Iterable

from belvedere.catalog.catalog import Catalog
from belvedere.plan import expressions as e
from belvedere.plan import transform
from belvedere.plan.expression_printer import print_expression
from belvedere.views.rewrite.block import BlockLeaf


def print_block_expression(
    expression: e.Expression, leaves: Iterable[BlockLeaf], catalog: Catalog
) -> str:
    """The expression, with columns written as table.column."""
    kept = tuple(leaves)

    def name_column(column: e.Column) -> e.Column:
        return e.Column(
            column.index, column.type, find_block_column_name(column.index, kept, catalog)
        )

    return print_expression(transform.map_columns(expression, name_column))


def find_block_column_name(column: int, leaves: Iterable[BlockLeaf], catalog: Catalog) -> str:
    for leaf in leaves:
        if column in leaf.columns:
            place = column - leaf.offset
            if leaf.relation is not None:
                table = catalog.table(leaf.relation)
                return f"{table.name}.{table.columns[place].name}"
            if leaf.plan is not None:
                return leaf.plan.fields[place].name
    return f"column {column}"
