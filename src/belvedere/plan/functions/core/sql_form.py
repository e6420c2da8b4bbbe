"""The SQL form of a call: templates to sqlglot trees in DuckDB's dialect.

Only this module of the package needs sqlglot, and imports it on first use: statements that run in
the direct tier do not pay for it.

A template names its arguments `_0`, `_1`, ... An argument used more than once must be cheap to
repeat; any other is bound once, through a lambda over a one-element list. A form raises a named
error through `error_sql(sqlstate, message)`; `sqlstate_of` reads it back from DuckDB's exception.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from belvedere.plan.functions.core.function import (
    Function,
    PseudoType,
    PythonForm,
    Types,
    type_name,
)
from belvedere.types import Kind, SqlType

if TYPE_CHECKING:
    from sqlglot import exp

DECIMAL_DIGITS_MAX = 38

_DUCKDB_TYPES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.SMALLINT: "SMALLINT",
    Kind.INTEGER: "INTEGER",
    Kind.BIGINT: "BIGINT",
    Kind.REAL: "FLOAT",
    Kind.DOUBLE: "DOUBLE",
    Kind.CHAR: "VARCHAR",
    Kind.VARCHAR: "VARCHAR",
    Kind.TEXT: "VARCHAR",
    Kind.JSON: "VARCHAR",
    Kind.BYTEA: "BLOB",
    Kind.DATE: "DATE",
    Kind.TIME: "TIME",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.TIMESTAMPTZ: "TIMESTAMPTZ",
    Kind.INTERVAL: "INTERVAL",
    Kind.UUID: "UUID",
    Kind.UNKNOWN: "VARCHAR",
}
# Types passed to a Python UDF as text, because DuckDB's own passing loses or lacks their values.
TEXT_IN_UDF = {Kind.NUMERIC, Kind.UUID}

_SQLSTATES = [
    (re.compile(pattern, re.IGNORECASE), sqlstate)
    for pattern, sqlstate in (
        (r"\[belvedere (?P<sqlstate>[0-9A-Z]{5})\]", ""),
        (r"division by zero", "22012"),
        (r"must not end with escape", "22025"),
        (r"square root of a negative", "2201F"),
        (r"logarithm of", "2201E"),
        (
            r"(date|time|timestamp|interval)\b.*(out of range|overflow)"
            r"|(overflow|out of range).*(date|timestamp|interval)",
            "22008",
        ),
        (r"overflow|out of range|failed to cast decimal|too (large|big|small)", "22003"),
        (r"could not convert string|invalid (uuid|boolean)", "22P02"),
        (r"can't be cast|could not cast", "22003"),
    )
]


def error_sql(sqlstate: str, message: str) -> str:
    """The part of a template that fails with `sqlstate`."""
    return f"error('[belvedere {sqlstate}] {message}')"


def sqlstate_of(message: str) -> str | None:
    """The SQLSTATE behind the text of a DuckDB exception; None when it is not one of ours."""
    for pattern, sqlstate in _SQLSTATES:
        match = pattern.search(message)
        if match is not None:
            return sqlstate or match["sqlstate"]
    return None


def exceeds_duckdb_digits(message: str) -> bool:
    """Whether a DuckDB exception means that a value PostgreSQL can hold exceeds its 38 digits.

    The statement is correct; run it in Python.
    """
    return (
        re.search(
            r"overflow in .*(DECIMAL|HUGEINT)|could not cast .* to DECIMAL", message, re.IGNORECASE
        )
        is not None
    )


def duckdb_type(sql_type: SqlType) -> str | None:
    """DuckDB's name for a type, or None when DuckDB cannot hold its values (unbounded NUMERIC)."""
    if sql_type.element is not None:
        element = duckdb_type(sql_type.element)
        return None if element is None else element + "[]"
    if sql_type.kind is Kind.NUMERIC:
        if sql_type.precision is None or not 0 <= (sql_type.scale or 0) <= sql_type.precision:
            return None
        if sql_type.precision > DECIMAL_DIGITS_MAX:
            return None
        return f"DECIMAL({sql_type.precision},{sql_type.scale or 0})"
    return _DUCKDB_TYPES.get(sql_type.kind)  # system catalogs' types: none


def udf_name(function: Function) -> str:
    """The name under which a function's Python form is registered with DuckDB."""
    name = (
        function.name
        if function.name.isidentifier()
        else "".join(f"x{ord(c):x}" for c in function.name)
    )
    types = [type_name(argument).replace("[]", "_array") for argument in function.arguments]
    if function.name == "cast":
        types.append(type_name(function.result))
    return "_".join(["belvedere", name, *types])


def sql_template(function: Function, types: Types) -> str | None:
    """The template for a call with arguments of `types` (NUMERIC ones bounded), or None."""
    form = function.sql
    if form is None or any(duckdb_type(one) is None for one in types):
        return None
    if isinstance(form, str):
        return form
    if isinstance(form, PythonForm):
        result = function.result
        if function.variadic or isinstance(result, PseudoType) or duckdb_type(result) is None:
            return None
        arguments = ", ".join(
            f"CAST(_{i} AS VARCHAR)" if one.kind in TEXT_IN_UDF else f"_{i}"
            for i, one in enumerate(types)
        )
        call = f"{udf_name(function)}({arguments})"
        return f"CAST({call} AS UUID)" if result.kind is Kind.UUID else call
    return form(types)


def build_sql(
    function: Function,
    types: Types,
    arguments: Sequence[exp.Expression],
    decorate: Callable[[exp.Expression], exp.Expression] | None = None,
) -> exp.Expression | None:
    """The DuckDB expression of a call, or None when there is no exact one.

    `types` are the parameter types after coercion, NUMERIC ones with the bounds the planner knows.
    `decorate` puts DISTINCT, FILTER, WITHIN GROUP or OVER around the aggregate or window call.
    """
    template = sql_template(function, types)
    if template is None:
        return None
    before, opening, rest = template.partition("[[")
    if not opening:
        return substitute_arguments(template, arguments)
    call, _, after = rest.partition("]]")
    inner = substitute_arguments(call, arguments, repeat=True)
    if decorate is not None:
        inner = decorate(inner)
    return (
        inner if not before and not after else substitute_arguments(f"{before}_0{after}", [inner])
    )


def substitute_arguments(
    template: str, arguments: Sequence[exp.Expression], repeat: bool = False
) -> exp.Expression:
    """The template with its arguments in place.

    `repeat` writes an argument out as often as it is used: around aggregates nothing can be bound.
    """
    glot = _import_sqlglot()
    tree, repeated = _parse_template(template, len(arguments))
    atomic = (
        glot.exp.Column,
        glot.exp.Literal,
        glot.exp.Boolean,
        glot.exp.Null,
        glot.exp.Parameter,
    )
    if not repeat and any(not isinstance(arguments[i], atomic) for i in repeated):
        tree, _ = _parse_template(_bind_arguments_once(template, len(arguments)), len(arguments))
    parts = {f"_{i}": one for i, one in enumerate(arguments)}
    simple = (*atomic, glot.exp.Func, glot.exp.Paren)

    def replace_argument(node: exp.Expression) -> exp.Expression:
        if isinstance(node, glot.exp.Column) and not node.table and node.name in parts:
            part = parts[node.name].copy()
            # To sqlglot AND, OR and -> are functions too.
            whole = isinstance(part, simple) and not isinstance(part, glot.exp.Binary)
            wrapped: exp.Expression = part if whole else glot.exp.Paren(this=part)
            return wrapped
        return node

    return tree.copy().transform(replace_argument)


def _bind_arguments_once(template: str, count: int) -> str:
    """The template with its arguments evaluated once, however often it uses them."""
    fields = ", ".join(f"f{i} := _{i}" for i in range(count))
    body = re.sub(r"(?<![\w'])_(\d+)\b", r"_s.f\1", template)
    return f"list_transform([struct_pack({fields})], lambda _s: {body})[1]"


@functools.lru_cache(maxsize=4096)
def _parse_template(template: str, count: int) -> tuple[exp.Expression, tuple[int, ...]]:
    glot = _import_sqlglot()
    # Variadic forms write `_*` for all their arguments.
    text = template.replace("_*", ", ".join(f"_{i}" for i in range(count)))
    tree = glot.parse_one(text, dialect="duckdb")
    names = [column.name for column in tree.find_all(glot.exp.Column)]
    return tree, tuple(i for i in range(count) if names.count(f"_{i}") > 1)


@functools.cache
def _import_sqlglot() -> Any:
    import sqlglot  # heavy

    return sqlglot
