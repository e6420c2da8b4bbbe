"""AND, OR, NOT and the IS tests: three-valued logic, so none of them is strict.

Executors are free to evaluate AND and OR without calling these; the meaning is the same.
"""

from __future__ import annotations

from typing import Any

from belvedere.plan.functions.core.function import Function, scalar


def logical_and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def logical_or(left: bool | None, right: bool | None) -> bool | None:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def logical_not(value: bool) -> bool:
    return not value


def is_null(value: Any) -> bool:
    return value is None


def is_not_null(value: Any) -> bool:
    return value is not None


FUNCTIONS: tuple[Function, ...] = (
    scalar("and(bool,bool) bool", logical_and, "_0 AND _1", strict=False),
    scalar("or(bool,bool) bool", logical_or, "_0 OR _1", strict=False),
    scalar("not(bool) bool", logical_not, "NOT _0"),
    scalar("is null(any) bool", is_null, "_0 IS NULL", strict=False),
    scalar("is not null(any) bool", is_not_null, "_0 IS NOT NULL", strict=False),
    scalar("is true(bool) bool", lambda v: v is True, "_0 IS TRUE", strict=False),
    scalar("is not true(bool) bool", lambda v: v is not True, "_0 IS NOT TRUE", strict=False),
    scalar("is false(bool) bool", lambda v: v is False, "_0 IS FALSE", strict=False),
    scalar("is not false(bool) bool", lambda v: v is not False, "_0 IS NOT FALSE", strict=False),
    scalar("is unknown(bool) bool", is_null, "_0 IS NULL", strict=False),
    scalar("is not unknown(bool) bool", is_not_null, "_0 IS NOT NULL", strict=False),
)
