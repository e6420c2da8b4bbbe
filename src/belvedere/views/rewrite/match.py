"""Matching: whether a view contains a query block, and what has to be done to its rows.

After Goldstein and Larson. The leaves of the view are mapped to leaves of the query of the same
table; leaves that the query lacks must be lossless joins, whose equalities are then added to the
query. The view contains the block when every condition of the view follows from those of the query:

    equalities   columns that are equal in the view are equal in the query
    the others   each is implied by some condition of the query, compared in canonical form

Conditions of the query that the view does not guarantee are left to compensate. Leaves of the query
that the view lacks stay, joined to the view's rows (`ViewAlignment.remaining`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from belvedere.catalog.catalog import Catalog
from belvedere.plan import expressions as e
from belvedere.plan import transform
from belvedere.sql.rules.access.implication import implies
from belvedere.sql.rules.push_predicates import rejects_nulls
from belvedere.types import UNKNOWN
from belvedere.views.rewrite.block import BlockLeaf, QueryBlock, map_call_expressions
from belvedere.views.rewrite.column_classes import (
    ColumnClasses,
    match_column_equality,
    move_column,
)
from belvedere.views.rewrite.column_names import print_block_expression
from belvedere.views.rewrite.lossless_joins import find_lossless_equalities, is_declared_not_null
from belvedere.views.rewrite.view_block import MatchRefusal, ViewBlock, ViewColumn

MAPPINGS_MAX = 64
"""How many ways to map the leaves of a self-join are tried."""

LeafMapping = tuple[int | None, ...]
"""For each leaf of the view the number of a leaf of the query; None: an extra leaf."""


@dataclass(frozen=True, slots=True)
class ViewAlignment:
    """A view over the row of a query, to which its extra leaves were added at the end.

    `given` are the classes of the query's conditions and of lossless joins, `kept` those of the
    view's conditions. `columns` are the view's columns over that row and `groups` its groups;
    `residual` are the conditions that the view's rows still have to satisfy besides the equalities
    of `given`, and `remaining` the leaves of the query that the view lacks.
    """

    leaves: tuple[BlockLeaf, ...]
    given: ColumnClasses
    kept: ColumnClasses
    columns: tuple[ViewColumn, ...]
    groups: tuple[e.Expression, ...]
    residual: tuple[e.Expression, ...]
    remaining: tuple[BlockLeaf, ...]


def list_leaf_mappings(query: QueryBlock, view: QueryBlock) -> Iterator[LeafMapping]:
    """Every way to map as many leaves as possible; several with self-joins only."""
    choices = []
    for relation in sorted(view.tables):
        mine = [i for i, leaf in enumerate(view.leaves) if leaf.relation == relation]
        theirs = [i for i, leaf in enumerate(query.leaves) if leaf.relation == relation]
        choices.append(list(_list_leaf_pairings(mine, theirs)))
    for chosen in itertools.islice(itertools.product(*choices), MAPPINGS_MAX):
        pairs = {here: there for one in chosen for here, there in one}
        yield tuple([pairs.get(i) for i in range(len(view.leaves))])


def _list_leaf_pairings(mine: list[int], theirs: list[int]) -> Iterator[list[tuple[int, int]]]:
    if len(mine) <= len(theirs):
        for order in itertools.permutations(theirs, len(mine)):
            yield list(zip(mine, order, strict=True))
    else:
        for chosen in itertools.permutations(mine, len(theirs)):
            yield list(zip(chosen, theirs, strict=True))


def align_view(
    query: QueryBlock, view: ViewBlock, mapping: LeafMapping, catalog: Catalog
) -> ViewAlignment | MatchRefusal:
    """The view over the query's row, or why it does not contain the query."""
    extras = [i for i, there in enumerate(mapping) if there is None]
    lossless = find_lossless_equalities(view.block, extras, catalog)
    if lossless is None:
        return MatchRefusal("its other joins may drop or repeat rows")
    shift = _ColumnShift(query, view.block, mapping)
    leaves = (*query.leaves, *(shift.move_leaf(view.block.leaves[i]) for i in extras))
    given = ColumnClasses([*query.conditions, *map(shift.move_expression, lossless)])
    moved = [shift.move_expression(one) for one in view.block.conditions]
    kept = ColumnClasses(moved)
    refusal = _find_condition_refusal(leaves, given, kept, catalog)
    if refusal is None:
        refusal = _find_outer_join_refusal(query, view.block, mapping, shift, given)
    if refusal is not None:
        return refusal
    guaranteed = kept.others
    residual = tuple(
        [one for one in given.others if not implies(guaranteed, kept.canonical_form(one))]
    )
    covered = {there for there in mapping if there is not None}
    remaining = tuple([leaf for i, leaf in enumerate(query.leaves) if i not in covered])
    columns = tuple([shift.move_column(one) for one in view.columns])
    groups = tuple([shift.move_expression(one) for one in view.block.outputs])
    return ViewAlignment(leaves, given, kept, columns, groups, residual, remaining)


class _ColumnShift:
    """Moves expressions over a view's row to the query's row, with extra leaves behind it."""

    def __init__(self, query: QueryBlock, view: QueryBlock, mapping: LeafMapping) -> None:
        self._places: dict[int, int] = {}
        width = query.width
        for leaf, there in zip(view.leaves, mapping, strict=True):
            start = width if there is None else query.leaves[there].offset
            width += leaf.width if there is None else 0
            self._places.update(zip(leaf.columns, range(start, start + leaf.width), strict=True))

    def move_expression(self, expression: e.Expression) -> e.Expression:
        return transform.map_columns(
            expression, lambda one: move_column(one, self._places[one.index])
        )

    def move_column(self, column: ViewColumn) -> ViewColumn:
        if isinstance(column, e.AggregateCall):
            return map_call_expressions(column, self.move_expression)
        return None if column is None else self.move_expression(column)

    def move_leaf(self, leaf: BlockLeaf) -> BlockLeaf:
        on = None if leaf.on is None else tuple([self.move_expression(one) for one in leaf.on])
        return replace(leaf, offset=self._places[leaf.offset], on=on)


def _find_condition_refusal(
    leaves: tuple[BlockLeaf, ...], given: ColumnClasses, kept: ColumnClasses, catalog: Catalog
) -> MatchRefusal | None:
    """A condition of the view that does not follow from those of the query."""
    for columns in kept.list_classes():
        first = given.find_representative(columns[0])
        for other in columns[1:]:
            if given.find_representative(other) != first:
                pair = [
                    print_block_expression(e.Column(i, UNKNOWN), leaves, catalog) for i in columns
                ]
                return MatchRefusal(f"it keeps only rows with {' = '.join(pair)}")
    for condition in kept.others:
        wanted = given.canonical_form(condition)
        if not implies(given.others, wanted) and not _is_satisfied_not_null_test(
            wanted, leaves, given, catalog
        ):
            text = print_block_expression(condition, leaves, catalog)
            return MatchRefusal(f"it keeps only rows with {text}")
    return None


def _is_satisfied_not_null_test(
    condition: e.Expression, leaves: tuple[BlockLeaf, ...], given: ColumnClasses, catalog: Catalog
) -> bool:
    """Whether the condition is `column IS NOT NULL` and no row of the query has a NULL there."""
    match condition:
        case e.Test(operand=e.Column() as column, truth=e.Truth.NULL, negated=True):
            return given.is_in_class(column.index) or is_never_null_column(
                column.index, leaves, catalog
            )
    return False


def is_never_null_column(column: int, leaves: tuple[BlockLeaf, ...], catalog: Catalog) -> bool:
    """Whether the column of a block's row is declared NOT NULL, and not padded by a left join."""
    for leaf in leaves:
        if column in leaf.columns and leaf.relation is not None:
            table = catalog.table(leaf.relation)
            return leaf.on is None and is_declared_not_null(table, column - leaf.offset)
    return False


def _find_outer_join_refusal(
    query: QueryBlock,
    view: QueryBlock,
    mapping: LeafMapping,
    shift: _ColumnShift,
    given: ColumnClasses,
) -> MatchRefusal | None:
    """Whether left joins of the view are those of the query, or joins whose padded rows a condition
    of the query rejects."""
    plain = ColumnClasses(())
    for leaf, there in zip(view.leaves, mapping, strict=True):
        if there is None:
            continue
        other = query.leaves[there]
        if leaf.on is None:
            if other.on is not None:
                return MatchRefusal("its join drops rows without a match, which the query keeps")
            continue
        wanted = {plain.canonical_form(shift.move_expression(one)) for one in leaf.on}
        if other.on is not None:
            if wanted != {plain.canonical_form(one) for one in other.on}:
                return MatchRefusal("its left join has another condition")
            continue
        columns = range(other.offset, other.offset + other.width)
        rejected = any(rejects_nulls(one, columns) for one in query.conditions)
        if not rejected or not all(_follows_from_query(one, given) for one in wanted):
            return MatchRefusal("its left join has another condition")
    return None


def _follows_from_query(condition: e.Expression, given: ColumnClasses) -> bool:
    """Whether the condition is true in all rows of the query."""
    pair = match_column_equality(condition)
    if pair is not None:
        return given.find_representative(pair[0]) == given.find_representative(pair[1])
    return implies(given.others, given.canonical_form(condition))
