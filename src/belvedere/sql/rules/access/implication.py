"""Whether the conditions of a scan imply the WHERE of a partial index.

    a = 50              implies a > 10, a IS NOT NULL, a > 10 OR b
    s LIKE 'x%'         implies s IS NOT NULL

What cannot be seen here is taken as not implied: the index is then not used.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from belvedere.plan import expressions as e
from belvedere.types import Kind

FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ORDERED = frozenset(
    {
        Kind.SMALLINT,
        Kind.INTEGER,
        Kind.BIGINT,
        Kind.TEXT,
        Kind.VARCHAR,
        Kind.DATE,
        Kind.TIME,
        Kind.TIMESTAMP,
        Kind.TIMESTAMPTZ,
        Kind.BOOLEAN,
        Kind.UUID,
    }
)
"""Kinds whose Python values are ordered as in SQL; numbers may be NaN, so each is checked."""


class _Comparison(NamedTuple):
    side: e.Expression
    sign: str
    value: e.Literal


def implies(given: Iterable[e.Expression], wanted: e.Expression) -> bool:
    """Whether every row for which all of `given` are true has `wanted` true."""
    return any(_one_implies(one, wanted) for one in given)


def _one_implies(given: e.Expression, wanted: e.Expression) -> bool:
    if given == wanted:
        return True
    if isinstance(wanted, e.Or):
        return any(_one_implies(given, one) for one in wanted.operands)
    if isinstance(wanted, e.And):
        return all(_one_implies(given, one) for one in wanted.operands)
    if isinstance(given, e.Or):
        return all(_one_implies(one, wanted) for one in given.operands)
    if isinstance(given, e.And):
        return any(_one_implies(one, wanted) for one in given.operands)
    if isinstance(wanted, e.Test):
        return wanted.truth is e.Truth.NULL and wanted.negated and _is_strict(given, wanted.operand)
    return _implies_comparison(given, _match_comparison(wanted))


def _is_strict(given: e.Expression, side: e.Expression) -> bool:
    """Whether the condition is never true when `side` is NULL."""
    match given:
        case e.Call():
            return given.function.strict and side in given.arguments
        case e.InList():
            return given.operand == side
        case _:
            return False


def _match_comparison(condition: e.Expression) -> _Comparison | None:
    if not isinstance(condition, e.Call) or condition.function.name not in FLIPPED:
        return None
    left, right = condition.arguments
    sign = condition.function.name
    if isinstance(left, e.Literal):
        left, right, sign = right, left, FLIPPED[sign]
    if not isinstance(right, e.Literal) or isinstance(left, e.Literal) or not _has_order(right):
        return None
    return _Comparison(left, sign, right)


def _has_order(literal: e.Literal) -> bool:
    if literal.value is None:
        return False
    if literal.type.kind in (Kind.NUMERIC, Kind.DOUBLE, Kind.REAL):
        return bool(literal.value == literal.value)
    return literal.type.kind in _ORDERED


def _implies_comparison(given: e.Expression, wanted: _Comparison | None) -> bool:
    if wanted is None:
        return False
    if isinstance(given, e.InList) and not given.negated and given.operand == wanted.side:
        return all(
            isinstance(item, e.Literal) and _bound_implies("=", item, wanted)
            for item in given.items
        )
    known = _match_comparison(given)
    return (
        known is not None
        and known.side == wanted.side
        and _bound_implies(known.sign, known.value, wanted)
    )


def _bound_implies(sign: str, value: e.Literal, wanted: _Comparison) -> bool:
    """Whether `side sign value` implies `side wanted.sign wanted.value`."""
    if value.value is None:
        return True  # never true
    if value.type.kind is not wanted.value.type.kind or not _has_order(value):
        return False
    mine, theirs = value.value, wanted.value.value
    if sign == "=":
        return bool(_TESTS[wanted.sign](mine, theirs))
    if sign == "<>":
        return wanted.sign == "<>" and bool(mine == theirs)
    if wanted.sign == "<>":
        return not _TESTS[sign](theirs, mine)
    if sign[0] != wanted.sign[0]:
        return False
    beyond = operator.gt if sign[0] == ">" else operator.lt
    if beyond(mine, theirs):
        return True
    return bool(mine == theirs) and (sign == wanted.sign or wanted.sign.endswith("="))
