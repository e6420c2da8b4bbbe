"""Signatures of blocks: sets of columns by which most views are passed over without a match.

A view that has conditions on a column answers only queries with conditions on that column, and it
must have every column that a query shows. Both are comparisons of sets. They refuse nothing that
would match: what a signature cannot tell is left to the match.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.plan import expressions as e
from belvedere.plan import transform
from belvedere.views.rewrite.block import QueryBlock
from belvedere.views.rewrite.column_classes import match_column_equality
from belvedere.views.rewrite.view_block import ViewBlock

TableColumn = tuple[int, int]
"""A column as (table, slot)."""


@dataclass(frozen=True, slots=True)
class ViewSignature:
    """Of a view: its tables with the number of their leaves, the columns that its conditions need a
    condition on, and the columns that its own columns are made of."""

    leaves: Counter[int]
    conditions: frozenset[TableColumn]
    available: frozenset[TableColumn]


@dataclass(frozen=True, slots=True)
class QuerySignature:
    """Of a query: its leaves by table, columns with conditions, and columns that it has to get."""

    leaves: Counter[int]
    conditions: frozenset[TableColumn]
    needed: frozenset[TableColumn]


def build_view_signature(view: ViewBlock) -> ViewSignature:
    places = _locate_columns(view.block)
    needing = [one for one in view.block.conditions if not _may_follow_from_schema(one)]
    made: list[e.Expression] = []
    for column in view.columns:
        if isinstance(column, e.AggregateCall):
            made += column.arguments
            made += [] if column.filter is None else [column.filter]
        elif column is not None:
            made.append(column)
    return ViewSignature(
        _count_leaves(view.block),
        frozenset(_list_table_columns(needing, places)),
        frozenset(_list_table_columns(made, places)),
    )


def build_query_signature(query: QueryBlock) -> QuerySignature:
    places = _locate_columns(query)
    on = [one for leaf in query.leaves for one in leaf.on or ()]
    equal = [one for one in (*query.conditions, *on) if _is_equality(one)]
    shown = list(query.outputs)
    for call in query.calls:
        # The count of a column that is never NULL is that of the rows.
        shown += () if call.function.name == "count" else call.arguments
    replaceable = frozenset(_list_table_columns(equal, places))
    return QuerySignature(
        _count_leaves(query),
        frozenset(_list_table_columns((*query.conditions, *on), places)),
        frozenset(_list_table_columns(shown, places)) - replaceable,
    )


class SignatureConflict(NamedTuple):
    """Why a view cannot answer a query: it has a condition on a column (`kept`), or lacks it."""

    kept: bool
    column: TableColumn

    def describe_refusal(self, catalog: Catalog) -> str:
        relation, slot = self.column
        table = catalog.table(relation)
        name = f"{table.name}.{table.columns[slot].name}"
        if self.kept:
            return f"it keeps only rows by {name}, on which the query has no condition"
        return f"it lacks {name}"


def find_signature_conflict(query: QuerySignature, view: ViewSignature) -> SignatureConflict | None:
    """Why the view cannot answer the query, if the signatures tell."""
    for column in view.conditions - query.conditions:
        return SignatureConflict(True, column)
    for column in query.needed - view.available:
        if 0 < query.leaves[column[0]] <= view.leaves[column[0]]:
            return SignatureConflict(False, column)
    return None


def _may_follow_from_schema(condition: e.Expression) -> bool:
    """Whether the condition may hold without one of the query: joins, and NOT NULL."""
    return _is_equality(condition) or isinstance(condition, e.Test)


def _is_equality(condition: e.Expression) -> bool:
    return match_column_equality(condition) is not None


def _count_leaves(block: QueryBlock) -> Counter[int]:
    return Counter([leaf.relation for leaf in block.leaves if leaf.relation is not None])


def _locate_columns(block: QueryBlock) -> dict[int, TableColumn]:
    return {
        column: (leaf.relation, column - leaf.offset)
        for leaf in block.leaves
        if leaf.relation is not None
        for column in leaf.columns
    }


def _list_table_columns(
    expressions: Iterable[e.Expression], places: dict[int, TableColumn]
) -> Iterator[TableColumn]:
    for expression in expressions:
        for column in transform.columns_of(expression):
            if column in places:
                yield places[column]
