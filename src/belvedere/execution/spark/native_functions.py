"""Native forms of functions that Spark evaluates exactly as PostgreSQL does: Spark SQL templates.

A form is listed only when it is exact for every value of its types: with ANSI mode on, integers
overflow into errors, decimals are bounded by what their types allow, text is ordered by its bytes.
Everything else (division of NUMERIC, floats, patterns, upper and lower, arithmetic of dates) is
evaluated by the Python form of the registry: no form here is approximate.
"""

from __future__ import annotations

from belvedere.execution.spark.types import (
    DECIMAL_DIGITS_MAX,
    NotNative,
    is_decimal,
    is_native,
    spark_carrier,
)
from belvedere.plan.functions.core.function import Function
from belvedere.types import Kind, SqlType, numeric_type

Types = tuple[SqlType, ...]
Form = tuple[str, SqlType]
"""A template (`{0}`, `{1}` are the arguments) and the type of its value."""

COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
INTEGERS = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
FLOATS = (Kind.REAL, Kind.DOUBLE)
STRINGS = (Kind.TEXT, Kind.VARCHAR)
_DIGITS = {Kind.SMALLINT: 5, Kind.INTEGER: 10, Kind.BIGINT: 19}
LENGTHS = frozenset({"length", "char_length", "character_length"})


def scalar_form(function: Function, types: Types, result: SqlType) -> Form:
    """The form of a scalar call over carried arguments; NotNative when there is none."""
    found = _find_scalar_form(function.name, types, result)
    if found is None:
        raise NotNative(f"{function.signature} runs in Python")
    return found


def _find_scalar_form(name: str, types: Types, result: SqlType) -> Form | None:
    if name == "cast":
        return _cast_form(types[0], result)
    if name in COMPARISONS:
        return (f"({{0}} {name} {{1}})", result) if is_comparable(*types) else None
    if name in ("greatest", "least", "nullif"):
        return _choice_form(name, types)
    kinds = tuple(one.kind for one in types)
    if all(kind in STRINGS for kind in kinds):
        text = _TEXTS.get((name, len(types)))
        return None if text is None else (text, result)
    if all(kind in INTEGERS for kind in kinds):
        return _integer_form(name, len(types), result)
    if all(map(is_decimal, types)):
        return _decimal_form(name, types)
    if name == "-" and kinds == (Kind.DATE, Kind.DATE):
        return "datediff({0}, {1})", result
    return None


_TEXTS = {
    **{(name, 1): "length({0})" for name in LENGTHS},
    ("||", 2): "concat({0}, {1})",
    ("replace", 3): "replace({0}, {1}, {2})",
    ("starts_with", 2): "startswith({0}, {1})",
    ("strpos", 2): "instr({0}, {1})",
    ("position", 2): "instr({0}, {1})",
    ("reverse", 1): "reverse({0})",
    ("md5", 1): "md5(CAST({0} AS binary))",
    ("octet_length", 1): "octet_length({0})",
    ("bit_length", 1): "bit_length({0})",
    ("btrim", 1): "trim({0})",
    ("ltrim", 1): "ltrim({0})",
    ("rtrim", 1): "rtrim({0})",
    ("btrim", 2): "trim(BOTH {1} FROM {0})",
    ("ltrim", 2): "trim(LEADING {1} FROM {0})",
    ("rtrim", 2): "trim(TRAILING {1} FROM {0})",
}


def _choice_form(name: str, types: Types) -> Form | None:
    """The form of a choice between values of one type, whose equal values have one
    representation."""
    same = len(set(types)) == 1 and len(types) > 1 and is_native(types[0])
    arguments = ", ".join(f"{{{at}}}" for at in range(len(types)))
    return (f"{name}({arguments})", types[0]) if same else None


def is_comparable(left: SqlType, right: SqlType) -> bool:
    """Whether Spark compares two such values as PostgreSQL does."""
    for several in (INTEGERS, FLOATS, STRINGS):
        if left.kind in several and right.kind in several:
            return True
    if left.kind is Kind.NUMERIC and right.kind is Kind.NUMERIC:
        return is_decimal(left) and is_decimal(right) and common_decimal(left, right) is not None
    return left.kind is right.kind and is_native(left)


def common_decimal(left: SqlType, right: SqlType) -> SqlType | None:
    """A decimal that holds the values of both, if there is one."""
    scale = max(left.scale or 0, right.scale or 0)
    whole = max(_integer_digits(left), _integer_digits(right))
    return numeric_type(whole + scale, scale) if whole + scale <= DECIMAL_DIGITS_MAX else None


def _integer_digits(sql_type: SqlType) -> int:
    return (sql_type.precision or 0) - (sql_type.scale or 0)


_SIGNS = {"-": "(- {0})", "+": "{0}", "abs": "abs({0})", "@": "abs({0})"}


def _integer_form(name: str, count: int, result: SqlType) -> Form | None:
    if count == 1:
        text = {**_SIGNS, "~": "(~ {0})"}.get(name)
        return None if text is None else (text, result)
    if count != 2:
        return None
    if name in ("+", "-", "*"):
        return f"({{0}} {name} {{1}})", result
    if name == "/":
        return f"CAST({{0}} div {{1}} AS {spark_carrier(result)})", result
    if name in ("%", "mod"):
        return "({0} % {1})", result
    if name in ("&", "|", "#"):
        return f"({{0}} {'^' if name == '#' else name} {{1}})", result
    return None


def _decimal_form(name: str, types: Types) -> Form | None:
    if len(types) == 1:
        text = _SIGNS.get(name)
        return _rounding_form(name, types[0]) if text is None else (text, types[0])
    if len(types) == 2 and name in ("%", "mod"):
        return _remainder_form(*types)
    if len(types) != 2 or name not in ("+", "-", "*"):
        return None
    left, right = types
    if name == "*":
        digits = (left.precision or 0) + (right.precision or 0) + 1
        scale = (left.scale or 0) + (right.scale or 0)
    else:
        scale = max(left.scale or 0, right.scale or 0)
        digits = max(_integer_digits(left), _integer_digits(right)) + scale + 1
    if digits > DECIMAL_DIGITS_MAX:
        return None
    return f"({{0}} {name} {{1}})", numeric_type(digits, scale)


def _rounding_form(name: str, given: SqlType) -> Form | None:
    """Rounded to no digits after the point: half away from zero, down, or up."""
    text = {"round": "round({0}, 0)", "floor": "floor({0})", "ceil": "ceil({0})"}.get(
        "ceil" if name == "ceiling" else name
    )
    digits = _integer_digits(given) + 1
    if text is None or digits > DECIMAL_DIGITS_MAX:
        return None
    whole = numeric_type(digits, 0)
    return f"CAST({text} AS {spark_carrier(whole)})", whole


def _remainder_form(left: SqlType, right: SqlType) -> Form | None:
    both = common_decimal(left, right)
    if both is None:
        return None
    return f"CAST(({{0}} % {{1}}) AS {spark_carrier(both)})", both


def _cast_form(source: SqlType, target: SqlType) -> Form | None:
    into = f"CAST({{0}} AS {spark_carrier(target)})"
    if source.kind in INTEGERS and target.kind is Kind.NUMERIC:
        if target.precision is None:
            whole = numeric_type(_DIGITS[source.kind], 0)
            return f"CAST({{0}} AS {spark_carrier(whole)})", whole
        return (into, target) if is_decimal(target) else None
    if is_decimal(source):
        return _decimal_cast_form(source, target)
    if target.kind in STRINGS and target.length is None:
        if source.kind in STRINGS:
            return "{0}", target
        return (into, target) if source.kind in _SPELLED else None
    if (source.kind, target.kind) in _CASTS:
        return into, target
    if source == target and is_native(source):
        return "{0}", target
    return None


_SPELLED = (*INTEGERS, Kind.BOOLEAN, Kind.DATE)
"""Kinds that Spark casts to text as PostgreSQL does."""

_CASTS = frozenset(
    {
        *((one, other) for one in INTEGERS for other in (*INTEGERS, *FLOATS)),
        (Kind.BOOLEAN, Kind.INTEGER),
        (Kind.INTEGER, Kind.BOOLEAN),
        (Kind.DATE, Kind.TIMESTAMP),
        (Kind.TIMESTAMP, Kind.DATE),
    }
)


def _decimal_cast_form(source: SqlType, target: SqlType) -> Form | None:
    if target.kind is Kind.NUMERIC and target.precision is None:
        return "{0}", source
    if is_decimal(target) or target.kind is Kind.DOUBLE:
        return f"CAST({{0}} AS {spark_carrier(target)})", target
    if target.kind in INTEGERS:  # PostgreSQL rounds, where Spark would truncate
        rounded = "round({0}, 0)" if source.scale else "{0}"
        return f"CAST({rounded} AS {spark_carrier(target)})", target
    return None


# -- aggregates ------------------------------------------------------------------------------------

_ORDERED = frozenset({Kind.BOOLEAN, Kind.BYTEA, Kind.UUID})
"""Kinds that have an order, but of which PostgreSQL has no min and max."""


def aggregate_form(function: Function, types: Types, result: SqlType) -> Form:
    """The form of an aggregate over carried arguments; a count without arguments counts rows."""
    found = _find_aggregate_form(function.name, types, result)
    if found is None:
        raise NotNative(f"{function.signature} runs in Python")
    return found


def _find_aggregate_form(name: str, types: Types, result: SqlType) -> Form | None:
    if name == "count":
        return ("count({0})" if types else "count(1)"), result
    if len(types) != 1:
        return None
    (one,) = types
    if name in ("min", "max") and is_native(one) and one.kind not in _ORDERED:
        return f"{name}({{0}})", one
    if name in ("bool_and", "bool_or", "every") and one.kind is Kind.BOOLEAN:
        return f"{name}({{0}})", result
    return _sum_form(one, result) if name == "sum" else None


def _sum_form(one: SqlType, result: SqlType) -> Form | None:
    if one.kind in (Kind.SMALLINT, Kind.INTEGER):
        return "sum({0})", result
    if one.kind is Kind.BIGINT:
        # Spark's sum of decimal(p, s) is decimal(p + 10, s): room for more rows than it can sum.
        return "sum(CAST({0} AS decimal(19,0)))", numeric_type(29, 0)
    if is_decimal(one) and (one.precision or 0) + 10 <= DECIMAL_DIGITS_MAX:
        return "sum({0})", numeric_type((one.precision or 0) + 10, one.scale or 0)
    return None
