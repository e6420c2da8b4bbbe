"""Functions that depend on the session's time zone, bound to a zone other than UTC.

Their Python forms read `values.datetimes.session_zone`, which is UTC by default. Under another zone
the binder takes `bind_to_zone(function, zone)` instead: the same function, which sets the zone
around each call and has no SQL form, so that every tier runs it in Python. Such a plan means the
same in every session that runs it; expressions stored in the catalog are always bound under UTC.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from belvedere.plan.functions.core.function import (
    Accumulator,
    Function,
    FunctionKind,
    Types,
    Volatility,
)
from belvedere.types import Kind, SqlType
from belvedere.values.datetimes import UTC, in_zone

_LOCAL = frozenset({"current_date", "localtime", "localtimestamp"})


def depends_on_zone(function: Function, types: tuple[SqlType, ...], result: SqlType) -> bool:
    """Whether the result of a call with these argument types depends on the session's zone."""
    if function.name in _LOCAL or function.name == "age":
        return True
    if function.name == "cast":
        return len({_has_zone(one) for one in (*types, result)}) == 2
    if function.volatility is not Volatility.STABLE:
        return False
    return any(_has_zone(one) for one in (*types, result))


def _has_zone(sql_type: SqlType) -> bool:
    if sql_type.element is not None:
        return _has_zone(sql_type.element)
    return sql_type.kind is Kind.TIMESTAMPTZ


@functools.lru_cache(maxsize=4096)
def bind_to_zone(function: Function, zone: datetime.tzinfo) -> Function:
    """The function bound to the zone."""
    if zone is UTC:
        return function
    specialize = function.specialize
    specialize_in_zone: Callable[[Types], Callable[..., Any] | Accumulator] | None = None
    if specialize is not None:
        known = specialize

        def specialize_in_zone(types: Types) -> Callable[..., Any] | Accumulator:
            return _form_in_zone(known(types), zone, function.kind)

    return replace(
        function,
        python=_form_in_zone(function.python, zone, function.kind),
        sql=None,
        udf=False,
        partial=None,
        specialize=specialize_in_zone,
    )


def _form_in_zone(
    form: Callable[..., Any] | Accumulator, zone: datetime.tzinfo, kind: FunctionKind
) -> Callable[..., Any] | Accumulator:
    if isinstance(form, Accumulator):
        return Accumulator(
            form.initial, _call_in_zone(form.step, zone), _call_in_zone(form.finish, zone)
        )
    if kind is not FunctionKind.SET:
        return _call_in_zone(form, zone)
    rows = form

    def all_rows(*arguments: Any) -> list[Any]:
        with in_zone(zone):
            return list(rows(*arguments))

    return all_rows


def _call_in_zone(form: Callable[..., Any], zone: datetime.tzinfo) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        with in_zone(zone):
            return form(*arguments)

    return call
