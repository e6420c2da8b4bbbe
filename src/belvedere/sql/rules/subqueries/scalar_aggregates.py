"""A correlated scalar aggregate as a left join with the grouped aggregate.

    total > (SELECT avg(total) FROM orders i WHERE i.customer = o.customer)

becomes a join of `o` with `SELECT customer, avg(total) FROM orders GROUP BY customer`. That reads
the inner table once instead of once per outer row, which pays only when there are many outer rows
or no index that finds the inner rows; so the estimates decide.
"""

from __future__ import annotations

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import (
    conjunction,
    conjuncts,
    has_outer_column,
    has_subplan,
    lift_plan,
    operands,
    outer_references,
    rebuild_operands,
)
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.estimates import estimate_rows, find_origin

FEW_ROWS = 50.0


def join_scalar_aggregate(
    condition: e.Expression, source: n.Node, outer_rows: float, context: OptimizerContext
) -> tuple[n.Node, e.Expression] | None:
    """The joined source, and the condition reading the joined column; None: left as it is."""
    subquery = _find_scalar(condition)
    if subquery is None:
        return None
    grouped = _group_subquery(subquery.plan, outer_rows, context)
    if grouped is None:
        return None
    plan, keys, value = grouped
    place = len(source.fields) + value
    joined = n.Join(n.JoinKind.LEFT, source, plan, keys)
    column = e.Column(place, subquery.type, plan.fields[value].name)

    def replace_subquery(one: e.Expression) -> e.Expression:
        return column if one is subquery else rebuild_operands(one, replace_subquery)

    return joined, replace_subquery(condition)


def _find_scalar(condition: e.Expression) -> e.ScalarSubquery | None:
    """The one scalar sub-query of a comparison."""
    if not isinstance(condition, e.Call):
        return None
    found = _collect_subqueries(condition)
    if len(found) == 1 and isinstance(found[0], e.ScalarSubquery):
        return found[0]
    return None


def _collect_subqueries(expression: e.Expression) -> list[e.Expression]:
    own = [expression] if has_subplan(expression) and not operands(expression) else []
    return own + [x for one in operands(expression) for x in _collect_subqueries(one)]


def _group_subquery(
    plan: n.Node, outer_rows: float, context: OptimizerContext
) -> tuple[n.Node, tuple[n.JoinKey, ...], int] | None:
    """The plan grouped by what the outer row is compared with, the join keys, the value's place."""
    if not isinstance(plan, n.Project) or len(plan.expressions) != 1:
        return None
    aggregate = plan.input
    if not isinstance(aggregate, n.Aggregate) or aggregate.groups or aggregate.groupings:
        return None
    if any(call.function.name == "count" for call in aggregate.aggregates):
        return None  # of no rows a count is 0, not NULL, which the join would give
    if not _is_null_without_rows(plan.expressions[0]):
        return None
    split = _split_correlation(aggregate.input)
    if split is None:
        return None
    inner, pairs = split
    if not _is_worthwhile(inner, pairs, outer_rows, context):
        return None
    if any(depth == 1 for depth, _ in outer_references(n.Project(inner, plan.expressions, ()))):
        return None
    groups = tuple([mine for mine, _ in pairs])
    fields = tuple([n.Field("key", one.type) for one in groups])
    shifted = n.Aggregate(inner, groups, aggregate.aggregates, fields + aggregate.fields)
    count = len(groups)
    value = shift_columns(plan.expressions[0], count)
    columns = tuple([e.Column(i, one.type, "key") for i, one in enumerate(groups)])
    made = n.Project(shifted, (*columns, value), (*fields, plan.fields[0]))
    keys = tuple([n.JoinKey(theirs, columns[i]) for i, (_, theirs) in enumerate(pairs)])
    return lift_plan(made, -1), keys, count


def shift_columns(expression: e.Expression, offset: int) -> e.Expression:
    if isinstance(expression, e.Column):
        return e.Column(expression.index + offset, expression.type, expression.name)
    return rebuild_operands(expression, lambda one: shift_columns(one, offset))


def _is_null_without_rows(expression: e.Expression) -> bool:
    """Whether the value is NULL when every aggregate is."""
    match expression:
        case e.Column():
            return True
        case e.Call():
            strict = expression.function.strict
            return strict and any(_is_null_without_rows(one) for one in expression.arguments)
        case e.Cast():
            return expression.function.strict and _is_null_without_rows(expression.operand)
        case _:
            return False


Pairs = list[tuple[e.Expression, e.Expression]]


def _split_correlation(plan: n.Node) -> tuple[n.Node, Pairs] | None:
    """The input without `mine = theirs` conditions, and those pairs; theirs over the outer row."""
    if not isinstance(plan, n.Filter):
        return None
    pairs: Pairs = []
    kept: list[e.Expression] = []
    for one in conjuncts(plan.condition):
        pair = _match_correlation(one)
        if pair is not None:
            pairs.append(pair)
        else:
            kept.append(one)
    if not pairs:
        return None
    condition = conjunction(kept)
    return (plan.input if condition is None else n.Filter(plan.input, condition)), pairs


def _match_correlation(condition: e.Expression) -> tuple[e.Expression, e.Expression] | None:
    if not isinstance(condition, e.Call) or condition.function.name != "=":
        return None
    left, right = condition.arguments
    if left.type.kind is not right.type.kind or has_subplan(condition):
        return None
    if isinstance(right, e.OuterColumn) and right.depth == 1 and not has_outer_column(left):
        return left, e.Column(right.index, right.type, right.name)
    if isinstance(left, e.OuterColumn) and left.depth == 1 and not has_outer_column(right):
        return right, e.Column(left.index, left.type, left.name)
    return None


def _is_worthwhile(
    inner: n.Node, pairs: Pairs, outer_rows: float, context: OptimizerContext
) -> bool:
    if outer_rows <= FEW_ROWS:
        return False
    inner_rows = estimate_rows(inner, context)
    per_row = inner_rows
    if any(_is_leading_key_column(mine, inner, context) for mine, _ in pairs):
        per_row = 20.0
    return outer_rows * per_row > inner_rows * 2


def _is_leading_key_column(
    expression: e.Expression, node: n.Node, context: OptimizerContext
) -> bool:
    """Whether the column is the first of a primary key or index, so that rows are found by it."""
    found = find_origin(expression, node)
    if found is None:
        return False
    table = context.catalog.get(found[0])
    primary = getattr(table, "primary_key", ())
    if primary and primary[0] == found[1]:
        return True
    return any(one.parts[0].slot == found[1] for one in context.catalog.table_indexes(found[0]))
