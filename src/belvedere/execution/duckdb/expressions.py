"""Expressions to DuckDB's dialect, as sqlglot trees, each with the exact type DuckDB will see.

NUMERIC needs care: PostgreSQL's has no bounds, DuckDB's DECIMAL has. Types here carry the bounds
that follow from the columns and constants; where none follow, or where two branches would be forced
to one scale, the expression is `NotExact`. Python evaluates expressions without columns beforehand;
they enter as constants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import sqlglot
from sqlglot import exp

from belvedere.errors import Error
from belvedere.execution.duckdb.numeric_division import (
    cast_branches,
    ragged_result,
    shown_digits_tree,
    verbatim,
)
from belvedere.execution.duckdb.pushdown_forms import (
    pad_char_operands,
    shorter_form,
    strip_char,
)
from belvedere.execution.duckdb.query import (
    ColumnLookup,
    DuckQuery,
    Outer,
    TypedSql,
    common_type,
)
from belvedere.execution.duckdb.types import (
    NotExact,
    RaggedNumeric,
    literal_text,
    literal_type,
    type_text,
)
from belvedere.execution.python.expressions.outer_references import is_constant
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions import Function, build_sql
from belvedere.plan.functions.core.function import AVERAGE_OF_TOTAL
from belvedere.plan.functions.registry import functions_by_name
from belvedere.types import BOOLEAN, TEXT, Kind, SqlType, numeric_type

STRIPPED = "rtrim(_0, ' ')"
"""The SQL form of CHAR as text."""

_PLAIN_EQUALITY = frozenset(
    {
        Kind.BOOLEAN,
        Kind.SMALLINT,
        Kind.INTEGER,
        Kind.BIGINT,
        Kind.NUMERIC,
        Kind.DOUBLE,
        Kind.REAL,
        Kind.VARCHAR,
        Kind.TEXT,
        Kind.BYTEA,
        Kind.DATE,
        Kind.TIME,
        Kind.TIMESTAMP,
        Kind.TIMESTAMPTZ,
        Kind.UUID,
    }
)


LowerPlan = Callable[[n.Node, Outer], DuckQuery]
"""Lowers a plan inside an expression; the second argument is the rows around it."""


class DuckScope(NamedTuple):
    """What an expression sees: columns, outer rows (nearest first), how to lower a plan, how to
    evaluate an expression that has no columns, and a scalar sub-query that has no form."""

    column: ColumnLookup
    outer: Outer
    plan: LowerPlan
    evaluate: Callable[[e.Expression], object]
    evaluate_subquery: Callable[[n.Node], object]
    divide: Callable[[TypedSql, TypedSql], TypedSql]
    used: set[str]  # functions to register in DuckDB


def lower(scope: DuckScope, expression: e.Expression) -> TypedSql:
    folded = _fold_constant(scope, expression)
    if folded is not None:
        return lower_constant(folded.value, folded.type)
    match expression:
        case e.Literal():
            return lower_constant(expression.value, expression.type)
        case e.Column():
            return scope.column(expression.index)
        case e.OuterColumn():
            if expression.depth > len(scope.outer):
                raise NotExact("a row outside of this part is used")
            return scope.outer[expression.depth - 1](expression.index)
        case e.Call():
            return lower_call(scope, expression.function, expression.arguments, expression.type)
        case e.Cast():
            return lower_call(scope, expression.function, (expression.operand,), expression.type)
        case e.And():
            return TypedSql(exp.and_(*_lower_operands(scope, expression.operands)), BOOLEAN)
        case e.Or():
            return TypedSql(exp.or_(*_lower_operands(scope, expression.operands)), BOOLEAN)
        case e.Not():
            return TypedSql(
                exp.not_(_add_parentheses(lower(scope, expression.operand).tree)), BOOLEAN
            )
        case e.Case():
            return _lower_case_when(scope, expression)
        case e.Coalesce():
            return _lower_coalesce([lower(scope, one) for one in expression.arguments])
        case _:
            return _lower_test(scope, expression)


def lower_constant(value: object, sql_type: SqlType) -> TypedSql:
    text = literal_text(value, sql_type)
    # A parser takes many times the memory of a long text.
    is_text = isinstance(value, str)
    tree = exp.Literal.string(value) if is_text else sqlglot.parse_one(text, dialect="duckdb")
    literal = e.Literal(value, sql_type)
    return TypedSql(tree, literal_type(value, sql_type), value is None, literal=literal)


def lower_call(
    scope: DuckScope, function: Function, arguments: tuple[e.Expression, ...], result: SqlType
) -> TypedSql:
    if function.name == "extract" and isinstance(arguments[0], e.Literal):
        function, arguments = _known_field(function, arguments)
    lowered = [lower(scope, argument) for argument in arguments]
    if function.name == "/" and result.kind is Kind.NUMERIC:
        return scope.divide(*lowered)
    if function.name == AVERAGE_OF_TOTAL:
        return scope.divide(*_average_operands(*lowered))
    if function.name == "cast" and _is_same_text(lowered[0].type, result):
        return lowered[0]
    if function.name == "cast" and function.sql == STRIPPED and lowered[0].is_column:
        return strip_char(lowered[0], result)
    shorter = shorter_form(function, lowered)
    if shorter is not None:
        return shorter
    if function.name == "substring" and _is_plain_substring(scope, function, arguments):
        tree = exp.Anonymous(this="substring", expressions=[one.tree for one in lowered])
        return TypedSql(tree, result)
    if function.name in _COMPARISONS:
        lowered = [
            _shield_from_rewrite(one) if _may_overflow(argument) else one
            for one, argument in zip(lowered, arguments)
        ]
    return lower_function(scope, function, lowered, result)


def _average_operands(values: TypedSql, total: TypedSql) -> tuple[TypedSql, TypedSql]:
    """The total and how many values it has, NULL for none, as NUMERIC of all digits of BIGINT."""
    whole = numeric_type(19, 0)
    some = exp.Nullif(this=values.tree, expression=exp.Literal.number(0))
    dividend, divisor = (exp.cast(one, type_text(whole)) for one in (total.tree, some))
    return TypedSql(dividend, whole), TypedSql(divisor, whole)


def _is_same_text(given: SqlType, result: SqlType) -> bool:
    """CHAR keeps its blanks as CHAR of any length."""
    return given.kind is Kind.CHAR and result == SqlType(Kind.CHAR)


def _is_plain_substring(
    scope: DuckScope, function: Function, arguments: tuple[e.Expression, ...]
) -> bool:
    """Constant start inside the text and constant length: DuckDB's substring is the same."""
    if len(arguments) != 3 or function.arguments[0] != TEXT:
        return False
    start, length = (_fold_constant(scope, argument) for argument in arguments[1:])
    if start is None or length is None:
        return False
    numbers = (start.value, length.value)
    return all(isinstance(one, int) for one in numbers) and numbers[0] >= 1 and numbers[1] >= 0


def _known_field(
    function: Function, arguments: tuple[e.Expression, ...]
) -> tuple[Function, tuple[e.Expression, ...]]:
    """`extract` of a constant field has a function, and a form, of its own."""
    field, value = arguments
    assert isinstance(field, e.Literal)
    for known in functions_by_name().get(f"extract {str(field.value).lower()}", ()):
        if known.arguments[0] == function.arguments[1]:
            return known, (value,)
    return function, arguments


_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
INTEGERS = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT})


def _may_overflow(expression: e.Expression) -> bool:
    while isinstance(expression, e.Cast):
        expression = expression.operand
    return (
        isinstance(expression, e.Call)
        and expression.function.name in ("+", "-", "*")
        and expression.type.kind in INTEGERS
    )


def _shield_from_rewrite(value: TypedSql) -> TypedSql:
    """Wraps a value in a function, through which DuckDB moves no constants: otherwise it moves them
    from one side of a comparison to the other, and loses the overflow that PostgreSQL reports."""
    return value._replace(tree=exp.Anonymous(this="least", expressions=[value.tree]))


def lower_function(
    scope: DuckScope, function: Function, arguments: list[TypedSql], result: SqlType
) -> TypedSql:
    """A registered function over lowered arguments."""
    from_types = tuple(argument.type for argument in arguments)
    trees: list[Any] = [argument.tree for argument in arguments]
    tree = build_sql(function, from_types, trees)
    if tree is None:
        raise NotExact(f"{function.signature} has no exact form in DuckDB")
    for name in _own_functions(tree):
        scope.used.add(name)
    bounds = function.bounds
    if result.kind is Kind.NUMERIC and result.precision is None and bounds is not None:
        result = bounds(from_types) or result
    type_text(result)
    if any(isinstance(one, RaggedNumeric) for one in from_types):
        return ragged_result(function.name, arguments, tree, result)
    return TypedSql(tree, result)


def _own_functions(tree: exp.Expr) -> list[str]:
    return [
        found.name for found in tree.find_all(exp.Anonymous) if found.name.startswith("belvedere_")
    ]


def _lower_operands(scope: DuckScope, expressions: tuple[e.Expression, ...]) -> list[exp.Expr]:
    return [_add_parentheses(lower(scope, one).tree) for one in expressions]


def _add_parentheses(tree: exp.Expr) -> exp.Expr:
    # To sqlglot AND, OR and -> are functions too.
    if isinstance(tree, exp.Column | exp.Func | exp.Paren) and not isinstance(tree, exp.Binary):
        return tree
    return exp.Paren(this=tree)


def _lower_case_when(scope: DuckScope, expression: e.Case) -> TypedSql:
    results = [lower(scope, result) for _, result in expression.whens]
    default = lower(scope, expression.default)
    sql_type = common_type([*results, default])
    *trees, otherwise = cast_branches([*results, default], sql_type)
    if default.null:
        otherwise = exp.cast(exp.Null(), type_text(sql_type))
    conditions = [lower(scope, condition).tree for condition, _ in expression.whens]
    tree = _case_tree(conditions, trees, otherwise)
    if not isinstance(sql_type, RaggedNumeric):
        return TypedSql(tree, sql_type)
    shown = [shown_digits_tree(result) for result in results]
    scale = _case_tree([one.copy() for one in conditions], shown, shown_digits_tree(default))
    return TypedSql(tree, sql_type, scale=scale)


def _case_tree(conditions: list[exp.Expr], results: list[exp.Expr], default: exp.Expr) -> exp.Expr:
    ifs = [exp.If(this=one, true=result) for one, result in zip(conditions, results)]
    return exp.Case(ifs=ifs, default=default)


def _lower_coalesce(values: list[TypedSql]) -> TypedSql:
    sql_type = common_type(values)
    trees = cast_branches(values, sql_type)
    tree = exp.Coalesce(this=trees[0], expressions=trees[1:])
    if not isinstance(sql_type, RaggedNumeric):
        return TypedSql(tree, sql_type)
    given: list[exp.Expr] = [
        exp.not_(exp.Is(this=_add_parentheses(v.tree.copy()), expression=exp.Null()))
        for v in values
    ]
    shown = [shown_digits_tree(value) for value in values]
    return TypedSql(tree, sql_type, scale=_case_tree(given, shown, exp.Null()))


def _lower_test(scope: DuckScope, expression: e.Expression) -> TypedSql:
    match expression:
        case e.Test():
            operand = _add_parentheses(lower(scope, expression.operand).tree)
            truth = {"true": exp.true(), "false": exp.false()}.get(expression.truth, exp.Null())
            tree: exp.Expr = exp.Is(this=operand, expression=truth)
            return TypedSql(exp.not_(tree) if expression.negated else tree, BOOLEAN)
        case e.IsDistinct():
            _require_plain(expression.left.type, expression.right.type)
            left = _add_parentheses(lower(scope, expression.left).tree)
            right = _add_parentheses(lower(scope, expression.right).tree)
            form = exp.NullSafeEQ if expression.negated else exp.NullSafeNEQ
            return TypedSql(form(this=left, expression=right), BOOLEAN)
        case e.InList():
            return _lower_in_list(scope, expression)
        case e.Array():
            items = [lower(scope, item) for item in expression.items]
            array = exp.Array(expressions=[item.tree for item in items])
            return TypedSql(exp.cast(array, type_text(expression.type)), expression.type)
        case e.Quantified():
            return _lower_quantified(scope, expression)
        case e.ScalarSubquery() | e.Exists() | e.QuantifiedSubquery():
            return _lower_subquery(scope, expression)
        case _:
            raise NotExact(f"{type(expression).__name__} has no form in DuckDB")


def _require_plain(*types: SqlType) -> None:
    if any(one.kind not in _PLAIN_EQUALITY for one in types) or len({t.kind for t in types}) > 1:
        raise NotExact("equality of these types is not DuckDB's")


def _lower_in_list(scope: DuckScope, expression: e.InList) -> TypedSql:
    types = (expression.operand.type, *(item.type for item in expression.items))
    blanks = all(one.kind is Kind.CHAR for one in types)  # do not count at the end of these
    if not blanks:
        _require_plain(*types)
    value = lower(scope, expression.operand)
    listed = [lower(scope, item) for item in expression.items]
    operand, items = _add_parentheses(value.tree), [item.tree for item in listed]
    if blanks and (same := pad_char_operands(value, listed)) is not None:
        operand, items = _add_parentheses(same[0]), same[1:]
    elif blanks:
        operand, items = _strip_blanks(operand), [_strip_blanks(item) for item in items]
    tree: exp.Expr = exp.In(this=operand, expressions=items)
    return TypedSql(exp.not_(tree) if expression.negated else tree, BOOLEAN)


def _strip_blanks(tree: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="rtrim", expressions=[tree, exp.Literal.string(" ")])


def _lower_quantified(scope: DuckScope, expression: e.Quantified) -> TypedSql:
    """Over a constant array only: written as a list of comparisons."""
    folded = _fold_constant(scope, expression.array)
    if folded is None:
        raise NotExact("ANY and ALL over an array that is not constant")
    if folded.value is None:
        return lower_constant(None, BOOLEAN)
    element = folded.type.element
    assert element is not None
    operand = lower(scope, expression.operand)
    parts = [
        _add_parentheses(
            lower_function(
                scope, expression.operator, [operand, lower_constant(v, element)], BOOLEAN
            ).tree
        )
        for v in folded.value
    ]
    every = expression.quantifier is e.Quantifier.ALL
    if not parts:
        return lower_constant(every, BOOLEAN)
    return TypedSql(exp.and_(*parts) if every else exp.or_(*parts), BOOLEAN)


def _lower_subquery(
    scope: DuckScope, expression: e.ScalarSubquery | e.Exists | e.QuantifiedSubquery
) -> TypedSql:
    try:
        query = scope.plan(expression.plan, (scope.column, *scope.outer))
    except NotExact:
        if not isinstance(expression, e.ScalarSubquery):
            raise
        return lower_constant(scope.evaluate_subquery(expression.plan), expression.type)
    text = query.text
    match expression:
        case e.ScalarSubquery():
            return _scalar_subquery(query)
        case e.Exists():
            tree = verbatim(f"EXISTS ({text})")
            return TypedSql(exp.not_(tree) if expression.negated else tree, BOOLEAN)
        case e.QuantifiedSubquery():
            if any(isinstance(one, RaggedNumeric) for one in query.types):
                raise NotExact("a sub-query that gives NUMERIC values of different scales")
            return _lower_quantified_subquery(scope, expression, text)


def _scalar_subquery(query: DuckQuery) -> TypedSql:
    sql_type = query.types[0]
    if not isinstance(sql_type, RaggedNumeric):
        return TypedSql(verbatim(f"({query.text})"), sql_type)
    value, scale = (verbatim(f"(SELECT {c} FROM ({query.text}))") for c in ("c0", "c0s"))
    return TypedSql(value, sql_type, scale=scale)


def _lower_quantified_subquery(
    scope: DuckScope, expression: e.QuantifiedSubquery, text: str
) -> TypedSql:
    if len(expression.operands) > 1:
        raise NotExact("comparison of a row with a sub-query")
    operand = expression.operands[0]
    _require_plain(operand.type, expression.plan.fields[0].type)
    left = lower(scope, operand).text
    sign = expression.operators[0].name
    word = expression.quantifier.value.upper()
    if sign not in ("=", "<>", "<", "<=", ">", ">="):
        raise NotExact(f"{sign} {word} over a sub-query")
    return TypedSql(verbatim(f"(({left}) {sign} {word} ({text}))"), BOOLEAN)


# -- folding ---------------------------------------------------------------------------------------


def _fold_constant(scope: DuckScope, expression: e.Expression) -> e.Literal | None:
    """The value of an expression that depends on no row; None when it does, or when it fails: an
    error belongs to the rows for which it is evaluated."""
    if isinstance(expression, e.Literal) or not is_constant(expression):
        return expression if isinstance(expression, e.Literal) else None
    try:
        return e.Literal(scope.evaluate(expression), expression.type)
    except Error:
        return None
