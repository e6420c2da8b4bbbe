"""Binds expressions, one rule per kind of tree; calls, sub-queries and rows are other modules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan import expressions as e
from belvedere.sql.bind import subqueries
from belvedere.sql.bind.binder import Env
from belvedere.sql.bind.calls import bind_call
from belvedere.sql.bind.coerce import EXPLICIT, boolean, call, coerce, unify
from belvedere.sql.bind.rows import compare_rows
from belvedere.sql.parse import tree as t
from belvedere.types import (
    BIGINT,
    BOOLEAN,
    INTEGER,
    NUMERIC,
    TEXT,
    UNKNOWN,
    Kind,
    SqlType,
    array_of,
)


def bind(env: Env, tree: t.Expr) -> e.Expression:
    """The typed expression; its type is UNKNOWN for an untyped literal or parameter."""
    return _RULES[type(tree)](env, tree)


def bind_condition(env: Env, tree: t.Expr, what: str) -> e.Expression:
    return boolean(env.binder, bind(env, tree), what, _place(tree))


def _place(tree: t.Expr) -> int:
    """Where the tree begins."""
    match tree:
        case t.Operation(left=left) if left is not None:
            return _place(left)
        case t.Logic():
            return _place(tree.operands[0])
        case _:
            return tree.at


# -- atoms -----------------------------------------------------------------------------------------


def _name(env: Env, tree: t.Name) -> e.Expression:
    return env.scope.column(tree)


def _star(env: Env, tree: t.Star) -> e.Expression:
    if tree.qualifier:
        raise Unsupported("whole-row reference", position=tree.at + 1, name=tree.qualifier[-1])
    raise InvalidInput("* is not allowed here", sqlstate="42601", position=tree.at + 1)


def _default(env: Env, tree: t.Default) -> e.Expression:
    raise InvalidInput("default is not allowed here", sqlstate="42601", position=tree.at + 1)


def _constant(env: Env, tree: t.Constant) -> e.Expression:
    value = tree.value
    match tree.kind:
        case "integer":
            return _integer(int(str(value)))
        case "number":
            return e.Literal(_number(str(value), tree.at), NUMERIC)
        case "bool":
            return e.Literal(value, BOOLEAN)
        case "bits":
            raise Unsupported(
                "bit string constant", position=tree.at + 1, hint="use a bytea literal"
            )
        case _:
            literal = e.Literal(value, UNKNOWN)
            env.binder.literals[id(literal)] = (literal, tree.at)
            return literal


def _integer(number: int) -> e.Literal:
    if -(2**31) <= number < 2**31:
        return e.Literal(number, INTEGER)
    if -(2**63) <= number < 2**63:
        return e.Literal(number, BIGINT)
    return e.Literal(Decimal(number), NUMERIC)


def _number(digits: str, at: int) -> Decimal:
    mantissa, _, exponent = digits.lower().partition("e")
    large = len(mantissa) > 131_072 or len(exponent) > 7 or abs(int(exponent or 0)) > 131_072
    if large:
        raise InvalidInput("value overflows numeric format", sqlstate="22003", position=at + 1)
    found = Decimal(digits)
    if found.as_tuple().exponent > 0:  # type: ignore[operator]
        found = Decimal(int(found))  # 1e3 is 1000, with scale 0
    return found if found else found.copy_abs()  # a numeric zero has no sign


def _parameter(env: Env, tree: t.ParameterRef) -> e.Expression:
    return env.binder.parameter(tree.index)


# -- operators -------------------------------------------------------------------------------------


def _operation(env: Env, tree: t.Operation) -> e.Expression:
    """Chains lean to the left and may be long, so they are walked, not descended."""
    chain: list[t.Operation] = []
    first: t.Expr = tree
    while isinstance(first, t.Operation) and first.left is not None:
        chain.append(first)
        first = first.left
    if isinstance(first, t.Operation):
        right = bind(env, first.right)
        result: e.Expression = call(env.binder, first.name, (right,), first.at)
    elif chain and _is_row(first):
        result = compare_rows(env, chain.pop())
    else:
        result = bind(env, first)
    for one in reversed(chain):
        result = _binary(env, one, result)
    return result


def _is_row(tree: t.Expr) -> bool:
    return isinstance(tree, t.RowItems)


def _binary(env: Env, tree: t.Operation, left: e.Expression) -> e.Expression:
    if isinstance(tree.right, t.RowItems):
        raise Unsupported("row value", position=tree.right.at + 1)
    right = bind(env, tree.right)
    return call(env.binder, tree.name, (left, right), tree.at)


def _logic(env: Env, tree: t.Logic) -> e.Expression:
    operands = tuple([bind_condition(env, one, tree.word) for one in tree.operands])
    return e.And(operands) if tree.word == "and" else e.Or(operands)


def _not(env: Env, tree: t.NotExpr) -> e.Expression:
    operand = bind_condition(env, tree.operand, "not")
    match operand:
        case e.Exists():
            return e.Exists(operand.plan, not operand.negated)
        case e.InList():
            return e.InList(operand.operand, operand.items, operand.equal, not operand.negated)
        case _:
            return e.Not(operand)


def _is(env: Env, tree: t.IsExpr) -> e.Expression:
    if isinstance(tree.operand, t.RowItems):
        return _row_is_null(env, tree.operand, tree)
    operand = bind(env, tree.operand)
    if tree.word != "null":
        operand = boolean(env.binder, operand, f"is {tree.word}", tree.at)
    elif isinstance(operand, e.Parameter) and operand.type.kind is Kind.UNKNOWN:
        env.binder.late = True
    elif operand.type.kind is Kind.UNKNOWN:
        operand = coerce(env.binder, operand, TEXT)
    return e.Test(operand, e.Truth(tree.word), tree.negated)


def _row_is_null(env: Env, row: t.RowItems, tree: t.IsExpr) -> e.Expression:
    """All are NULL; IS NOT NULL: none is."""
    if tree.word != "null":
        raise InvalidInput("argument must be boolean", sqlstate="42804", position=tree.at + 1)
    tests = [_is(env, t.IsExpr(one, "null", tree.negated, tree.at)) for one in row.items]
    return e.And(tuple(tests)) if len(tests) > 1 else tests[0]


def _distinct_from(env: Env, tree: t.DistinctFrom) -> e.Expression:
    if isinstance(tree.left, t.RowItems) or isinstance(tree.right, t.RowItems):
        return _distinct_rows(env, tree)
    left, right = bind(env, tree.left), bind(env, tree.right)
    equal = call(env.binder, "=", (left, right), tree.at)
    return e.IsDistinct(equal.arguments[0], equal.arguments[1], equal.function, tree.negated)


def _distinct_rows(env: Env, tree: t.DistinctFrom) -> e.Expression:
    """Some pair of items is distinct; IS NOT DISTINCT FROM: none is."""
    if not isinstance(tree.left, t.RowItems) or not isinstance(tree.right, t.RowItems):
        raise Unsupported("comparison of a row with a value", position=tree.at + 1)
    if len(tree.left.items) != len(tree.right.items):
        raise InvalidInput(
            "unequal number of entries in row expressions", sqlstate="42601", position=tree.at + 1
        )
    tests = tuple(
        [
            _distinct_from(env, t.DistinctFrom(left, right, tree.negated, tree.at))
            for left, right in zip(tree.left.items, tree.right.items)
        ]
    )
    if len(tests) == 1:
        return tests[0]
    return e.And(tests) if tree.negated else e.Or(tests)


def _between(env: Env, tree: t.Between) -> e.Expression:
    operand, low, high = (bind(env, one) for one in (tree.operand, tree.low, tree.high))

    def inside(bottom: e.Expression, top: e.Expression) -> e.Expression:
        above = call(env.binder, ">=", (operand, bottom), tree.at)
        below = call(env.binder, "<=", (operand, top), tree.at)
        return e.And((above, below))

    def outside(bottom: e.Expression, top: e.Expression) -> e.Expression:
        below = call(env.binder, "<", (operand, bottom), tree.at)
        above = call(env.binder, ">", (operand, top), tree.at)
        return e.Or((below, above))

    if tree.negated:
        found = outside(low, high)
        return e.And((found, outside(high, low))) if tree.symmetric else found
    found = inside(low, high)
    return e.Or((found, inside(high, low))) if tree.symmetric else found


def _like(env: Env, tree: t.Like) -> e.Expression:
    operand, pattern = bind(env, tree.operand), bind(env, tree.pattern)
    escape = () if tree.escape is None else (bind(env, tree.escape),)
    if tree.word == "similar to":
        pattern = call(env.binder, "similar_to_escape", (pattern, *escape), tree.at)
    elif escape:
        pattern = call(env.binder, "like_escape", (pattern, *escape), tree.at)
    sign = like_operator(tree.word, tree.negated)
    return call(env.binder, sign, (operand, pattern), tree.at)


def like_operator(word: str, negated: bool) -> str:
    sign = {"like": "~~", "ilike": "~~*", "similar to": "~"}[word]
    return "!" + sign if negated else sign


# -- IN, ANY, CASE, ARRAY --------------------------------------------------------------------------


def _in_items(env: Env, tree: t.InItems) -> e.Expression:
    if isinstance(tree.operand, t.RowItems):
        tests = [
            compare_rows(env, t.Operation("=", tree.operand, item, tree.at)) for item in tree.items
        ]
        found: e.Expression = e.Or(tuple(tests)) if len(tests) > 1 else tests[0]
        return e.Not(found) if tree.negated else found
    operand = bind(env, tree.operand)
    items = [bind(env, one) for one in tree.items]
    constants = [one for one in items if _is_constant(one)]
    listed = None
    if len(constants) > 1 or len(constants) == len(items):
        listed = _list(env, tree, operand, constants)
    if listed is not None:
        if len(constants) == len(items):
            return replace(listed, negated=tree.negated)
        items = [one for one in items if not _is_constant(one)]
    tests = [call(env.binder, "=", (operand, item), tree.at) for item in items]
    alternatives = tests if listed is None else [listed, *tests]
    found = e.Or(tuple(alternatives)) if len(alternatives) > 1 else alternatives[0]
    return e.Not(found) if tree.negated else found


def _is_constant(expression: e.Expression) -> bool:
    match expression:
        case e.Literal() | e.Parameter():
            return True
        case e.Call():
            return all(_is_constant(one) for one in expression.arguments)
        case e.Cast():
            return _is_constant(expression.operand)
        case _:
            return False


def _list(
    env: Env, tree: t.InItems, operand: e.Expression, items: list[e.Expression]
) -> e.InList | None:
    """IN over constants of one type, as PostgreSQL does it; None when they have no common type."""
    known = [one for one in items if one.type.kind is not Kind.UNKNOWN]
    try:
        common, same = unify(env.binder, (operand, *known), "in", tree.at)
    except InvalidInput:
        return None
    if operand.type.kind is Kind.UNKNOWN and not known:
        operand = coerce(env.binder, operand, TEXT)
    one = call(env.binder, "=", (same[0], e.Literal(None, common)), tree.at)
    wanted = one.arguments[1].type
    values = tuple([coerce(env.binder, item, wanted, at=tree.at) for item in items])
    return e.InList(one.arguments[0], values, one.function, negated=False)


def _quantify(env: Env, tree: t.Quantify) -> e.Expression:
    operator = tree.operator
    if operator[0] not in "<>=!~+-*/@#%^&|":
        negated = operator.startswith("not ")
        operator = like_operator(operator.removeprefix("not "), negated)
    if isinstance(tree.right, t.Query):
        return subqueries.quantified(
            env, tree.quantifier, operator, tree.operand, tree.right, tree.at
        )
    operand, array = bind(env, tree.operand), bind(env, tree.right)
    if array.type.kind is Kind.UNKNOWN:
        element = operand.type if operand.type.kind is not Kind.UNKNOWN else TEXT
        array = coerce(env.binder, array, array_of(_plain(element)), at=tree.at)
    if array.type.element is None:
        raise InvalidInput(
            "op any/all (array) requires array on right side",
            sqlstate="42809",
            position=tree.at + 1,
        )
    probe = e.Literal(None, array.type.element)
    one = call(env.binder, operator, (operand, probe), tree.at)
    if one.type.kind is not Kind.BOOLEAN:
        raise InvalidInput("operator must yield boolean", sqlstate="42809", position=tree.at + 1)
    array = coerce(env.binder, array, array_of(one.arguments[1].type), at=tree.at)
    return e.Quantified(e.Quantifier(tree.quantifier), one.function, one.arguments[0], array)


def _plain(type_: SqlType) -> SqlType:
    return SqlType(type_.kind, element=type_.element)


def _case(env: Env, tree: t.CaseExpr) -> e.Expression:
    env = replace(env, sets=False)
    conditions: list[e.Expression] = []
    if tree.subject is None:
        conditions = [bind_condition(env, one, "case/when") for one, _ in tree.whens]
    else:
        subject = bind(env, tree.subject)
        if subject.type.kind is Kind.UNKNOWN and isinstance(subject, e.Literal):
            subject = coerce(env.binder, subject, TEXT)
        for one, _ in tree.whens:
            conditions.append(call(env.binder, "=", (subject, bind(env, one)), one.at))
    results = [bind(env, one) for _, one in tree.whens]
    default: e.Expression = e.Literal(None, UNKNOWN)
    if tree.default is not None:
        default = bind(env, tree.default)
    # The default comes first when the common type is chosen, as in PostgreSQL.
    common, same = unify(env.binder, (default, *results), "case", tree.at)
    return e.Case(tuple(zip(conditions, same[1:])), same[0], common)


def _cast(env: Env, tree: t.CastExpr) -> e.Expression:
    if isinstance(tree.operand, t.ArrayItems) and tree.type.element is not None:
        operand = _array_of_type(env, tree.operand, tree.type.element)
    else:
        operand = bind(env, tree.operand)
    at = tree.operand.at if isinstance(tree.operand, t.Constant) else tree.at
    return coerce(env.binder, operand, tree.type, EXPLICIT, at)


def _array_of_type(env: Env, tree: t.ArrayItems, element: SqlType) -> e.Expression:
    items = [coerce(env.binder, bind(env, one), element, EXPLICIT, one.at) for one in tree.items]
    return e.Array(tuple(items), array_of(element))


def _array(env: Env, tree: t.ArrayItems) -> e.Expression:
    if not tree.items:
        raise InvalidInput(
            "cannot determine type of empty array",
            sqlstate="42P18",
            position=tree.at + 1,
            hint="cast it to a type, as in array[]::integer[]",
        )
    items = [bind(env, one) for one in tree.items]
    if any(one.type.element is not None for one in items):
        raise Unsupported("array of arrays", position=tree.at + 1)
    common, same = unify(env.binder, items, "array", tree.at)
    return e.Array(same, array_of(common))


def _subscript(env: Env, tree: t.Subscript) -> e.Expression:
    operand = bind(env, tree.operand)
    index = coerce(env.binder, bind(env, tree.index), INTEGER, at=tree.at)
    if operand.type.element is None:
        raise InvalidInput(
            "cannot subscript this type", sqlstate="42804", position=tree.at + 1, type=operand.type
        )
    return call(env.binder, "array subscript", (operand, index), tree.at)


def _slice(env: Env, tree: t.Slice) -> e.Expression:
    operand = bind(env, tree.operand)
    if operand.type.element is None:
        raise InvalidInput(
            "cannot subscript this type", sqlstate="42804", position=tree.at + 1, type=operand.type
        )
    low = e.Literal(1, INTEGER) if tree.low is None else bind(env, tree.low)
    if tree.high is None:
        high: e.Expression = call(env.binder, "cardinality", (operand,), tree.at)
    else:
        high = bind(env, tree.high)
    bounds = [coerce(env.binder, one, INTEGER, at=tree.at) for one in (low, high)]
    return call(env.binder, "array slice", (operand, *bounds), tree.at)


def _collate(env: Env, tree: t.Collate) -> e.Expression:
    if tree.collation not in ("C", "POSIX", "default", "ucs_basic"):
        raise Unsupported("collation", position=tree.at + 1, name=tree.collation)
    operand = bind(env, tree.operand)
    if operand.type.kind not in (Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.UNKNOWN):
        raise InvalidInput(
            "collations are not supported by this type", sqlstate="42804", position=tree.at + 1
        )
    return coerce(env.binder, operand, TEXT) if operand.type.kind is Kind.UNKNOWN else operand


def _row(env: Env, tree: t.RowItems) -> e.Expression:
    raise Unsupported("row value", position=tree.at + 1, hint="select its columns one by one")


_RULES: dict[type[Any], Callable[[Env, Any], e.Expression]] = {
    t.Name: _name,
    t.Star: _star,
    t.Default: _default,
    t.Constant: _constant,
    t.ParameterRef: _parameter,
    t.Operation: _operation,
    t.Logic: _logic,
    t.NotExpr: _not,
    t.IsExpr: _is,
    t.DistinctFrom: _distinct_from,
    t.Between: _between,
    t.Like: _like,
    t.InItems: _in_items,
    t.InQuery: subqueries.in_query,
    t.Quantify: _quantify,
    t.CaseExpr: _case,
    t.CastExpr: _cast,
    t.FunctionCall: bind_call,
    t.ArrayItems: _array,
    t.ArrayQuery: subqueries.array,
    t.RowItems: _row,
    t.ScalarQuery: subqueries.scalar,
    t.ExistsQuery: subqueries.exists,
    t.Subscript: _subscript,
    t.Slice: _slice,
    t.Collate: _collate,
}
