"""Aggregates of a sub-query that read no row of their own: they are of a query around it."""

from __future__ import annotations

from dataclasses import replace

from belvedere.errors import InvalidInput
from belvedere.plan import expressions as e
from belvedere.plan.transform import has_subplan, operands, rebuild_operands
from belvedere.sql.bind.binder import AGGREGATE, Env
from belvedere.sql.bind.scope import NameScope
from belvedere.sql.parse import tree as t


def find_outer_depth(made: e.AggregateCall) -> int:
    """How far out the query is whose rows it reads, when it reads none of its own: the aggregate
    is that query's."""
    read = [*made.arguments, *(key.expression for key in made.order_by)]
    read += [] if made.filter is None else [made.filter]
    depths = {depth for one in read for depth in _collect_depths(one)}
    return min(depths, default=0)


def _collect_depths(expression: e.Expression) -> set[int]:
    """How far out the columns are that an expression reads; 0 for its own row."""
    match expression:
        case e.Column():
            return {0}
        case e.OuterColumn():
            return {expression.depth}
        case _ if has_subplan(expression):
            return {0}  # resolved inside its own query
        case _:
            return {depth for one in operands(expression) for depth in _collect_depths(one)}


def add_outer_aggregate(
    env: Env, made: e.AggregateCall, depth: int, tree: t.FunctionCall, name: str
) -> e.Expression:
    scope: NameScope | None = env.scope
    for _ in range(depth):
        assert scope is not None
        scope = scope.parent
    if scope is None or scope.found is None:
        raise InvalidInput(
            "aggregate functions are not allowed here", sqlstate="42803", position=tree.at + 1
        )
    moved = replace(
        made,
        arguments=tuple([_lower_outer_depth(one, depth) for one in made.arguments]),
        filter=None if made.filter is None else _lower_outer_depth(made.filter, depth),
        order_by=tuple(
            [
                replace(key, expression=_lower_outer_depth(key.expression, depth))
                for key in made.order_by
            ]
        ),
    )
    aggregates = scope.found.aggregates
    if moved not in aggregates:
        aggregates.append(moved)
    return e.OuterColumn(depth, AGGREGATE + aggregates.index(moved), made.type, name)


def _lower_outer_depth(expression: e.Expression, depth: int) -> e.Expression:
    if isinstance(expression, e.OuterColumn):
        if expression.depth == depth:
            return e.Column(expression.index, expression.type, expression.name)
        return replace(expression, depth=expression.depth - depth)
    return rebuild_operands(expression, lambda one: _lower_outer_depth(one, depth))
