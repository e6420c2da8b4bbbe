"""Decorrelation: sub-queries in WHERE become joins.

EXISTS and IN become semi joins, NOT EXISTS an anti join; NOT IN only where neither side can be
NULL, because a NULL makes it unknown rather than true. A scalar aggregate correlated by equality
becomes a left join with the aggregate grouped by what was compared, when there would be many outer
rows to compute it for. What does not fit stays a sub-query, which executors run as it is.
"""

from __future__ import annotations

from typing import NamedTuple

from belvedere.catalog.model import Table
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import (
    conjunction,
    conjuncts,
    has_outer_column,
    has_subplan,
    lift_plan,
    map_columns,
    operands,
    outer_references,
    rebuild_operands,
    rewrite_nodes,
    shift_columns,
)
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.equality import make_equality
from belvedere.sql.rules.estimates import estimate_rows, find_origin
from belvedere.sql.rules.subqueries.scalar_aggregates import join_scalar_aggregate


def decorrelate(plan: n.Node, context: OptimizerContext) -> n.Node:
    return rewrite_nodes(plan, n.Filter, lambda node: _decorrelate_filter(node, context))


def _decorrelate_filter(node: n.Filter, context: OptimizerContext) -> n.Node:
    source = node.input
    width = len(source.fields)
    rest: list[e.Expression] = []
    conditions = conjuncts(node.condition)
    plain = conjunction([one for one in conditions if not has_subplan(one)])
    likely = estimate_rows(source if plain is None else n.Filter(source, plain), context)
    for one in conditions:
        joined = _join_subquery(one, source, context)
        if joined is None:
            scalar = join_scalar_aggregate(one, source, likely, context)
            if scalar is None:
                rest.append(one)
                continue
            source, one = scalar
            rest.append(one)
        else:
            source = joined
    if source is node.input:
        return node
    condition = conjunction(rest)
    made = source if condition is None else n.Filter(source, condition)
    return _project_first_columns(made, width, node.fields)


def _project_first_columns(node: n.Node, width: int, fields: n.Fields) -> n.Node:
    if len(node.fields) == width:
        return node
    columns = tuple(e.Column(i, field.type, field.name) for i, field in enumerate(fields))
    return n.Project(node, columns, fields)


class SubqueryPullUp(NamedTuple):
    """A sub-query's plan at the level of the rows around it, and the conditions that link them.

    Conditions are over (outer row, plan's row) with the outer row `width` columns wide.
    """

    plan: n.Node
    conditions: list[e.Expression]


def _join_subquery(
    condition: e.Expression, source: n.Node, context: OptimizerContext
) -> n.Node | None:
    """The semi or anti join that a condition means, or None."""
    match condition:
        case e.Exists():
            kind = n.JoinKind.ANTI if condition.negated else n.JoinKind.SEMI
            pulled = pull_up_conditions(_strip_for_exists(condition.plan), len(source.fields))
            if pulled is None:
                return None
            right = decorrelate(pulled.plan, context)
            return n.Join(kind, source, right, residual=conjunction(pulled.conditions))
        case e.QuantifiedSubquery():
            return _join_in_subquery(condition, source, context)
        case _:
            return None


def _strip_for_exists(plan: n.Node) -> n.Node:
    """What decides whether there is a row at all."""
    while True:
        match plan:
            case n.Project() | n.Sort():
                plan = plan.input
            case n.Distinct():
                plan = plan.input
            case n.Limit(count=e.Literal(value=int(count)), offset=None) if count > 0:
                plan = plan.input
            case _:
                return plan


def _join_in_subquery(
    condition: e.QuantifiedSubquery, source: n.Node, context: OptimizerContext
) -> n.Node | None:
    names = {one.name for one in condition.operators}
    is_in = condition.quantifier is e.Quantifier.ANY and names == {"="}
    not_in = condition.quantifier is e.Quantifier.ALL and names == {"<>"}
    if not is_in and not (not_in and len(condition.operands) == 1):
        return None
    if any(has_subplan(one) for one in condition.operands):
        return None
    plan, values = _split_projection(condition.plan)
    if not_in and not _is_never_null(condition, plan, values, source, context):
        return None
    width = len(source.fields)
    pulled = pull_up_conditions(plan, width)
    if pulled is None or any(has_outer_column(one) for one in values):
        return None
    tests: list[e.Expression] = []
    for operand, value, operator in zip(condition.operands, values, condition.operators):
        theirs = shift_columns(value, width)
        if is_in:
            tests.append(e.Call(operator, (operand, theirs), condition.type))
        else:
            tests.append(make_equality(operand, theirs))
    kind = n.JoinKind.SEMI if is_in else n.JoinKind.ANTI
    right = decorrelate(pulled.plan, context)
    return n.Join(kind, source, right, residual=conjunction(tests + pulled.conditions))


def _split_projection(plan: n.Node) -> tuple[n.Node, tuple[e.Expression, ...]]:
    """The rows behind a plan's last projection, and its columns over them."""
    if isinstance(plan, n.Sort):
        plan = plan.input
    if isinstance(plan, n.Project) and not any(has_subplan(one) for one in plan.expressions):
        return plan.input, plan.expressions
    columns = tuple(e.Column(i, f.type, f.name) for i, f in enumerate(plan.fields))
    return plan, columns


def _is_never_null(
    condition: e.QuantifiedSubquery,
    plan: n.Node,
    values: tuple[e.Expression, ...],
    source: n.Node,
    context: OptimizerContext,
) -> bool:
    pairs = [(condition.operands[0], source), (values[0], plan)]
    return all(is_not_null(expression, node, context) for expression, node in pairs)


def is_not_null(expression: e.Expression, node: n.Node, context: OptimizerContext) -> bool:
    """Whether the value cannot be NULL, as far as columns tell."""
    if isinstance(expression, e.Literal):
        return expression.value is not None
    if _has_outer_join(node):
        return False
    found = find_origin(expression, node)
    if found is None:
        return False
    table = context.catalog.get(found[0])
    if not isinstance(table, Table):
        return False
    return any(one.slot == found[1] and one.not_null for one in table.columns)


def _has_outer_join(node: n.Node) -> bool:
    match node:
        case n.Join():
            inner = node.kind in (n.JoinKind.INNER, n.JoinKind.SEMI, n.JoinKind.ANTI)
            return not inner or _has_outer_join(node.left) or _has_outer_join(node.right)
        case n.Filter() | n.Project() | n.Sort() | n.Limit() | n.Distinct():
            return _has_outer_join(node.input)
        case n.Scan():
            return False
        case _:
            return True


def pull_up_conditions(plan: n.Node, width: int) -> SubqueryPullUp | None:
    """The plan without its correlated conditions; None when it is correlated elsewhere too."""
    found: list[e.Expression] = []
    while isinstance(plan, n.Filter):
        kept: list[e.Expression] = []
        for one in conjuncts(plan.condition):
            if _reads_outer_row(one):
                if has_subplan(one):
                    return None
                found.append(_map_to_join_row(one, width))
            else:
                kept.append(one)
        inner = plan.input
        condition = conjunction(kept)
        if condition is not None:
            plan = n.Filter(inner, condition)
            break
        plan = inner
    if any(depth == 1 for depth, _ in outer_references(plan)):
        return None
    return SubqueryPullUp(lift_plan(plan, -1), found)


def _reads_outer_row(expression: e.Expression) -> bool:
    """Whether the expression reads the row just around its plan."""
    if isinstance(expression, e.OuterColumn):
        return expression.depth == 1
    if has_subplan(expression):
        probe = n.Filter(n.EMPTY_ROW, expression)
        return any(depth == 1 for depth, _ in outer_references(probe))
    return any(_reads_outer_row(one) for one in operands(expression))


def _map_to_join_row(expression: e.Expression, width: int) -> e.Expression:
    """A condition of the sub-query over (outer row, its row)."""
    moved = map_columns(expression, lambda one: e.Column(one.index + width, one.type, one.name))

    def lower_depth(one: e.Expression) -> e.Expression:
        if isinstance(one, e.OuterColumn):
            if one.depth == 1:
                return e.Column(one.index, one.type, one.name)
            return e.OuterColumn(one.depth - 1, one.index, one.type, one.name)
        return rebuild_operands(one, lower_depth)

    return lower_depth(moved)
