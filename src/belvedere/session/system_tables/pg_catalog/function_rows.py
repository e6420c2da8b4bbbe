"""pg_proc, pg_aggregate, pg_operator and pg_cast: what the function registry knows."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

from belvedere.plan.functions import FunctionKind, functions_by_name
from belvedere.plan.functions.cast.casts import list_casts_of_types
from belvedere.plan.functions.core.function import Function, Parameter, PseudoType
from belvedere.plan.functions.registry import is_operator
from belvedere.session.system_tables.pg_catalog import oids
from belvedere.session.system_tables.pg_catalog.columns import make_row_builder
from belvedere.session.system_tables.pg_catalog.type_rows import format_type
from belvedere.types import ObjectName, Row, SqlType
from belvedere.values.arrays import Vector
from belvedere.values.type_oids import find_oid

_SYSTEM = oids.SYSTEM_SCHEMA_OIDS["pg_catalog"]
_FUNCTION_OIDS = 20_000_000
_PSEUDO_TYPE_OIDS = {
    PseudoType.ANY: 2276,
    PseudoType.ANYELEMENT: 2283,
    PseudoType.ANYNONARRAY: 2776,
    PseudoType.ANYARRAY: 2277,
    PseudoType.ANYCOMPATIBLE: 5077,
    PseudoType.ANYCOMPATIBLENONARRAY: 5079,
    PseudoType.ANYCOMPATIBLEARRAY: 5078,
}
_KIND_LETTERS = {FunctionKind.AGGREGATE: "a", FunctionKind.WINDOW: "w"}


@functools.cache
def find_functions() -> Mapping[int, Function]:
    """The functions by OID."""
    functions = [
        function
        for name, overloads in sorted(functions_by_name().items())
        if not is_operator(name) and " " not in name
        for function in overloads
    ]
    return dict(enumerate(functions, _FUNCTION_OIDS))


def list_functions() -> Iterator[Row]:
    build = make_row_builder("pg_proc")
    for oid, function in find_functions().items():
        arguments = [_find_parameter_oid(one) for one in function.arguments]
        yield build(
            oid=oid,
            proname=function.name,
            pronamespace=_SYSTEM,
            proowner=oids.OWNER_OID,
            prolang=oids.INTERNAL_LANGUAGE_OID,
            procost=1.0,
            prorows=1000.0 if function.kind is FunctionKind.SET else 0.0,
            provariadic=arguments[-1] if function.variadic else 0,
            prokind=_KIND_LETTERS.get(function.kind, "f"),
            proisstrict=function.strict,
            proretset=function.kind is FunctionKind.SET,
            provolatile=function.volatility.value[0],
            proparallel="s",
            pronargs=len(arguments),
            prorettype=_find_parameter_oid(function.result),
            proargtypes=Vector(arguments),
            prosrc=function.name,
        )


def list_aggregates() -> Iterator[Row]:
    build = make_row_builder("pg_aggregate")
    for oid, function in find_functions().items():
        if function.kind is FunctionKind.AGGREGATE:
            yield build(
                aggfnoid=ObjectName(oid, function.name),
                aggkind="n" if function.direct is None else "o",
                aggnumdirectargs=function.direct or 0,
            )


def format_arguments(oid: int) -> str | None:
    """The argument types of a function."""
    function = find_functions().get(oid)
    if function is None:
        return None
    names = [_format_parameter_type(one) for one in function.arguments]
    if function.variadic:
        names[-1] = f"VARIADIC {names[-1]}"
    if function.direct is None:
        return ", ".join(names)
    direct, ordered = names[: function.direct], names[function.direct :]
    return " ".join([*[", ".join(direct)] * bool(direct), "ORDER BY", ", ".join(ordered)])


def format_result_type(oid: int) -> str | None:
    function = find_functions().get(oid)
    if function is None:
        return None
    shown = _format_parameter_type(function.result)
    return f"SETOF {shown}" if function.kind is FunctionKind.SET else shown


def _format_parameter_type(parameter: Parameter) -> str:
    return str(format_type(_find_parameter_oid(parameter), None))


def _find_parameter_oid(parameter: Parameter) -> int:
    if isinstance(parameter, PseudoType):
        return _PSEUDO_TYPE_OIDS[parameter]
    return find_oid(parameter)


def list_operators() -> Iterator[Row]:
    """Operators that can be written; names of others have a letter in them."""
    build = make_row_builder("pg_operator")
    for name, overloads in sorted(functions_by_name().items()):
        if any(one.isalpha() or one == " " for one in name):
            continue
        for function in overloads:
            left, right = [0, *map(_find_parameter_oid, function.arguments)][-2:]
            yield build(
                oid=oids.hash_name_oid(function.signature),
                oprname=name,
                oprnamespace=_SYSTEM,
                oprowner=oids.OWNER_OID,
                oprkind="b" if left else "l",
                oprleft=left,
                oprright=right,
                oprresult=_find_parameter_oid(function.result),
            )


def list_casts() -> Iterator[Row]:
    """Casts of types; from and to text every type has one, which is not listed."""
    build = make_row_builder("pg_cast")
    for source, target, context in list_casts_of_types():
        yield build(
            oid=oids.hash_name_oid(f"cast {source} as {target}"),
            castsource=find_oid(SqlType(source)),
            casttarget=find_oid(SqlType(target)),
            castcontext="iae"[context],
            castmethod="f",
        )
