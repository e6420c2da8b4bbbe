"""GROUP BY, aggregates and HAVING: expressions moved from input rows to group rows.

An expression of a grouped query is bound over the input row first. Here every part that equals
a grouping expression, and every aggregate, becomes a column of the group row; a column that is left
over is 42803. Grouping by a table's whole primary key settles its other columns, as in PostgreSQL:
they are simply grouped by too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

from belvedere.catalog.model import Table
from belvedere.errors import InvalidInput
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import (
    lift_expression,
    map_outer_columns,
    rebuild_operands,
    with_subplan,
)
from belvedere.sql.bind.binder import AGGREGATE, GROUPING, WINDOW, SelectCalls
from belvedere.sql.bind.scope import NameScope
from belvedere.sql.parse import tree as t
from belvedere.types import UNCOMPARED_KINDS

SETS_MAX = 4096
Bind = Callable[[t.Expr], e.Expression]


@dataclass(frozen=True, slots=True)
class GroupingKeys:
    """`sets` are of ordinals into `expressions`; None: plain GROUP BY."""

    expressions: tuple[e.Expression, ...]
    sets: tuple[tuple[int, ...], ...] | None


def bind_groups(items: tuple[t.GroupItem, ...], distinct: bool, bind: Bind) -> GroupingKeys:
    """GROUP BY: the expressions, and the sets that all items together make."""
    expressions: list[e.Expression] = []

    def find_ordinals(tree: t.Expr) -> tuple[int, ...]:
        trees = tree.items if isinstance(tree, t.RowItems) else (tree,)
        return tuple([_add_expression(expressions, bind(one), one.at) for one in trees])

    alternatives = [_list_alternatives(item, find_ordinals) for item in items]
    if not any(isinstance(item, t.GroupingSets) for item in items):
        return GroupingKeys(tuple(expressions), None)
    count = 1
    for one in alternatives:
        count *= len(one)
        if count > SETS_MAX:
            raise InvalidInput("too many grouping sets", sqlstate="54000", maximum=SETS_MAX)
    sets = [
        tuple(dict.fromkeys(itertools.chain.from_iterable(choice)))
        for choice in itertools.product(*alternatives)
    ]
    if distinct:
        sets = [tuple(one) for one in dict.fromkeys(tuple(sorted(one)) for one in sets)]
    return GroupingKeys(tuple(expressions), tuple(sets))


def _add_expression(expressions: list[e.Expression], expression: e.Expression, at: int) -> int:
    if expression.type.kind in UNCOMPARED_KINDS:
        raise InvalidInput(
            "could not identify an equality operator", sqlstate="42883", position=at + 1
        )
    if expression not in expressions:
        expressions.append(expression)
    return expressions.index(expression)


def _list_alternatives(
    item: t.GroupItem, ordinal: Callable[[t.Expr], tuple[int, ...]]
) -> list[tuple[int, ...]]:
    if not isinstance(item, t.GroupingSets):
        return [ordinal(item)]
    if item.word == "sets":
        return [one for part in item.items for one in _list_part_alternatives(part, ordinal)]
    parts = []
    for part in item.items:
        if isinstance(part, t.GroupingSets):
            raise InvalidInput("syntax error", sqlstate="42601", position=part.at + 1)
        parts.append(tuple(x for one in part for x in ordinal(one)))
    if item.word == "rollup":
        return [_concatenate_sets(parts[:size]) for size in range(len(parts), -1, -1)]
    if len(parts) > 12:
        raise InvalidInput("cube is limited to 12 elements", sqlstate="54011")
    return [
        _concatenate_sets([part for part, chosen in zip(parts, choice) if chosen])
        for choice in itertools.product((True, False), repeat=len(parts))
    ]


def _list_part_alternatives(
    part: tuple[t.Expr, ...] | t.GroupingSets, ordinal: Callable[[t.Expr], tuple[int, ...]]
) -> list[tuple[int, ...]]:
    if isinstance(part, t.GroupingSets):
        return _list_alternatives(part, ordinal)
    return [tuple(x for one in part for x in ordinal(one))]


def _concatenate_sets(parts: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(itertools.chain.from_iterable(parts))


# -- moving expressions to the group row -----------------------------------------------------------


class GroupRowRewriter:
    """Turns expressions over the input row into expressions over the row of an Aggregate."""

    def __init__(
        self, scope: NameScope, groups: GroupingKeys, found: SelectCalls, read: set[int]
    ) -> None:
        self.scope = scope
        self.groups = list(groups.expressions)
        self.sets = groups.sets
        self.found = found
        if self.sets is None:
            self._add_dependent_columns(read)
        self.places = {expression: i for i, expression in enumerate(self.groups)}

    def _add_dependent_columns(self, read: set[int]) -> None:
        """Columns that are read and settled by a primary key that is grouped by."""
        fields = self.scope.relation.node.fields
        grouped = {one.index for one in self.groups if isinstance(one, e.Column)}
        for source in self.scope.relation.sources:
            table = source.table
            if not isinstance(table, Table) or not table.primary_key_name:
                continue
            live = [column.slot for column in table.columns if not column.dropped]
            key = {source.start + live.index(slot) for slot in table.primary_key}
            if not key <= grouped:
                continue
            for i, name in enumerate(source.names):
                index = source.start + i
                if name and index in read and index not in grouped:
                    self.groups.append(e.Column(index, fields[index].type, name))

    def rewrite_expression(self, expression: e.Expression) -> e.Expression:
        place = self.places.get(expression)
        if place is not None:
            return e.Column(place, expression.type, _label_expression(expression))
        if isinstance(expression, e.Column):
            return self._rewrite_column(expression)
        new = rebuild_operands(expression, self.rewrite_expression)

        def rewrite_outer(reference: e.OuterColumn, at: int) -> e.Expression:
            if reference.depth != at:
                return reference
            column = e.Column(reference.index, reference.type, reference.name)
            return lift_expression(self.rewrite_expression(column), at)

        return with_subplan(new, lambda plan: map_outer_columns(plan, rewrite_outer))

    def _rewrite_column(self, column: e.Column) -> e.Expression:
        index = column.index
        if index >= WINDOW:
            return column
        width = len(self.groups)
        if index >= GROUPING:
            return replace(column, index=width + len(self.found.aggregates) + index - GROUPING)
        if index >= AGGREGATE:
            return replace(column, index=width + index - AGGREGATE)
        place = self.scope.places.get(index)
        raise InvalidInput(
            "column must appear in the group by clause or be used in an aggregate function",
            sqlstate="42803",
            position=None if place is None else place + 1,
            column=column.name,
        )

    def build_aggregate(self, node: n.Node) -> n.Aggregate:
        fields = [n.Field(_label_expression(one) or "group", one.type) for one in self.groups]
        fields += [n.Field(one.function.name, one.type) for one in self.found.aggregates]
        groupings = [self._find_group_ordinals(one) for one in self.found.groupings]
        fields += [n.Field("grouping", n.GROUPING_TYPE) for _ in groupings]
        return n.Aggregate(
            node,
            tuple(self.groups),
            tuple(self.found.aggregates),
            tuple(fields),
            self.sets,
            tuple(groupings),
        )

    def _find_group_ordinals(self, arguments: tuple[e.Expression, ...]) -> tuple[int, ...]:
        try:
            return tuple([self.places[one] for one in arguments])
        except KeyError:
            raise InvalidInput(
                "arguments to grouping must be grouping expressions", sqlstate="42803"
            ) from None


def _label_expression(expression: e.Expression) -> str:
    match expression:
        case e.Column() | e.OuterColumn():
            return expression.name
        case e.Call():
            return expression.function.name
        case _:
            return ""
