"""Exact match: a query, or a part of one, that repeats the definition of a view.

What a block cannot say (HAVING, outer joins, EXISTS, windows, set operations, LIMIT) is compared
node for node, without the names that people gave to columns and tables. The order of a view's rows
says nothing about them, so an ORDER BY at the top of a definition does not count; with a LIMIT it
does, and such a view answers queries that want no more of the same first rows.

    view   SELECT .. GROUP BY g HAVING count(*) > 1
    query  SELECT .. GROUP BY g HAVING count(*) > 1 ORDER BY 2    the view's rows, sorted

    view   SELECT .. ORDER BY x LIMIT 100
    query  SELECT .. ORDER BY x LIMIT 10 OFFSET 20                the view's rows, sorted, limited
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.fields import Field
from belvedere.plan.functions.core.function import Function
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.fold_constants import fold_expression, fold_nulls
from belvedere.sql.rules.prune_columns import prune_columns
from belvedere.sql.rules.push_predicates import push_predicates
from belvedere.sql.rules.simplify_projects import simplify_projects
from belvedere.sql.rules.subqueries.decorrelate import decorrelate
from belvedere.sql.rules.subqueries.inline_ctes import inline_ctes
from belvedere.views.rewrite.compensate import Compensation, ViewRelation
from belvedere.views.rewrite.roll_up import ORDER_DEPENDENT

_NAMED = (e.Column, e.OuterColumn, n.Scan, n.CteScan, n.RecursiveUnion, n.Cte)
"""What has a name that is for people only."""


@dataclass(frozen=True, slots=True)
class ExactMatchDefinition:
    """The definition of a view as queries are compared with it: `key` is that of its rows; `rows`
    how many of them the view has at most, the first ones by the order that `key` contains."""

    key: Hashable
    tables: frozenset[int]
    rows: int | None = None


def build_exact_match_definition(plan: n.Node) -> ExactMatchDefinition | None:
    """None: the definition leaves open which rows it has, or in which order its aggregates see
    theirs, or its rows are the first ones by columns that it does not show."""
    if any(isinstance(one, n.VirtualScan | n.ForeignScan) for one in transform.walk_plan(plan)):
        return None
    tables = frozenset(
        [one.relation for one in transform.walk_plan(plan) if isinstance(one, n.Scan)]
    )
    while isinstance(plan, n.Sort):
        plan = plan.input
    if any(map(_depends_on_order, transform.walk_plan(plan))):
        return None
    if isinstance(plan, n.Limit):
        count, skipped = _fold_limit_and_offset(plan)
        if count is None or skipped or not isinstance(plan.input, n.Sort):
            return None
        return ExactMatchDefinition(make_plan_key(plan.input), tables, count)
    if any(isinstance(one, n.Limit) for one in transform.walk_plan(plan)):
        return None
    return ExactMatchDefinition(make_plan_key(plan), tables)


def _depends_on_order(node: n.Node) -> bool:
    if isinstance(node, n.Distinct):
        return node.on is not None
    calls = node.aggregates if isinstance(node, n.Aggregate) else ()
    return any(one.function.name in ORDER_DEPENDENT and not one.order_by for one in calls)


def _fold_limit_and_offset(limit: n.Limit) -> tuple[int | None, int]:
    """The rows that a limit lets through and those it skips; None for what is not a constant."""
    count, offset = (
        None if one is None else fold_expression(one) for one in (limit.count, limit.offset)
    )
    if limit.with_ties or not isinstance(count, e.Literal) or count.value is None:
        return None, 0
    if offset is None:
        return int(count.value), 0
    if not isinstance(offset, e.Literal):
        return None, 0
    return int(count.value), int(offset.value or 0)


# -- matching --------------------------------------------------------------------------------------


class ExactMatchSites:
    """The nodes of a plan by what they are compared by."""

    def __init__(self, plan: n.Node) -> None:
        self._nodes: dict[Hashable, list[n.Node]] = {}
        for node in transform.walk_plan(plan):
            if isinstance(node, n.Limit):
                self._add_node(make_plan_key(node.input), node)
            elif not isinstance(node, n.Scan | n.Sort):
                self._add_node(make_plan_key(node), node)

    def _add_node(self, key: Hashable, node: n.Node) -> None:
        self._nodes.setdefault(key, []).append(node)

    def list_answered_nodes(
        self, definition: ExactMatchDefinition, rows: ViewRelation
    ) -> Iterator[tuple[n.Node, Compensation]]:
        """The nodes that the view answers, each with what is made of its rows."""
        for node in self._nodes.get(definition.key, ()):
            if definition.rows is None:
                if not isinstance(node, n.Limit):
                    yield node, Compensation(_build_view_scan(node, rows), ())
            elif isinstance(node, n.Limit) and isinstance(node.input, n.Sort):
                count, skipped = _fold_limit_and_offset(node)
                if count is not None and count + skipped <= definition.rows:
                    sort = replace(node.input, input=_build_view_scan(node, rows))
                    steps = ("sorted", f"the first {count}")[: 1 + (count < definition.rows)]
                    yield node, Compensation(replace(node, input=sort), steps)


def _build_view_scan(node: n.Node, rows: ViewRelation) -> n.Node:
    scan = n.Scan(rows.relation, rows.name, tuple(range(len(rows.fields))), rows.fields)
    columns = tuple([e.Column(i, one.type, one.name) for i, one in enumerate(rows.fields)])
    return n.Project(scan, columns, node.fields)


# -- keys ------------------------------------------------------------------------------------------


def make_plan_key(part: Any) -> Hashable:
    """What is equal for plans, and for parts of them, that mean the same but for names. Constants
    that are equal and look different (1.0 and 1.00) differ."""
    match part:
        case tuple() if isinstance(part, Field):
            return part.type
        case e.Literal():
            return ("Literal", type(part.value).__name__, repr(part.value), part.type)
        case Function():
            return part
        case tuple():
            names = isinstance(part, _NAMED)
            values = part if not names else part._replace(name="")  # type: ignore[attr-defined]
            return tuple([make_plan_key(one) for one in values])
        case _ if is_dataclass(part) and type(part).__module__.startswith("belvedere.plan."):
            skipped = "name" if isinstance(part, _NAMED) else "names"
            values = [
                make_plan_key(getattr(part, one.name))
                for one in fields(part)
                if one.name != skipped
            ]
            return (type(part).__name__, *values)
        case _:
            return part  # type: ignore[no-any-return]


# -- the forms in which plans are compared ---------------------------------------------------------


_RULES = (
    inline_ctes,
    decorrelate,
    push_predicates,
    simplify_projects,
    prune_columns,
    simplify_projects,
)


def simplify_for_block_match(plan: n.Node, context: OptimizerContext) -> n.Node:
    """The plan as blocks are found in it."""
    for rule in _RULES:
        plan = rule(plan, context)
    return plan


def simplify_for_exact_match(plan: n.Node, context: OptimizerContext) -> n.Node:
    """The plan as it is compared with whole definitions. These are simplified before they are
    compiled, and a second pass finds something to do in what the first one has joined: two passes
    give both the same form."""
    for _ in range(2):
        plan = _prune_subplans(
            simplify_for_block_match(fold_nulls(plan, context), context), context
        )
    return plan


def _prune_subplans(plan: n.Node, context: OptimizerContext) -> n.Node:
    def prune_subplan(inner: n.Node) -> n.Node:
        return _prune_subplans(prune_columns(inner, context), context)

    return transform.map_subplans(plan, prune_subplan)
