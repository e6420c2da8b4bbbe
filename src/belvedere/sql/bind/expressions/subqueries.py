"""Binds queries inside expressions: scalar, EXISTS, IN, ANY, ALL, ARRAY."""

from __future__ import annotations

from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.sql.bind.binder import Env
from belvedere.sql.bind.expressions.coerce import make_call
from belvedere.sql.parse import tree as t
from belvedere.types import Kind, array_of


def bind_subquery(env: Env, query: t.QueryTree) -> n.Node:
    scope = env.scope
    return env.binder.rules.query(env.binder, query, scope, dict(scope.ctes), False)


def bind_scalar(env: Env, tree: t.ScalarQuery) -> e.Expression:
    plan = bind_subquery(env, tree.query)
    _require_one_column(plan, tree.at)
    return e.ScalarSubquery(plan, plan.fields[0].type)


def bind_exists(env: Env, tree: t.ExistsQuery) -> e.Expression:
    return e.Exists(bind_subquery(env, tree.query))


def bind_array(env: Env, tree: t.ArrayQuery) -> e.Expression:
    plan = bind_subquery(env, tree.query)
    _require_one_column(plan, tree.at)
    if plan.fields[0].type.element is not None:
        raise Unsupported("array of arrays", position=tree.at + 1)
    return e.ArraySubquery(plan, array_of(plan.fields[0].type))


def _require_one_column(plan: n.Node, at: int) -> None:
    if len(plan.fields) != 1:
        raise InvalidInput(
            "subquery must return only one column", sqlstate="42601", position=at + 1
        )


def bind_in_query(env: Env, tree: t.InQuery) -> e.Expression:
    """NOT IN is `<> ALL`."""
    quantifier, operator = ("all", "<>") if tree.negated else ("any", "=")
    return bind_quantified(env, quantifier, operator, tree.operand, tree.query, tree.at)


def bind_quantified(
    env: Env, quantifier: str, operator: str, operand: t.Expr, query: t.QueryTree, at: int
) -> e.Expression:
    items = operand.items if isinstance(operand, t.RowItems) else (operand,)
    if len(items) > 1 and (operator, quantifier) not in (("=", "any"), ("<>", "all")):
        raise Unsupported("row comparison with a sub-query", position=at + 1, operator=operator)
    plan = bind_subquery(env, query)
    if isinstance(operand, t.Constant) and operand.kind == "bits":
        # No column is a bit string, so there is nothing to compare it with.
        raise InvalidInput("operator does not exist", sqlstate="42883", position=at + 1)
    operands = [env.binder.rules.expression(env, one) for one in items]
    if len(plan.fields) != len(operands):
        few = "few" if len(plan.fields) < len(operands) else "many"
        raise InvalidInput(f"subquery has too {few} columns", sqlstate="42601", position=at + 1)
    calls = _make_comparisons(env, operator, operands, plan, at)
    plan = _cast_columns(plan, [one.arguments[1] for one in calls])
    return e.QuantifiedSubquery(
        e.Quantifier(quantifier),
        tuple([one.function for one in calls]),
        tuple([one.arguments[0] for one in calls]),
        plan,
    )


def _make_comparisons(
    env: Env, operator: str, operands: list[e.Expression], plan: n.Node, at: int
) -> list[e.Call]:
    found = []
    for i, (operand, field) in enumerate(zip(operands, plan.fields)):
        one = make_call(env.binder, operator, (operand, e.Column(i, field.type, field.name)), at)
        if one.type.kind is not Kind.BOOLEAN:
            raise InvalidInput("operator must yield boolean", sqlstate="42804", position=at + 1)
        found.append(one)
    return found


def _cast_columns(plan: n.Node, columns: list[e.Expression]) -> n.Node:
    """The plan with its columns cast as the comparison requires."""
    if all(isinstance(one, e.Column) for one in columns):
        return plan
    fields = tuple(n.Field(old.name, one.type) for old, one in zip(plan.fields, columns))
    return n.Project(plan, tuple(columns), fields)


def compare_with_row(
    env: Env, operator: str, left: t.RowItems, query: t.QueryTree, at: int
) -> e.Expression:
    """`(a, b) = (SELECT ..)`: the sub-query gives at most one row."""
    if operator not in ("=", "<>"):
        raise Unsupported("row comparison with a sub-query", position=at + 1, operator=operator)
    plan = bind_subquery(env, query)
    if len(plan.fields) != len(left.items):
        raise InvalidInput(
            "unequal number of entries in row expressions", sqlstate="42601", position=at + 1
        )
    tests: list[e.Expression] = []
    for i, (item, field) in enumerate(zip(left.items, plan.fields)):
        one = n.Project(plan, (e.Column(i, field.type, field.name),), (field,))
        value = e.ScalarSubquery(one, field.type)
        operand = env.binder.rules.expression(env, item)
        tests.append(make_call(env.binder, operator, (operand, value), at))
    return e.And(tuple(tests)) if operator == "=" else e.Or(tuple(tests))
