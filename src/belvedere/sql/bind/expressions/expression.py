"""Binds expressions, one rule per kind of tree; calls, sub-queries and rows are other modules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan import expressions as e
from belvedere.sql.bind.binder import Env
from belvedere.sql.bind.expressions import subqueries
from belvedere.sql.bind.expressions.calls import bind_call
from belvedere.sql.bind.expressions.coerce import (
    EXPLICIT,
    coerce,
    make_call,
    require_boolean,
    unify_types,
)
from belvedere.sql.bind.expressions.row_comparison import compare_rows
from belvedere.sql.bind.expressions.row_values import bind_table_oid, select_field
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
from belvedere.values.decimals import numeric_from_decimal


def bind_expression_tree(env: Env, tree: t.Expr) -> e.Expression:
    """The typed expression; its type is UNKNOWN for an untyped literal or parameter."""
    return _RULES[type(tree)](env, tree)


def bind_condition(env: Env, tree: t.Expr, what: str) -> e.Expression:
    return require_boolean(env.binder, bind_expression_tree(env, tree), what, _find_start(tree))


def _find_start(tree: t.Expr) -> int:
    """Where the tree begins."""
    match tree:
        case t.Operation(left=left) if left is not None:
            return _find_start(left)
        case t.Logic():
            return _find_start(tree.operands[0])
        case _:
            return tree.at


# -- atoms -----------------------------------------------------------------------------------------


def _bind_name(env: Env, tree: t.Name) -> e.Expression:
    if tree.parts[-1] == "tableoid" and (oid := bind_table_oid(env, tree)) is not None:
        return oid
    return env.scope.resolve_column(tree)


def _refuse_star(env: Env, tree: t.Star) -> e.Expression:
    if tree.qualifier:
        raise Unsupported("whole-row reference", position=tree.at + 1, name=tree.qualifier[-1])
    raise InvalidInput("* is not allowed here", sqlstate="42601", position=tree.at + 1)


def _refuse_default(env: Env, tree: t.Default) -> e.Expression:
    raise InvalidInput("default is not allowed here", sqlstate="42601", position=tree.at + 1)


def _bind_constant(env: Env, tree: t.Constant) -> e.Expression:
    value = tree.value
    match tree.kind:
        case "integer":
            return env.binder.add_literal(_make_integer(int(str(value))), tree, int)
        case "number":
            literal = e.Literal(parse_number(str(value), tree.at), NUMERIC)
            return env.binder.add_literal(literal, tree, parse_number)
        case "bool":
            return e.Literal(value, BOOLEAN)
        case "bits":
            raise Unsupported(
                "bit string constant", position=tree.at + 1, hint="use a bytea literal"
            )
        case _:
            return env.binder.add_literal(e.Literal(value, UNKNOWN), tree, str)


def _make_integer(number: int) -> e.Literal:
    if -(2**31) <= number < 2**31:
        return e.Literal(number, INTEGER)
    if -(2**63) <= number < 2**63:
        return e.Literal(number, BIGINT)
    return e.Literal(Decimal(number), NUMERIC)


def parse_number(digits: str, at: int = 0) -> Decimal:
    mantissa, _, exponent = digits.lower().partition("e")
    large = len(mantissa) > 131_072 or len(exponent) > 7 or abs(int(exponent or 0)) > 131_072
    if large:
        raise InvalidInput("value overflows numeric format", sqlstate="22003", position=at + 1)
    found = Decimal(digits)
    if found.as_tuple().exponent > 0:  # type: ignore[operator]
        found = numeric_from_decimal(found)  # 1e3 is 1000, with scale 0
    return found if found else found.copy_abs()  # a numeric zero has no sign


def _bind_parameter(env: Env, tree: t.ParameterRef) -> e.Expression:
    return env.binder.get_parameter(tree.index)


# -- operators -------------------------------------------------------------------------------------


def _bind_operation(env: Env, tree: t.Operation) -> e.Expression:
    """Chains lean to the left and may be long, so they are walked, not descended."""
    chain: list[t.Operation] = []
    first: t.Expr = tree
    while isinstance(first, t.Operation) and first.left is not None:
        chain.append(first)
        first = first.left
    if isinstance(first, t.Operation):
        right = bind_expression_tree(env, first.right)
        result: e.Expression = make_call(env.binder, first.name, (right,), first.at)
    elif chain and _is_row(first):
        result = compare_rows(env, chain.pop())
    else:
        result = bind_expression_tree(env, first)
    for one in reversed(chain):
        result = _bind_binary(env, one, result)
    return result


def _is_row(tree: t.Expr) -> bool:
    return isinstance(tree, t.RowItems)


def _bind_binary(env: Env, tree: t.Operation, left: e.Expression) -> e.Expression:
    if isinstance(tree.right, t.RowItems):
        raise Unsupported("row value", position=tree.right.at + 1)
    right = bind_expression_tree(env, tree.right)
    return make_call(env.binder, tree.name, (left, right), tree.at)


def _bind_logic(env: Env, tree: t.Logic) -> e.Expression:
    operands = tuple([bind_condition(env, one, tree.word) for one in tree.operands])
    return e.And(operands) if tree.word == "and" else e.Or(operands)


def _bind_not(env: Env, tree: t.NotExpr) -> e.Expression:
    operand = bind_condition(env, tree.operand, "not")
    match operand:
        case e.Exists():
            return e.Exists(operand.plan, not operand.negated)
        case e.InList():
            return e.InList(operand.operand, operand.items, operand.equal, not operand.negated)
        case _:
            return e.Not(operand)


def _bind_is(env: Env, tree: t.IsExpr) -> e.Expression:
    if isinstance(tree.operand, t.RowItems):
        return _bind_row_is_null(env, tree.operand, tree)
    operand = bind_expression_tree(env, tree.operand)
    if tree.word != "null":
        operand = require_boolean(env.binder, operand, f"is {tree.word}", tree.at)
    elif isinstance(operand, e.Parameter) and operand.type.kind is Kind.UNKNOWN:
        env.binder.has_untyped_parameters = True
    elif operand.type.kind is Kind.UNKNOWN:
        operand = coerce(env.binder, operand, TEXT)
    return e.Test(operand, e.Truth(tree.word), tree.negated)


def _bind_row_is_null(env: Env, row: t.RowItems, tree: t.IsExpr) -> e.Expression:
    """All are NULL; IS NOT NULL: none is."""
    if tree.word != "null":
        raise InvalidInput("argument must be boolean", sqlstate="42804", position=tree.at + 1)
    tests = [_bind_is(env, t.IsExpr(one, "null", tree.negated, tree.at)) for one in row.items]
    return e.And(tuple(tests)) if len(tests) > 1 else tests[0]


def _bind_distinct_from(env: Env, tree: t.DistinctFrom) -> e.Expression:
    if isinstance(tree.left, t.RowItems) or isinstance(tree.right, t.RowItems):
        return _bind_distinct_rows(env, tree)
    left, right = bind_expression_tree(env, tree.left), bind_expression_tree(env, tree.right)
    equal = make_call(env.binder, "=", (left, right), tree.at)
    return e.IsDistinct(equal.arguments[0], equal.arguments[1], equal.function, tree.negated)


def _bind_distinct_rows(env: Env, tree: t.DistinctFrom) -> e.Expression:
    """Some pair of items is distinct; IS NOT DISTINCT FROM: none is."""
    if not isinstance(tree.left, t.RowItems) or not isinstance(tree.right, t.RowItems):
        raise Unsupported("comparison of a row with a value", position=tree.at + 1)
    if len(tree.left.items) != len(tree.right.items):
        raise InvalidInput(
            "unequal number of entries in row expressions", sqlstate="42601", position=tree.at + 1
        )
    tests = tuple(
        [
            _bind_distinct_from(env, t.DistinctFrom(left, right, tree.negated, tree.at))
            for left, right in zip(tree.left.items, tree.right.items)
        ]
    )
    if len(tests) == 1:
        return tests[0]
    return e.And(tests) if tree.negated else e.Or(tests)


def _bind_between(env: Env, tree: t.Between) -> e.Expression:
    operand, low, high = (
        bind_expression_tree(env, one) for one in (tree.operand, tree.low, tree.high)
    )

    def inside_bounds(bottom: e.Expression, top: e.Expression) -> e.Expression:
        above = make_call(env.binder, ">=", (operand, bottom), tree.at)
        below = make_call(env.binder, "<=", (operand, top), tree.at)
        return e.And((above, below))

    def outside_bounds(bottom: e.Expression, top: e.Expression) -> e.Expression:
        below = make_call(env.binder, "<", (operand, bottom), tree.at)
        above = make_call(env.binder, ">", (operand, top), tree.at)
        return e.Or((below, above))

    if tree.negated:
        found = outside_bounds(low, high)
        return e.And((found, outside_bounds(high, low))) if tree.symmetric else found
    found = inside_bounds(low, high)
    return e.Or((found, inside_bounds(high, low))) if tree.symmetric else found


def _bind_like(env: Env, tree: t.Like) -> e.Expression:
    operand, pattern = (
        bind_expression_tree(env, tree.operand),
        bind_expression_tree(env, tree.pattern),
    )
    escape = () if tree.escape is None else (bind_expression_tree(env, tree.escape),)
    if tree.word == "similar to":
        pattern = make_call(env.binder, "similar_to_escape", (pattern, *escape), tree.at)
    elif escape:
        pattern = make_call(env.binder, "like_escape", (pattern, *escape), tree.at)
    sign = like_operator(tree.word, tree.negated)
    return make_call(env.binder, sign, (operand, pattern), tree.at)


def like_operator(word: str, negated: bool) -> str:
    sign = {"like": "~~", "ilike": "~~*", "similar to": "~"}[word]
    return "!" + sign if negated else sign


# -- IN, ANY, CASE, ARRAY --------------------------------------------------------------------------


def _bind_in_items(env: Env, tree: t.InItems) -> e.Expression:
    if isinstance(tree.operand, t.RowItems):
        tests = [
            compare_rows(env, t.Operation("=", tree.operand, item, tree.at)) for item in tree.items
        ]
        found: e.Expression = e.Or(tuple(tests)) if len(tests) > 1 else tests[0]
        return e.Not(found) if tree.negated else found
    operand = bind_expression_tree(env, tree.operand)
    items = [bind_expression_tree(env, one) for one in tree.items]
    constants = [one for one in items if _is_constant(one)]
    listed = None
    if len(constants) > 1 or len(constants) == len(items):
        listed = _bind_constant_list(env, tree, operand, constants)
    if listed is not None:
        if len(constants) == len(items):
            return replace(listed, negated=tree.negated)
        items = [one for one in items if not _is_constant(one)]
    tests = [make_call(env.binder, "=", (operand, item), tree.at) for item in items]
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


def _bind_constant_list(
    env: Env, tree: t.InItems, operand: e.Expression, items: list[e.Expression]
) -> e.InList | None:
    """IN over constants of one type, as PostgreSQL does it; None when they have no common type."""
    known = [one for one in items if one.type.kind is not Kind.UNKNOWN]
    try:
        common, same = unify_types(env.binder, (operand, *known), "in", tree.at)
    except InvalidInput:
        return None
    if operand.type.kind is Kind.UNKNOWN and not known:
        operand = coerce(env.binder, operand, TEXT)
    one = make_call(env.binder, "=", (same[0], e.Literal(None, common)), tree.at)
    wanted = one.arguments[1].type
    values = tuple([coerce(env.binder, item, wanted, at=tree.at) for item in items])
    return e.InList(one.arguments[0], values, one.function, negated=False)


def _bind_quantify(env: Env, tree: t.Quantify) -> e.Expression:
    operator = tree.operator
    if operator[0] not in "<>=!~+-*/@#%^&|":
        negated = operator.startswith("not ")
        operator = like_operator(operator.removeprefix("not "), negated)
    if isinstance(tree.right, t.QueryTree):
        return subqueries.bind_quantified(
            env, tree.quantifier, operator, tree.operand, tree.right, tree.at
        )
    operand, array = bind_expression_tree(env, tree.operand), bind_expression_tree(env, tree.right)
    if array.type.kind is Kind.UNKNOWN:
        element = operand.type if operand.type.kind is not Kind.UNKNOWN else TEXT
        array = coerce(env.binder, array, array_of(_without_modifiers(element)), at=tree.at)
    if array.type.element is None:
        raise InvalidInput(
            "op any/all (array) requires array on right side",
            sqlstate="42809",
            position=tree.at + 1,
        )
    probe = e.Literal(None, array.type.element)
    one = make_call(env.binder, operator, (operand, probe), tree.at)
    if one.type.kind is not Kind.BOOLEAN:
        raise InvalidInput("operator must yield boolean", sqlstate="42809", position=tree.at + 1)
    array = coerce(env.binder, array, array_of(one.arguments[1].type), at=tree.at)
    return e.Quantified(e.Quantifier(tree.quantifier), one.function, one.arguments[0], array)


def _without_modifiers(type_: SqlType) -> SqlType:
    return SqlType(type_.kind, element=type_.element)


def _bind_case(env: Env, tree: t.CaseExpr) -> e.Expression:
    env = replace(env, sets=False)
    conditions: list[e.Expression] = []
    if tree.subject is None:
        conditions = [bind_condition(env, one, "case/when") for one, _ in tree.whens]
    else:
        subject = bind_expression_tree(env, tree.subject)
        if subject.type.kind is Kind.UNKNOWN and isinstance(subject, e.Literal):
            subject = coerce(env.binder, subject, TEXT)
        for one, _ in tree.whens:
            conditions.append(
                make_call(env.binder, "=", (subject, bind_expression_tree(env, one)), one.at)
            )
    results = [bind_expression_tree(env, one) for _, one in tree.whens]
    default: e.Expression = e.Literal(None, UNKNOWN)
    if tree.default is not None:
        default = bind_expression_tree(env, tree.default)
    # The default comes first when the common type is chosen, as in PostgreSQL.
    common, same = unify_types(env.binder, (default, *results), "case", tree.at)
    return e.Case(tuple(zip(conditions, same[1:])), same[0], common)


def _bind_cast(env: Env, tree: t.CastExpr) -> e.Expression:
    if isinstance(tree.operand, t.ArrayItems) and tree.type.element is not None:
        operand = _bind_typed_array(env, tree.operand, tree.type.element)
    else:
        operand = bind_expression_tree(env, tree.operand)
    at = tree.operand.at if isinstance(tree.operand, t.Constant) else tree.at
    return coerce(env.binder, operand, tree.type, EXPLICIT, at)


def _bind_typed_array(env: Env, tree: t.ArrayItems, element: SqlType) -> e.Expression:
    items = [
        coerce(env.binder, bind_expression_tree(env, one), element, EXPLICIT, one.at)
        for one in tree.items
    ]
    return e.Array(tuple(items), array_of(element))


def _bind_array(env: Env, tree: t.ArrayItems) -> e.Expression:
    if not tree.items:
        raise InvalidInput(
            "cannot determine type of empty array",
            sqlstate="42P18",
            position=tree.at + 1,
            hint="cast it to a type, as in array[]::integer[]",
        )
    items = [bind_expression_tree(env, one) for one in tree.items]
    if any(one.type.element is not None for one in items):
        raise Unsupported("array of arrays", position=tree.at + 1)
    common, same = unify_types(env.binder, items, "array", tree.at)
    return e.Array(same, array_of(common))


def _bind_subscript(env: Env, tree: t.Subscript) -> e.Expression:
    operand = bind_expression_tree(env, tree.operand)
    index = coerce(env.binder, bind_expression_tree(env, tree.index), INTEGER, at=tree.at)
    if operand.type.element is None:
        raise InvalidInput(
            "cannot subscript this type", sqlstate="42804", position=tree.at + 1, type=operand.type
        )
    return make_call(env.binder, "array subscript", (operand, index), tree.at)


def _bind_field(env: Env, tree: t.FieldOf) -> e.Expression:
    operand = tree.operand
    if isinstance(operand, t.Name) and len(operand.parts) == 1:
        alias = operand.parts[0]
        if all(one.name != alias for one in env.scope.relation.visible):
            return _bind_name(env, t.Name((alias, tree.name), operand.at))
    return select_field(bind_expression_tree(env, operand), tree.name, tree.at)


def _bind_slice(env: Env, tree: t.Slice) -> e.Expression:
    operand = bind_expression_tree(env, tree.operand)
    if operand.type.element is None:
        raise InvalidInput(
            "cannot subscript this type", sqlstate="42804", position=tree.at + 1, type=operand.type
        )
    low = e.Literal(1, INTEGER) if tree.low is None else bind_expression_tree(env, tree.low)
    if tree.high is None:
        high: e.Expression = make_call(env.binder, "cardinality", (operand,), tree.at)
    else:
        high = bind_expression_tree(env, tree.high)
    bounds = [coerce(env.binder, one, INTEGER, at=tree.at) for one in (low, high)]
    return make_call(env.binder, "array slice", (operand, *bounds), tree.at)


def _bind_collate(env: Env, tree: t.Collate) -> e.Expression:
    if tree.collation not in ("C", "POSIX", "default", "ucs_basic"):
        raise Unsupported("collation", position=tree.at + 1, name=tree.collation)
    operand = bind_expression_tree(env, tree.operand)
    if operand.type.kind not in (Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.UNKNOWN):
        raise InvalidInput(
            "collations are not supported by this type", sqlstate="42804", position=tree.at + 1
        )
    return coerce(env.binder, operand, TEXT) if operand.type.kind is Kind.UNKNOWN else operand


def _refuse_row(env: Env, tree: t.RowItems) -> e.Expression:
    raise Unsupported("row value", position=tree.at + 1, hint="select its columns one by one")


_RULES: dict[type[Any], Callable[[Env, Any], e.Expression]] = {
    t.Name: _bind_name,
    t.Star: _refuse_star,
    t.Default: _refuse_default,
    t.Constant: _bind_constant,
    t.ParameterRef: _bind_parameter,
    t.Operation: _bind_operation,
    t.Logic: _bind_logic,
    t.NotExpr: _bind_not,
    t.IsExpr: _bind_is,
    t.DistinctFrom: _bind_distinct_from,
    t.Between: _bind_between,
    t.Like: _bind_like,
    t.InItems: _bind_in_items,
    t.InQuery: subqueries.bind_in_query,
    t.Quantify: _bind_quantify,
    t.CaseExpr: _bind_case,
    t.CastExpr: _bind_cast,
    t.FunctionCall: bind_call,
    t.ArrayItems: _bind_array,
    t.ArrayQuery: subqueries.bind_array,
    t.RowItems: _refuse_row,
    t.ScalarQuery: subqueries.bind_scalar,
    t.ExistsQuery: subqueries.bind_exists,
    t.Subscript: _bind_subscript,
    t.FieldOf: _bind_field,
    t.Slice: _bind_slice,
    t.Collate: _bind_collate,
}
