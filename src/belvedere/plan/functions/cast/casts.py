"""Casts: which exist in which context, and their Python and SQL forms.

Three contexts, each allowing what the one before allows: implicit (overloads, common types),
assignment (storing into a column), explicit (CAST). Everything casts to text on assignment and from
text explicitly, by PostgreSQL's output and input syntax. A type modifier is applied last:
NUMERIC(p,s) rounds; VARCHAR(n) and CHAR(n) cut on an explicit cast and refuse otherwise. An untyped
literal (UNKNOWN) is read by the target's input function in any context.

A cast is a `Function` named "cast" of one argument.
"""

from __future__ import annotations

import enum
import functools
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from belvedere.errors import InvalidInput
from belvedere.plan.functions.cast import conversions as convert
from belvedere.plan.functions.core.function import (
    UDF,
    Environment,
    Function,
    PythonForm,
    SqlForm,
    Types,
    Volatility,
    type_by_name,
)
from belvedere.plan.functions.core.sql_form import error_sql, sql_template
from belvedere.types import (
    NAMED_OBJECT_KINDS,
    TEXT,
    TIMED_KINDS,
    UNKNOWN,
    Kind,
    SqlType,
    numeric_type,
)
from belvedere.values import (
    arrays,
    datetime_text,
    datetimes,
    decimals,
    intervals,
    numbers,
    second_precision,
    texts,
)
from belvedere.values.numbers import INT2_MAX, INT4_MAX, INT8_MAX

Form = Callable[[Any], Any]


class CastContext(enum.IntEnum):
    IMPLICIT = 0
    ASSIGNMENT = 1
    EXPLICIT = 2


_STRINGS = (Kind.CHAR, Kind.VARCHAR, Kind.TEXT)


def _identity(value: Any) -> Any:
    return value


def output_boolean(value: bool) -> str:
    """How a boolean prints inside arrays and concat; a cast to text spells it out."""
    return "t" if value else "f"


PARSERS: dict[Kind, Form] = {
    Kind.BOOLEAN: numbers.parse_boolean,
    Kind.SMALLINT: numbers.parse_int2,
    Kind.INTEGER: numbers.parse_int4,
    Kind.BIGINT: numbers.parse_int8,
    Kind.NUMERIC: decimals.parse_numeric,
    Kind.REAL: numbers.parse_float4,
    Kind.DOUBLE: numbers.parse_float8,
    Kind.CHAR: _identity,
    Kind.VARCHAR: _identity,
    Kind.TEXT: _identity,
    Kind.UNKNOWN: _identity,
    Kind.JSON: texts.parse_json,
    Kind.BYTEA: texts.parse_bytea,
    Kind.DATE: datetime_text.parse_date,
    Kind.TIME: datetime_text.parse_time,
    Kind.TIMESTAMP: datetime_text.parse_timestamp,
    Kind.TIMESTAMPTZ: datetime_text.parse_timestamptz,
    Kind.INTERVAL: intervals.parse_interval,
    Kind.UUID: texts.parse_uuid,
    Kind.OID: numbers.parse_oid,
}
FORMATTERS: dict[Kind, Form] = {
    Kind.BOOLEAN: output_boolean,
    Kind.SMALLINT: str,
    Kind.INTEGER: str,
    Kind.BIGINT: str,
    Kind.NUMERIC: decimals.format_numeric,
    Kind.REAL: numbers.format_float4,
    Kind.DOUBLE: numbers.format_float8,
    Kind.CHAR: _identity,
    Kind.VARCHAR: _identity,
    Kind.TEXT: _identity,
    Kind.UNKNOWN: _identity,
    Kind.JSON: _identity,
    Kind.BYTEA: texts.format_bytea,
    Kind.DATE: datetimes.format_date,
    Kind.TIME: datetimes.format_time,
    Kind.TIMESTAMP: datetimes.format_timestamp,
    Kind.TIMESTAMPTZ: datetimes.format_timestamptz,
    Kind.INTERVAL: intervals.format_interval,
    Kind.UUID: texts.format_uuid,
    Kind.OID: str,
    **dict.fromkeys(NAMED_OBJECT_KINDS, operator.attrgetter("text")),
}
_STABLE = Volatility.STABLE


def text_parser(sql_type: SqlType) -> Form:
    """Text to a value of the type, ignoring modifiers: the type's input function."""
    if sql_type.element is not None:
        element = text_parser(sql_type.element)
        return lambda text: arrays.parse_array(text, element)
    return PARSERS[sql_type.kind]


def text_formatter(sql_type: SqlType) -> Form:
    """A value of the type to text: the type's output function."""
    if sql_type.element is not None:
        element = text_formatter(sql_type.element)
        if sql_type.vector:
            return lambda value: " ".join([element(one) for one in value])
        return lambda value: arrays.format_array(value, element)
    if sql_type.kind is Kind.RECORD:
        forms = [text_formatter(one) for _, one in sql_type.items]
        return lambda value: arrays.format_record(value, forms)
    return FORMATTERS[sql_type.kind]


def _cast_sql(name: str) -> str:
    return f"CAST(_0 AS {name})"


_INTEGER_BOUNDS = {
    Kind.SMALLINT: numeric_type(5, 0),
    Kind.INTEGER: numeric_type(10, 0),
    Kind.BIGINT: numeric_type(19, 0),
}


def _integer_casts() -> list[tuple[str, str, str, Form, SqlForm]]:
    sizes = {
        "int2": ("smallint", INT2_MAX, 2),
        "int4": ("integer", INT4_MAX, 4),
        "int8": ("bigint", INT8_MAX, 8),
    }
    casts: list[tuple[str, str, str, Form, SqlForm]] = []
    for name, (kind, high, size) in sizes.items():
        sql = _cast_sql(kind.upper())
        for other in sizes:
            if other < name:
                casts.append((other, name, "i", _identity, sql))
            elif other > name:
                casts.append((other, name, "a", convert.narrow_integer(kind, high), sql))
        for other in ("float4", "float8"):
            casts.append((other, name, "a", convert.float_to_integer(kind, high), sql))
        casts.append(("numeric", name, "a", convert.numeric_to_integer(kind, high), sql))
        casts.append((name, "numeric", "i", Decimal, _integer_to_numeric))
        casts.append((name, "float8", "i", float, _cast_sql("DOUBLE")))
        casts.append((name, "float4", "i", convert.integer_to_float4, UDF))
        casts.append((name, "bytea", "e", convert.integer_to_bytes(size), UDF))
        casts.append(("bytea", name, "e", convert.bytes_to_integer(kind, size), UDF))
    return casts


def _integer_to_numeric(types: Types) -> str:
    return _cast_sql(f"DECIMAL({_INTEGER_BOUNDS[types[0].kind].precision},0)")


def _oid_casts() -> list[tuple[str, str, str, Form, SqlForm]]:
    """Casts that only relabel a number; those to names need the catalog (`_make_naming_cast`)."""
    casts: list[tuple[str, str, str, Form, SqlForm]] = [
        ("int2", "oid", "i", convert.integer_to_oid, None),
        ("int4", "oid", "i", convert.integer_to_oid, None),
        ("int8", "oid", "i", convert.bigint_to_oid, None),
    ]
    for name in ("oid", *sorted(NAMED_OBJECT_KINDS)):
        casts.append((name, "int4", "a", convert.oid_to_int4, None))
        casts.append((name, "int8", "a", int, None))
        if name != "oid":
            casts.append((name, "oid", "i", int, None))
    return casts


_CAST_TABLE: list[tuple[str, str, str, Form, SqlForm]] = [
    *_integer_casts(),
    *_oid_casts(),
    ("float8", "numeric", "a", convert.float8_to_numeric, None),
    ("float4", "numeric", "a", convert.float4_to_numeric, None),
    ("numeric", "float8", "i", convert.numeric_to_float8, UDF),
    ("numeric", "float4", "i", convert.numeric_to_float4, UDF),
    ("float4", "float8", "i", _identity, _cast_sql("DOUBLE")),
    ("float8", "float4", "a", convert.float8_to_float4, UDF),
    ("bool", "int4", "e", int, _cast_sql("INTEGER")),
    ("int4", "bool", "e", bool, "_0 <> 0"),
    ("bool", "text", "a", numbers.format_boolean, _cast_sql("VARCHAR")),
    ("bpchar", "text", "i", texts.char_to_text, "rtrim(_0, ' ')"),
    ("varchar", "text", "i", _identity, "_0"),
    ("text", "varchar", "i", _identity, "_0"),
    ("date", "timestamp", "i", convert.date_to_timestamp, _cast_sql("TIMESTAMP")),
    ("date", "timestamptz", "i", convert.date_to_timestamptz, _cast_sql("TIMESTAMPTZ")),
    ("timestamp", "timestamptz", "i", convert.timestamp_to_timestamptz, _cast_sql("TIMESTAMPTZ")),
    ("timestamp", "date", "a", convert.to_date, _cast_sql("DATE")),
    ("timestamp", "time", "a", convert.to_time, _cast_sql("TIME")),
    ("timestamptz", "date", "a", convert.to_date, _cast_sql("DATE")),
    ("timestamptz", "time", "a", convert.to_time, "CAST(CAST(_0 AS TIMESTAMP) AS TIME)"),
    ("timestamptz", "timestamp", "a", convert.timestamptz_to_timestamp, _cast_sql("TIMESTAMP")),
    ("time", "interval", "i", convert.time_to_interval, UDF),
    ("interval", "time", "a", convert.interval_to_time, UDF),
]
_CONTEXTS = {"i": CastContext.IMPLICIT, "a": CastContext.ASSIGNMENT, "e": CastContext.EXPLICIT}
_TO_TEXT_SQL: dict[Kind, SqlForm] = {
    Kind.SMALLINT: _cast_sql("VARCHAR"),
    Kind.INTEGER: _cast_sql("VARCHAR"),
    Kind.BIGINT: _cast_sql("VARCHAR"),
    Kind.NUMERIC: lambda types: (
        None if types[0].precision == types[0].scale else _cast_sql("VARCHAR")
    ),
    Kind.DATE: _cast_sql("VARCHAR"),
    Kind.UUID: _cast_sql("VARCHAR"),
    Kind.JSON: "_0",
    Kind.BYTEA: "'\\x' || lower(hex(_0))",
}


def _make_cast(source: SqlType, target: SqlType, python: Form, sql: SqlForm) -> Function:
    zoned = {source.kind, target.kind} & {Kind.TIMESTAMPTZ} and source.kind is not target.kind
    texted = source.kind in _STRINGS or target.kind in _STRINGS or source.kind is Kind.UNKNOWN
    dated = {source.kind, target.kind} & {Kind.DATE, Kind.TIMESTAMP, Kind.TIME, Kind.INTERVAL}
    volatility = _STABLE if zoned or (texted and dated) else Volatility.IMMUTABLE
    bounds = None
    if source.kind in _INTEGER_BOUNDS and target.kind is Kind.NUMERIC:
        bounds = _integer_bounds
    return Function("cast", (source,), target, python, sql, volatility=volatility, bounds=bounds)


def _integer_bounds(types: Types) -> SqlType | None:
    return _INTEGER_BOUNDS[types[0].kind]


def _base_casts() -> dict[tuple[Kind, Kind], tuple[CastContext, Function]]:
    casts = {}
    for source, target, context, python, sql in _CAST_TABLE:
        left, right = type_by_name(source), type_by_name(target)
        assert isinstance(left, SqlType)
        assert isinstance(right, SqlType)
        casts[left.kind, right.kind] = (_CONTEXTS[context], _make_cast(left, right, python, sql))
    for kind in FORMATTERS:
        if kind in _STRINGS or kind is Kind.UNKNOWN:
            continue
        one = SqlType(kind)
        sql = _TO_TEXT_SQL.get(kind, UDF)
        if (kind, Kind.TEXT) not in casts:
            casts[kind, Kind.TEXT] = (
                CastContext.ASSIGNMENT,
                _make_cast(one, TEXT, FORMATTERS[kind], sql),
            )
        if kind in PARSERS:
            made = _make_cast(TEXT, one, PARSERS[kind], UDF)
            casts[Kind.TEXT, kind] = (CastContext.EXPLICIT, made)
    return casts | _naming_casts()


def _naming_casts() -> dict[tuple[Kind, Kind], tuple[CastContext, Function]]:
    """Casts of numbers and names to the names of objects."""
    casts = {}
    for target in NAMED_OBJECT_KINDS:
        for source in (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.OID, Kind.TEXT):
            implicit = source is not Kind.TEXT or target is Kind.REGCLASS
            context = CastContext.IMPLICIT if implicit else CastContext.EXPLICIT
            casts[source, target] = context, _make_naming_cast(SqlType(source), SqlType(target))
    return casts


def _make_naming_cast(source: SqlType, target: SqlType) -> Function:
    question = f"{target.kind.value} of {'text' if source.kind is Kind.TEXT else 'oid'}"

    def name_object(environment: Environment, value: Any) -> Any:
        assert environment.ask_catalog is not None
        return environment.ask_catalog(question, value)

    return Function("cast", (source,), target, name_object, volatility=_STABLE, environment=True)


_BASE_CASTS = _base_casts()


def base_casts() -> list[Function]:
    """Every cast between two types, without modifiers."""
    return [function for _, function in _BASE_CASTS.values()]


def list_casts_of_types() -> list[tuple[Kind, Kind, CastContext]]:
    """Those that are not a type's own text form."""
    return [
        (source, target, context)
        for (source, target), (context, _) in _BASE_CASTS.items()
        if (target is not Kind.TEXT or source in _STRINGS)
        and (source is not Kind.TEXT or target in (*_STRINGS, Kind.REGCLASS))
        and Kind.UNKNOWN not in (source, target)
    ]


@functools.lru_cache(maxsize=4096)
def cast_function(
    source: SqlType, target: SqlType, context: CastContext = CastContext.EXPLICIT
) -> Function:
    """The cast from `source` to `target`, modifiers of the target applied.

    Raises 42846 when there is none, 42804 when there is one but not in this context.
    """
    found = _find_base_cast(source, target, context)
    if found is None:
        sqlstate = "42846" if context is CastContext.EXPLICIT else "42804"
        raise InvalidInput(
            "cannot cast type", sqlstate=sqlstate, source=str(source), target=str(target)
        )
    return _apply_modifier(found, source, target, context)


def is_relabelling(source: SqlType, target: SqlType) -> bool:
    """True when the cast changes no value, so that an executor may leave it out."""
    if target.length is not None or target.precision is not None or source.kind is Kind.CHAR:
        return source == target
    if source.element is not None and target.element is not None:
        return is_relabelling(source.element, target.element)
    return source.kind is target.kind or {source.kind, target.kind} <= {Kind.TEXT, Kind.VARCHAR}


def _find_base_cast(source: SqlType, target: SqlType, context: CastContext) -> Function | None:
    if source.element is not None or target.element is not None:
        return _array_cast(source, target, context)
    if source.kind is target.kind:
        return _make_cast(source, target, _identity, "_0")
    if target.kind is Kind.RECORD:
        return None
    if source.kind is Kind.UNKNOWN and target.kind not in NAMED_OBJECT_KINDS:
        return _make_cast(UNKNOWN, target, PARSERS[target.kind], None)
    if source.kind is Kind.RECORD:
        textual = target.kind in _STRINGS and context is not CastContext.IMPLICIT
        return _make_cast(source, target, text_formatter(source), UDF) if textual else None
    text_source = source.kind in _STRINGS or source.kind is Kind.UNKNOWN
    text_target = target.kind in _STRINGS
    if text_source and text_target:
        strip = source.kind is Kind.CHAR and target.kind is not Kind.CHAR
        return _make_cast(
            source,
            target,
            texts.char_to_text if strip else _identity,
            "rtrim(_0, ' ')" if strip else "_0",
        )
    pair = (Kind.TEXT if text_source else source.kind, Kind.TEXT if text_target else target.kind)
    known = _BASE_CASTS.get(pair)
    if known is None or known[0] > context:
        return None
    return known[1]


def _array_cast(source: SqlType, target: SqlType, context: CastContext) -> Function | None:
    if source.element is not None and target.element is not None:
        element = _find_base_cast(source.element, target.element, context)
        if element is None:
            return None
        element = _apply_modifier(element, source.element, target.element, context)
        if element.environment:
            form = _map_elements_in_environment(element)
            return Function("cast", (source,), target, form, volatility=_STABLE, environment=True)
        return _make_cast(source, target, _map_elements(element), None)
    if source.kind is Kind.UNKNOWN or (source.kind in _STRINGS and context is CastContext.EXPLICIT):
        return _make_cast(source, target, text_parser(target), None)
    if target.kind in _STRINGS and context >= CastContext.ASSIGNMENT:
        return _make_cast(source, target, text_formatter(source), None)
    return None


def _map_elements(element: Function) -> Form:
    form = element.python
    assert callable(form)
    return lambda values: [None if value is None else form(value) for value in values]


def _map_elements_in_environment(element: Function) -> Callable[..., Any]:
    form = element.python
    assert callable(form)
    return lambda environment, values: [
        None if value is None else form(environment, value) for value in values
    ]


def _apply_modifier(
    base: Function, source: SqlType, target: SqlType, context: CastContext
) -> Function:
    """`base` followed by the conversion of the target's modifier (length, precision)."""
    if target.kind is Kind.NUMERIC and target.precision is not None:
        if source == target:
            return base
        precision, scale = target.precision, target.scale or 0
        fit = functools.partial(_fit_numeric, precision, scale)
        return _compose_cast(
            base, source, target, fit, f"CAST({{}} AS DECIMAL({precision},{scale}))"
        )
    if target.kind in TIMED_KINDS and target.precision is not None:
        if source == target:
            return base
        round_ = functools.partial(second_precision.ROUNDERS[target.kind], target.precision)
        return _compose_cast(base, source, target, round_, second_precision.rounding_sql(target))
    if base.environment:  # names of objects have no modifier
        return base
    if target.length is None:
        return _compose_cast(base, source, target, None, "{}")
    explicit = context is CastContext.EXPLICIT
    length = target.length
    failure = error_sql("22001", "value too long")
    guard = (
        f"CASE WHEN length({{0}}) > {length} AND length(rtrim({{0}}, ' ')) > {length} "
        f"THEN {failure} ELSE left({{0}}, {length}) END"
    )
    if target.kind is Kind.VARCHAR:
        form = texts.cut_varchar if explicit else texts.fit_varchar
        return _compose_cast(
            base,
            source,
            target,
            lambda v: form(v, length),
            f"left({{}}, {length})" if explicit else guard,
        )
    pad = texts.cut_char if explicit else texts.fit_char
    inner = "{}" if explicit else f"({guard})"
    return _compose_cast(
        base, source, target, lambda v: pad(v, length), f"rpad({inner}, {length}, ' ')"
    )


def _fit_numeric(precision: int, scale: int, value: Any) -> Any:
    return decimals.fit(value, precision, scale)


def _compose_cast(
    base: Function, source: SqlType, target: SqlType, after: Form | None, template: str | None
) -> Function:
    """`base` followed by `after`; `template` is its SQL form, None where DuckDB has none."""
    form = base.python
    assert callable(form)
    python: Form
    if after is None:
        python = form
    elif form is _identity:
        python = after
    else:
        last = after
        python = lambda value: last(form(value))  # noqa: E731  a named def says no more here
    sql = None if template is None else _wrap_sql(base, template)
    bounds = base.bounds
    if target.kind is Kind.NUMERIC and target.precision is not None:
        bounds = lambda types: target  # noqa: E731
    elif target.kind is Kind.NUMERIC and source.kind is Kind.NUMERIC:
        bounds = lambda types: types[0]  # noqa: E731
    return Function(
        "cast", (source,), target, python, sql, volatility=base.volatility, bounds=bounds
    )


def _wrap_sql(base: Function, template: str) -> SqlForm:
    """The base cast's SQL form with the modifier's template around it."""
    form = base.sql
    if isinstance(form, str):
        return template.format(form)
    if isinstance(form, PythonForm):
        # Calls the UDF of the base cast, which is the one that is registered.
        return lambda types: _wrap_udf_call(base, template, types)
    if form is None:
        return None
    rule = form

    def wrap_template(types: Types) -> str | None:
        inner = rule(types)
        return None if inner is None else template.format(inner)

    return wrap_template


def _wrap_udf_call(base: Function, template: str, types: Types) -> str | None:
    call = sql_template(base, types)
    return None if call is None else template.format(call)
