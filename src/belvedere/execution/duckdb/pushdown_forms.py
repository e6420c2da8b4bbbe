"""Forms of calls that DuckDB can push down to its scans, where an argument is a constant.

DuckDB evaluates a plain comparison of a column with a constant during the scan, and skips what
cannot match by its zone maps; it does neither through a function or a cast. So
- CHAR(n) has always n characters: it is compared with a constant of n characters;
- a date is compared with the date of an instant at midnight;
- LIKE without an escape is DuckDB's.

Its rtrim goes through every character: values of CHAR without blanks at the end do without.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence

import sqlglot
from sqlglot import exp

from belvedere.execution.duckdb.query import TypedSql
from belvedere.execution.duckdb.types import literal_text
from belvedere.plan.functions import Function
from belvedere.types import BOOLEAN, DATE, Kind, SqlType

_COMPARISONS: dict[str, Callable[..., exp.Expr]] = {
    "=": exp.EQ,
    "<>": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}


def shorter_form(function: Function, arguments: Sequence[TypedSql]) -> TypedSql | None:
    if len(arguments) != 2:
        return None
    left, right = arguments
    if function.name in ("~~", "!~~"):
        return _lower_like(function, left, right)
    form = _COMPARISONS.get(function.name)
    if form is None:
        return None
    kinds = (left.type.kind, right.type.kind)
    sides = None
    if kinds == (Kind.CHAR, Kind.CHAR) and form in (exp.EQ, exp.NEQ):
        sides = pad_char_operands(left, [right])
        if sides is None and (turned := pad_char_operands(right, [left])) is not None:
            sides = turned[::-1]
    elif set(kinds) == {Kind.DATE, Kind.TIMESTAMP}:
        sides = _compare_as_dates(left, right)
    if sides is None:
        return None
    return TypedSql(
        form(this=_comparison_operand(sides[0]), expression=_comparison_operand(sides[1])), BOOLEAN
    )


def strip_char(value: TypedSql, result: SqlType) -> TypedSql:
    """A column of type CHAR as text."""
    text = value.text
    form = f"CASE WHEN ends_with({text}, ' ') THEN rtrim({text}, ' ') ELSE {text} END"
    return TypedSql(sqlglot.parse_one(form, dialect="duckdb"), result)


def pad_char_operands(value: TypedSql, others: Sequence[TypedSql]) -> list[exp.Expr] | None:
    """A CHAR value and what it is tested to equal, so that the characters may be compared; None
    when they are not known to be of one length."""
    length = value.type.length
    if length is None or value.literal is not None:
        return None
    trees = [value.tree]
    for other in others:
        if other.literal is None:
            if other.type.length != length:
                return None
            trees.append(other.tree)
            continue
        text = other.literal.value
        if text is None or len(text := text.rstrip(" ")) > length:
            return None
        trees.append(exp.Literal.string(text.ljust(length)))
    return trees


def _compare_as_dates(left: TypedSql, right: TypedSql) -> list[exp.Expr] | None:
    """A date and an instant at midnight as two dates."""
    trees = []
    for one in (left, right):
        if one.type.kind is Kind.DATE:
            trees.append(one.tree)
            continue
        value = None if one.literal is None else one.literal.value
        if not isinstance(value, datetime.datetime) or value.time() != datetime.time.min:
            return None
        trees.append(sqlglot.parse_one(literal_text(value.date(), DATE), dialect="duckdb"))
    return trees


def _lower_like(function: Function, value: TypedSql, pattern: TypedSql) -> TypedSql | None:
    if value.type.kind not in (Kind.TEXT, Kind.VARCHAR, Kind.CHAR) or pattern.literal is None:
        return None
    text = pattern.literal.value
    if not isinstance(text, str) or "\\" in text:
        return None
    tree: exp.Expr = exp.Like(this=_comparison_operand(value.tree), expression=pattern.tree)
    return TypedSql(exp.not_(exp.Paren(this=tree)) if function.name == "!~~" else tree, BOOLEAN)


def _comparison_operand(tree: exp.Expr) -> exp.Expr:
    plain = isinstance(tree, exp.Column | exp.Literal | exp.Cast)
    return tree if plain else exp.Paren(this=tree)
