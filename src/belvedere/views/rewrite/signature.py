"""Signatures of blocks: sets of columns by which most views are passed over without a match.

A view that has conditions on a column answers only queries with conditions on that column, and
these must imply the view's. It must have every column that a query shows, and those of conditions
that it does not guarantee. These are comparisons of sets and of single conditions. They refuse
nothing that would match: what a signature cannot tell is left to the match.

Conditions are compared over columns that are numbered by table and slot, the same in every block;
so only in blocks that have each of their tables once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.plan import expressions as e
from belvedere.plan import transform
from belvedere.plan.expression_printer import print_expression
from belvedere.sql.rules.access.implication import implies
from belvedere.views.rewrite.block import QueryBlock
from belvedere.views.rewrite.column_classes import ColumnClasses, match_column_equality, move_column
from belvedere.views.rewrite.view_block import ViewBlock

SLOTS_MAX = 1 << 16
"""Columns of a table, at most: column `slot` of a table has the number table * SLOTS_MAX + slot."""

TableColumn = tuple[int, int]
"""A column as (table, slot)."""


class NumberedCondition(NamedTuple):
    """A condition that is no equality of columns, in canonical form over numbered columns, and the
    columns of tables in it. `follows`: it may hold without another condition."""

    expression: e.Expression
    columns: frozenset[TableColumn]
    follows: bool


NumberedConditions = tuple[NumberedCondition, ...] | None
"""None: a table has several leaves."""


@dataclass(frozen=True, slots=True)
class ViewSignature:
    """Of a view: its tables with the number of their leaves, the columns that its conditions need a
    condition on, the columns that its own columns are made of, those that are equal to others
    (`replaceable`), and its conditions."""

    leaves: Counter[int]
    conditions: frozenset[TableColumn]
    available: frozenset[TableColumn]
    replaceable: frozenset[TableColumn]
    kept: NumberedConditions


@dataclass(frozen=True, slots=True)
class QuerySignature:
    """Of a query: its leaves by table, columns with conditions, columns that it has to get, those
    that are equal to others (`replaceable`), and its conditions."""

    leaves: Counter[int]
    conditions: frozenset[TableColumn]
    needed: frozenset[TableColumn]
    replaceable: frozenset[TableColumn]
    given: NumberedConditions


def build_view_signature(view: ViewBlock) -> ViewSignature:
    block = view.block
    places = _map_to_table_columns(block)
    needing = [one for one in block.conditions if not _may_follow_from_schema(one)]
    made: list[e.Expression] = []
    for column in view.columns:
        if isinstance(column, e.AggregateCall):
            made += column.arguments
            made += [] if column.filter is None else [column.filter]
        elif column is not None:
            made.append(column)
    equal = filter(_is_column_equality, block.conditions)
    return ViewSignature(
        _count_leaves_by_table(block),
        frozenset(_list_table_columns(needing, places)),
        frozenset(_list_table_columns(made, places)),
        frozenset(_list_table_columns(equal, places)),
        _number_conditions(block, places),
    )


def build_query_signature(query: QueryBlock) -> QuerySignature:
    places = _map_to_table_columns(query)
    on = [one for leaf in query.leaves for one in leaf.on or ()]
    equal = [one for one in (*query.conditions, *on) if _is_column_equality(one)]
    shown = list(query.outputs)
    for call in query.calls:
        # The count of a column that is never NULL is that of the rows.
        shown += () if call.function.name == "count" else call.arguments
    replaceable = frozenset(_list_table_columns(equal, places))
    return QuerySignature(
        _count_leaves_by_table(query),
        frozenset(_list_table_columns((*query.conditions, *on), places)),
        frozenset(_list_table_columns(shown, places)) - replaceable,
        replaceable,
        _number_conditions(query, places),
    )


class SignatureConflict(NamedTuple):
    """Why a view cannot answer a query: it has a condition on a column (`kept`), or lacks it; or
    the condition that does not follow from those of the query."""

    kept: bool
    column: TableColumn
    condition: e.Expression | None = None

    def describe_refusal(self, catalog: Catalog) -> str:
        if self.condition is not None:
            return f"it keeps only rows with {_print_condition(self.condition, catalog)}"
        name = _find_column_name(self.column, catalog)
        if self.kept:
            return f"it keeps only rows by {name}, on which the query has no condition"
        return f"it lacks {name}"


def find_signature_conflict(query: QuerySignature, view: ViewSignature) -> SignatureConflict | None:
    """Why the view cannot answer the query, if the signatures tell."""
    for column in view.conditions - query.conditions:
        return SignatureConflict(True, column)
    # What the view shows of an extra table may be equal to the column that refers to it.
    for column in query.needed - view.available - view.replaceable:
        if 0 < query.leaves[column[0]] <= view.leaves[column[0]]:
            return SignatureConflict(False, column)
    if query.given is None or view.kept is None:
        return None
    replaceable = query.replaceable | view.replaceable
    for wanted in view.kept:
        if not wanted.follows and not _may_follow_from_conditions(wanted, query.given, replaceable):
            return SignatureConflict(True, min(wanted.columns), wanted.expression)
    for wanted in query.given:
        lacking = wanted.columns - view.available
        if (
            lacking
            and not wanted.follows
            and not _may_follow_from_conditions(wanted, view.kept, replaceable)
        ):
            for column in lacking:
                if view.leaves[column[0]]:
                    return SignatureConflict(False, column)
    return None


def _may_follow_from_conditions(
    wanted: NumberedCondition,
    given: tuple[NumberedCondition, ...],
    replaceable: frozenset[TableColumn],
) -> bool:
    """Whether the condition may follow from the others: if one of its columns is equal to another,
    that is for the match to find out."""
    return not wanted.columns.isdisjoint(replaceable) or implies(
        [one.expression for one in given], wanted.expression
    )


def _may_follow_from_schema(condition: e.Expression) -> bool:
    """Whether the condition may hold without one of the query: joins, and NOT NULL."""
    return _is_column_equality(condition) or isinstance(condition, e.Test)


def _is_column_equality(condition: e.Expression) -> bool:
    return match_column_equality(condition) is not None


def _count_leaves_by_table(block: QueryBlock) -> Counter[int]:
    return Counter([leaf.relation for leaf in block.leaves if leaf.relation is not None])


def _map_to_table_columns(block: QueryBlock) -> dict[int, TableColumn]:
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


def _number_conditions(block: QueryBlock, places: dict[int, TableColumn]) -> NumberedConditions:
    """The conditions on columns of tables that are no equalities of them."""
    if len(block.tables) < sum(leaf.relation is not None for leaf in block.leaves):
        return None

    def number_column(column: e.Column) -> e.Column:
        if column.index not in places:  # of a leaf that is no table, and so in no view
            return move_column(column, -1 - column.index)
        relation, slot = places[column.index]
        return move_column(column, relation * SLOTS_MAX + slot)

    plain = ColumnClasses(())
    found = []
    for condition in block.conditions:
        if not _is_column_equality(condition):
            numbered = plain.canonical_form(transform.map_columns(condition, number_column))
            columns = frozenset(_list_table_columns([condition], places))
            follows = not columns or _may_follow_from_schema(condition)
            found.append(NumberedCondition(numbered, columns, follows))
    return tuple(found)


def _print_condition(condition: e.Expression, catalog: Catalog) -> str:
    def name_column(column: e.Column) -> e.Column:
        name = _find_column_name(divmod(column.index, SLOTS_MAX), catalog)
        return e.Column(column.index, column.type, name)

    return print_expression(transform.map_columns(condition, name_column))


def _find_column_name(column: TableColumn, catalog: Catalog) -> str:
    table = catalog.table(column[0])
    return f"{table.name}.{table.columns[column[1]].name}"
