"""Type coercion: inserts casts, reads literals, infers parameter types, resolves calls.

An untyped literal is read by its target's input function right here, so that a bad one is an error
of the statement with a position. A parameter without a type takes the first type it is coerced to;
wherever else it is used it is cast from that.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Sequence
from dataclasses import replace

from belvedere.errors import Error, InvalidInput
from belvedere.plan import expressions as e
from belvedere.plan.functions.cast.casts import CastContext, cast_function, is_relabelling
from belvedere.plan.functions.core.function import Function
from belvedere.plan.functions.core.overloads import common_type
from belvedere.plan.functions.datetime.session_zone import bind_to_zone, depends_on_zone
from belvedere.plan.functions.registry import ResolvedCall, resolve
from belvedere.sql.bind.binder import Binder
from belvedere.types import BOOLEAN, NAMED_OBJECT_KINDS, TEXT, TIMESTAMPTZ, UNKNOWN, Kind, SqlType
from belvedere.values.datetimes import UTC, in_zone

IMPLICIT, ASSIGNMENT, EXPLICIT = CastContext.IMPLICIT, CastContext.ASSIGNMENT, CastContext.EXPLICIT


def coerce(
    binder: Binder,
    expression: e.Expression,
    target: SqlType,
    context: CastContext = IMPLICIT,
    at: int | None = None,
) -> e.Expression:
    """The expression as `target`; 42804 (explicitly 42846) when the context does not allow it."""
    source = expression.type
    if source == target:
        return expression
    if source.kind is Kind.UNKNOWN:
        return _read_untyped(binder, expression, target, context, at)
    try:
        function = cast_function(source, target, context)
    except Error as error:
        raise with_position(error, at) from None
    if context is not EXPLICIT and is_relabelling(source, target):
        return expression
    if binder.zone is not UTC and depends_on_zone(function, (source,), target):
        function = bind_to_zone(function, binder.zone)
    return e.Cast(expression, target, function, context is EXPLICIT)


def _read_untyped(
    binder: Binder, expression: e.Expression, target: SqlType, context: CastContext, at: int | None
) -> e.Expression:
    """An untyped literal or parameter as `target`."""
    if isinstance(expression, e.Parameter):
        known = binder.parameters[expression.index - 1]
        if known == UNKNOWN:
            # A cast to varchar(3) makes the parameter a varchar, which is then cut.
            plain = SqlType(target.kind, element=target.element)
            plain = TEXT if target.kind in NAMED_OBJECT_KINDS else plain
            binder.parameters[expression.index - 1] = known = plain
        return coerce(binder, e.Parameter(expression.index, known), target, context, at)
    assert isinstance(expression, e.Literal)  # the columns of sub-queries have been settled
    if expression.value is None:
        return e.Literal(None, target)
    written = binder.literals.get(id(expression))
    at = at if written is None else written.constant.at
    function = cast_function(UNKNOWN, target, context)
    assert callable(function.python)
    if function.environment:  # a name in the catalog is looked up when the statement runs
        return e.Cast(e.Literal(expression.value, TEXT), target, function, context is EXPLICIT)
    try:
        with in_zone(binder.zone):
            literal = e.Literal(function.python(expression.value), target)
    except Error as error:
        raise with_position(error, at) from None
    if written is not None:
        binder.add_literal(literal, written.constant, function.python)
    return literal


def default_to_text(
    binder: Binder, expression: e.Expression, at: int | None = None
) -> e.Expression:
    """The expression, as text if its type is UNKNOWN."""
    if expression.type.kind is Kind.UNKNOWN:
        return coerce(binder, expression, TEXT, IMPLICIT, at)
    return expression


def unify_types(
    binder: Binder, expressions: Sequence[e.Expression], what: str, at: int | None
) -> tuple[SqlType, tuple[e.Expression, ...]]:
    """All as their common type (CASE, COALESCE, VALUES, UNION, ARRAY, IN); else 42804."""
    common = common_type([one.type for one in expressions])
    if common is None:
        types = ", ".join(sorted({str(one.type) for one in expressions}))
        raise InvalidInput(
            f"types of {what} cannot be matched",
            sqlstate="42804",
            position=None if at is None else at + 1,
            types=types,
        )
    return common, tuple([coerce(binder, one, common, IMPLICIT, at) for one in expressions])


def require_boolean(
    binder: Binder, expression: e.Expression, what: str, at: int | None
) -> e.Expression:
    """A condition: boolean, or an untyped literal or parameter that becomes one."""
    if expression.type.kind is Kind.UNKNOWN:
        return coerce(binder, expression, BOOLEAN, IMPLICIT, at)
    if expression.type.kind is not Kind.BOOLEAN:
        raise InvalidInput(
            f"argument of {what} must be boolean",
            sqlstate="42804",
            position=None if at is None else at + 1,
            type=str(expression.type),
        )
    return expression


# -- calls -----------------------------------------------------------------------------------------


def make_call(
    binder: Binder, name: str, arguments: Sequence[e.Expression], at: int | None = None
) -> e.Call:
    """A call of a scalar function or operator, its arguments cast to what it takes."""
    found, given = resolve_call(binder, name, arguments, at)
    return e.Call(specialize_function(found, binder.zone), given, found.result_type)


def resolve_call(
    binder: Binder, name: str, arguments: Sequence[e.Expression], at: int | None
) -> tuple[ResolvedCall, tuple[e.Expression, ...]]:
    if binder.zone is not UTC and name in _COMPARISONS:
        arguments = _coerce_to_instants(binder, arguments)
    try:
        found = resolve(name, [one.type for one in arguments])
    except Error as error:
        raise with_position(error, at) from None
    given = tuple(
        [
            coerce(binder, one, target, IMPLICIT, at)
            for one, target in zip(arguments, found.argument_types)
        ]
    )
    return found, given


@functools.lru_cache(maxsize=4096)
def _specialize_cached(name: str, argument_types: tuple[SqlType, ...]) -> Function:
    found = resolve(name, argument_types)
    if found.python is found.function.python:
        return found.function
    return replace(found.function, python=found.python)


def specialize_function(found: ResolvedCall, zone: datetime.tzinfo = UTC) -> Function:
    """The function with the Python form for these very types, so that executors need not ask."""
    function = found.function
    if function.specialize is not None:
        function = _specialize_cached(function.name, found.argument_types)
    if zone is not UTC and depends_on_zone(function, found.argument_types, found.result_type):
        return bind_to_zone(function, zone)
    return function


_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})


def _coerce_to_instants(
    binder: Binder, arguments: Sequence[e.Expression]
) -> Sequence[e.Expression]:
    """A TIMESTAMP or DATE is compared with a TIMESTAMPTZ as the instant it is in the zone."""
    kinds = {one.type.kind for one in arguments}
    if Kind.TIMESTAMPTZ not in kinds or not kinds & {Kind.TIMESTAMP, Kind.DATE}:
        return arguments
    return [coerce(binder, one, TIMESTAMPTZ) for one in arguments]


def make_comparison(
    binder: Binder, name: str, left: e.Expression, right: e.Expression, at: int | None
) -> e.Expression:
    return make_call(binder, name, (left, right), at)


def with_position(error: Error, at: int | None) -> Error:
    """The error with a position, if it has none yet."""
    if error.position is None and at is not None:
        error.position = at + 1
    return error
