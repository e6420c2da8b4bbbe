"""The registry of all functions and operators, and the resolution of calls to overloads.

`resolve` finds the overload of a call by PostgreSQL's rules. A name that neither has is 42883, one
that only PostgreSQL has is `Unsupported`. Operators are functions named by their symbol.
`FAMILIES` lists the modules whose functions are registered.
"""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from belvedere.errors import Unsupported
from belvedere.plan.functions.aggregate import aggregates, statistical, windows
from belvedere.plan.functions.cast.casts import base_casts
from belvedere.plan.functions.core.duckdb_udf import Udf, describe_udf
from belvedere.plan.functions.core.function import Accumulator, Function, Types
from belvedere.plan.functions.core.overloads import (
    choose_operator,
    choose_overload,
    result_type,
)
from belvedere.plan.functions.datetime import arithmetic, construct, extract, format_datetime
from belvedere.plan.functions.logic import (
    booleans,
    comparison,
    keywords,
    session_info,
    system_catalog,
)
from belvedere.plan.functions.nested import arrays, generate_series, json, json_records
from belvedere.plan.functions.numeric import (
    decimal_math,
    decimals,
    floats,
    format_number,
    integers,
    random,
    size_pretty,
)
from belvedere.plan.functions.text import byte_strings, concat_format, like, regex, strings
from belvedere.types import INTEGER, TEXT, SqlType

FAMILIES = (
    booleans,
    comparison,
    integers,
    floats,
    decimals,
    decimal_math,
    strings,
    byte_strings,
    like,
    regex,
    concat_format,
    arrays,
    json,
    json_records,
    arithmetic,
    extract,
    construct,
    format_datetime,
    format_number,
    size_pretty,
    generate_series,
    aggregates,
    statistical,
    windows,
    session_info,
    system_catalog,
    keywords,
    random,
)


@dataclass(frozen=True, slots=True)
class ResolvedCall:
    """A resolved call: the overload, the types its arguments are cast to, the result type.

    `python` is the Python form for these types: executors call it, not the overload's own.
    """

    function: Function
    argument_types: Types
    result_type: SqlType
    python: Callable[..., Any] | Accumulator


@functools.cache
def functions_by_name() -> dict[str, tuple[Function, ...]]:
    """Every overload by name."""
    found: dict[str, list[Function]] = {}
    for family in FAMILIES:
        for function in family.FUNCTIONS:
            found.setdefault(function.name, []).append(function)
    return {name: tuple(functions) for name, functions in found.items()}


@functools.cache
def postgres_names() -> frozenset[str]:
    """PostgreSQL's function names: one missing here is unsupported, not a wrong name."""
    file = importlib.resources.files("belvedere.plan.functions") / "postgres_names.txt"
    return frozenset(file.read_text().split())


def is_operator(name: str) -> bool:
    return not (name[0].isalpha() or name[0] == "_") or name.startswith("is ")


@functools.lru_cache(maxsize=8192)
def _resolve_cached(name: str, types: Types) -> ResolvedCall:
    functions = functions_by_name().get(name, ())
    if not functions and name in postgres_names():
        raise Unsupported("function is not supported", function=name)
    chosen = choose_operator if is_operator(name) else choose_overload
    function, parameters = chosen(name, functions, types)
    python = function.python if function.specialize is None else function.specialize(parameters)
    return ResolvedCall(function, parameters, result_type(function, parameters), python)


def resolve(name: str, argument_types: Sequence[SqlType]) -> ResolvedCall:
    """The overload that a call of `name` means; 42883 when none fits, 42725 when several do.

    A function that PostgreSQL has and the registry has not is `Unsupported`, by name.
    """
    return _resolve_cached(name, tuple(argument_types))


@functools.cache
def duckdb_udfs() -> dict[str, Udf]:
    """The Python forms to register on a DuckDB connection, by name; `udf.register` does it."""
    functions = [function for overloads in functions_by_name().values() for function in overloads]
    udfs = (describe_udf(function) for function in (*functions, *base_casts()))
    return {udf.name: udf for udf in udfs if udf is not None}


def list_result_columns(name: str, result: SqlType) -> tuple[tuple[str, SqlType], ...]:
    """The columns of a set-returning function's rows, by the type that it is declared with."""
    match name:
        case "json_each" | "json_each_text":
            return ("key", TEXT), ("value", result)
        case "_pg_expandarray":
            return ("x", result), ("n", INTEGER)
        case "pg_get_keywords":
            return keywords.KEYWORD_COLUMNS
        case "pg_available_extensions":
            return tuple([(column, TEXT) for column in system_catalog.EXTENSION_COLUMNS])
        case "json_array_elements" | "json_array_elements_text":
            return (("value", result),)
        case _:
            return ((name, result),)
