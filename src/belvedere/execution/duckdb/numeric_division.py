"""NUMERIC division in DuckDB, to PostgreSQL's last digit.

DuckDB has no such division, but it has 128-bit integers. A quotient is computed from the operands
as integers, rounded half away from zero to the scale that PostgreSQL would choose for these values
(`values.decimals.division_scale`), and becomes a DECIMAL of a fixed scale; its display scale
is a second column, see `RaggedNumeric`. Integers that overflow, or more digits than the fixed scale
has, are an error in DuckDB: the statement then runs again without a division in DuckDB.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from belvedere.execution.duckdb.python_division import QUOTIENT_FUNCTION
from belvedere.execution.duckdb.query import TypedSql
from belvedere.execution.duckdb.types import NotExact, RaggedNumeric
from belvedere.plan.functions.core.sql_form import DECIMAL_DIGITS_MAX
from belvedere.plan.functions.numeric.decimals import digit_counts as digits_of
from belvedere.types import Kind, SqlType

PLACES = 20
"""Digits after the point that are held: what a quotient of at least 0.0001 has, and more."""

PLACES_SMALL = 24
"""The same where few digits are before the point."""


SCALE_BY_PRODUCT_MAX = 6
"""Up to this scale a value times ten to it still has room in 38 digits; beyond, it goes by text."""

_TEN_TO = "CAST('1' || repeat('0', {}) AS HUGEINT)"


def divide_in_sql(dividend: TypedSql, divisor: TypedSql, before: int | None = None) -> TypedSql:
    """`before`: how many digits the quotient has before the point, at most, if that is known."""
    few = before is not None and before + PLACES_SMALL <= DECIMAL_DIGITS_MAX - 2
    places = PLACES_SMALL if few else PLACES
    found = _scaled_operands(dividend, divisor)
    whole = _rounded_quotient(_scale_in_type(dividend), _scale_in_type(divisor), places)
    unit = f"CAST('0.{'0' * (places - 1)}1' AS DECIMAL({places}, {places}))"
    value = f"CAST(list_transform({found}, lambda _s: {whole})[1] AS DECIMAL(38, 0)) * {unit}"
    sql_type = RaggedNumeric(Kind.NUMERIC, precision=DECIMAL_DIGITS_MAX, scale=places)
    return TypedSql(verbatim(f"({value})"), sql_type, scale=verbatim(f"{found}[1].s"))


def divide_in_python(dividend: TypedSql, divisor: TypedSql, before: int | None = None) -> TypedSql:
    """The same by a call of a Python function, for few rows."""
    few = before is not None and before + PLACES_SMALL <= DECIMAL_DIGITS_MAX - 2
    places = PLACES_SMALL if few else PLACES
    operands = ", ".join(
        f"CAST({one.text} AS VARCHAR), {shown_digits(one)}" for one in (dividend, divisor)
    )
    text = f"{QUOTIENT_FUNCTION}({operands}, {places})"
    scale = f"CASE WHEN contains({text}, '.') THEN length({text}) - strpos({text}, '.') ELSE 0 END"
    sql_type = RaggedNumeric(Kind.NUMERIC, precision=DECIMAL_DIGITS_MAX, scale=places)
    value = verbatim(f"CAST({text} AS DECIMAL({DECIMAL_DIGITS_MAX}, {places}))")
    return TypedSql(value, sql_type, scale=verbatim(scale))


def _scaled_operands(dividend: TypedSql, divisor: TypedSql) -> str:
    """A list of one struct: the operands as integers n and m, and the scale s of their quotient.

    A list and a lambda are how DuckDB evaluates something once that is used several times."""
    given = (
        f"[struct_pack(n := {_integer_text(dividend)}, m := {_integer_text(divisor)},"
        f" d := greatest({shown_digits(dividend)}, {shown_digits(divisor)}, 0))]"
    )
    spelled = (
        f"list_transform({given}, lambda _s: struct_pack(n := _s.n, m := _s.m, d := _s.d,"
        " t := CAST(abs(_s.n) AS VARCHAR), u := CAST(abs(_s.m) AS VARCHAR)))"
    )
    a, b = _scale_in_type(dividend), _scale_in_type(divisor)
    left, right = _first_group_digits("_s.t", a), _first_group_digits("_s.u", b)
    less = f"CASE WHEN {left} <= {right} THEN 1 ELSE 0 END"
    weight = f"{_first_group_weight('_s.t', a)} - {_first_group_weight('_s.u', b)} - {less}"
    scale = f"CAST(least(1000, greatest(16 - 4 * ({weight}), _s.d)) AS INTEGER)"
    return f"list_transform({spelled}, lambda _s: struct_pack(n := _s.n, m := _s.m, s := {scale}))"


def _first_group_weight(digits: str, scale: int) -> str:
    """The weight of the first group of four digits, as PostgreSQL counts them."""
    return (
        f"(CASE WHEN {digits} = '0' THEN 0 ELSE {_first_digit_rank(digits, scale)} // 4 - 1000 END)"
    )


def _first_group_digits(digits: str, scale: int) -> str:
    """The first group of four digits."""
    count = f"CAST({_first_digit_rank(digits, scale)} % 4 + 1 AS BIGINT)"
    return f"CAST(left(rpad({digits}, 4, '0'), {count}) AS INTEGER)"


def _first_digit_rank(digits: str, scale: int) -> str:
    """The rank of the first digit, as a positive number: 4000 for the ones digit."""
    return f"(length({digits}) + {3999 - scale})"


def _rounded_quotient(scale: int, other_scale: int, places: int) -> str:
    """The quotient of n and m with `places` digits after the point, rounded at its own scale."""
    shift = f"_s.s + {other_scale - scale}"
    n = f"_s.n * {_TEN_TO.format(f'greatest({shift}, 0)')}"
    m = f"_s.m * {_TEN_TO.format(f'greatest(-({shift}), 0)')}"
    return (
        "CASE WHEN _s.n IS NULL OR _s.m IS NULL THEN NULL"
        f" WHEN _s.m = 0 THEN {_error_text('22012')}"
        " WHEN _s.n = 0 THEN CAST(0 AS HUGEINT)"
        f" WHEN _s.s > {places} THEN {_error_text('22003')}"
        f" ELSE ((2 * abs({n}) + abs({m})) // (2 * abs({m})))"
        f" * {_TEN_TO.format(f'{places} - _s.s')}"
        " * CASE WHEN (_s.n < 0) <> (_s.m < 0) THEN -1 ELSE 1 END END"
    )


def _error_text(sqlstate: str) -> str:
    """Text that is no number. A call of error() would do, but DuckDB takes that for volatile, and
    runs the sub-query around it once for every row."""
    return f"CAST('[belvedere {sqlstate}] quotient ' || CAST(_s.s AS VARCHAR) AS HUGEINT)"


def _scale_in_type(value: TypedSql) -> int:
    if value.type.kind is not Kind.NUMERIC:
        return 0
    if value.type.precision is None:
        raise NotExact("NUMERIC without bounds")
    return value.type.scale or 0


def shown_digits(value: TypedSql) -> str:
    return str(_scale_in_type(value)) if value.scale is None else value.scale.sql("duckdb")


def _integer_text(value: TypedSql) -> str:
    scale = _scale_in_type(value)
    if not scale:
        return f"CAST({value.text} AS HUGEINT)"
    if scale > SCALE_BY_PRODUCT_MAX:
        return f"CAST(replace(CAST({value.text} AS VARCHAR), '.', '') AS HUGEINT)"
    return f"CAST(({value.text}) * CAST('1{'0' * scale}' AS DECIMAL({scale + 1}, 0)) AS HUGEINT)"


def average_integer_digits(argument: SqlType) -> int | None:
    """How many digits an average of such values has before the point."""
    whole = {Kind.SMALLINT: 5, Kind.INTEGER: 10, Kind.BIGINT: 19}.get(argument.kind)
    if whole is not None or argument.precision is None:
        return whole
    return digits_of(argument)[0]


# -- display scales --------------------------------------------------------------------------------

_ADDED = frozenset({"+", "-", "abs", "@"})
_OF_VALUE = frozenset(
    {"=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from"}
    | {"round", "trunc", "ceil", "ceiling", "floor", "sign"}
)


def ragged_result(
    name: str, arguments: Sequence[TypedSql], tree: exp.Expr, result: SqlType
) -> TypedSql:
    """A call with ragged arguments: its display scale follows from theirs, or does not matter."""
    if name in _ADDED and result.kind is Kind.NUMERIC:
        scale = f"greatest({', '.join(map(shown_digits, arguments))})"
    elif name == "*":
        scale = " + ".join(f"({shown_digits(one)})" for one in arguments)
    elif name in _OF_VALUE or (name == "cast" and _is_of_value(result)):
        return TypedSql(tree, result)
    else:
        raise NotExact(f"{name} of NUMERIC values of different scales")
    wide = RaggedNumeric(Kind.NUMERIC, precision=result.precision, scale=result.scale)
    return TypedSql(tree, wide, scale=verbatim(scale))


def _is_of_value(result: SqlType) -> bool:
    numbers = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.REAL, Kind.DOUBLE)
    if result.kind is Kind.NUMERIC:
        return result.precision is not None and not isinstance(result, RaggedNumeric)
    return result.kind in numbers


def cast_branches(values: Sequence[TypedSql], sql_type: SqlType) -> list[exp.Expr]:
    """Branches of one expression, all at the type's scale."""
    if not isinstance(sql_type, RaggedNumeric):
        return [value.tree for value in values]
    name = f"DECIMAL({sql_type.precision}, {sql_type.scale})"
    return [exp.cast(value.tree, name) for value in values]


def shown_digits_tree(value: TypedSql) -> exp.Expr:
    """The digits a branch shows, as an expression."""
    return verbatim("NULL" if value.null else shown_digits(value))


def verbatim(text: str) -> exp.Expr:
    """Text that is already DuckDB's, inside a tree."""
    return exp.Var(this=text)
