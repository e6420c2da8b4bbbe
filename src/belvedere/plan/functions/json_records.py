"""JSON of records: json_each, json_object_agg, json_strip_nulls, paths, and rows as JSON objects.

`json record` and `row key` cannot be written in SQL: the binder builds calls of them from row
values, the first with names and values in turn, the second with the values only.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from belvedere.plan.functions.casts import formatter
from belvedere.plan.functions.composing import unspecialized
from belvedere.plan.functions.function import (
    UDF,
    Accumulator,
    Function,
    Types,
    Volatility,
    aggregate,
    scalar,
    set_returning,
    stable,
)
from belvedere.plan.functions.jsons import (
    encoder,
    first_of,
    members_of,
    path,
    path_text,
    quote_json_string,
    unquoted,
)
from belvedere.plan.values.decimals import EXACT
from belvedere.plan.values.failures import bad_argument
from belvedere.types import Interval, Kind, SqlType

RECORD = "json record"
ROW_KEY = "row key"
RECORDS = "json_agg of records"


def each(value: str) -> list[tuple[str | None, str]]:
    if first_of(value) != "{":
        raise bad_argument("cannot call json_each on this json value")
    return members_of(value)


def each_text(value: str) -> list[tuple[str | None, str | None]]:
    return [(name, unquoted(item)) for name, item in each(value)]


def along(value: str, *steps: str | None) -> str | None:
    return path(value, list(steps))


def along_text(value: str, *steps: str | None) -> str | None:
    return path_text(value, list(steps))


def without_nulls(value: str, in_arrays: bool = False) -> str:
    """Objects without their null members, at every depth; arrays too if `in_arrays`."""
    first = first_of(value)
    if first == '"':
        return quote_json_string(str(json.loads(value, strict=False)))
    if first not in "{[":
        return value.strip(" \t\n\r")
    items = [(name, item) for name, item in members_of(value)]
    if first == "{" or in_arrays:
        items = [(name, item) for name, item in items if item.strip(" \t\n\r") != "null"]
    inside = [(name, without_nulls(item, in_arrays)) for name, item in items]
    if first == "[":
        return "[" + ",".join(item for _, item in inside) + "]"
    return "{" + ",".join(f"{quote_json_string(str(name))}:{item}" for name, item in inside) + "}"


def _record(types: Types) -> Callable[..., str]:
    """Names and values in turn, as row_to_json writes them."""
    shows = [encoder(one) for one in types[1::2]]

    def build(*values: Any) -> str:
        parts = [
            f"{quote_json_string(name)}:{'null' if value is None else show(value)}"
            for name, value, show in zip(values[::2], values[1::2], shows)
        ]
        return "{" + ",".join(parts) + "}"

    return build


def _row_key(types: Types) -> Callable[..., str]:
    """Equal texts for equal rows, NULLs equal to each other: what DISTINCT needs."""
    forms = [_face(one) for one in types]

    def build(*values: Any) -> str:
        return "\x1f".join(
            "-" if value is None else f"+{len(text := form(value))}:{text}"
            for form, value in zip(forms, values)
        )

    return build


def _face(sql_type: SqlType) -> Callable[[Any], str]:
    """A text that equal values share."""
    match sql_type.kind:
        case Kind.NUMERIC:
            return lambda value: str(Decimal(value).normalize(EXACT))
        case Kind.REAL | Kind.DOUBLE:
            return lambda value: repr(value + 0.0)
        case Kind.CHAR:
            return lambda value: str(value).rstrip(" ")
        case Kind.INTERVAL:
            return lambda value: str(value.span) if isinstance(value, Interval) else str(value)
        case Kind.JSON:
            raise bad_argument("could not identify an equality operator", "42883")
        case _:
            return formatter(sql_type)


def _object_aggregate(types: Types) -> Accumulator:
    name_of, show = formatter(types[0]), encoder(types[1])

    def step(state: list[str] | None, name: Any, value: Any) -> list[str]:
        if name is None:
            raise bad_argument("null value not allowed for object key", "22004")
        state = [] if state is None else state
        state.append(
            f"{quote_json_string(name_of(name))} : {'null' if value is None else show(value)}"
        )
        return state

    return Accumulator(
        lambda: None,
        step,
        lambda state: None if state is None else "{ " + ", ".join(state) + " }",
    )


def _records() -> Accumulator:
    def step(state: list[str] | None, value: str) -> list[str]:
        state = [] if state is None else state
        state.append(value)
        return state

    return Accumulator(
        lambda: None,
        step,
        lambda state: None if state is None else "[" + ", \n ".join(state) + "]",
    )


FUNCTIONS: tuple[Function, ...] = (
    set_returning("json_each(json) json", each),
    set_returning("json_each_text(json) text", each_text),
    scalar("json_extract_path(json,variadic text) json", along, UDF),
    scalar("json_extract_path_text(json,variadic text) text", along_text, UDF),
    scalar("json_strip_nulls(json) json", without_nulls, UDF),
    scalar("json_strip_nulls(json,bool) json", without_nulls, UDF),
    stable(f"{RECORD}(variadic any) json", unspecialized, strict=False, specialize=_record),
    scalar(f"{ROW_KEY}(variadic any) text", unspecialized, strict=False, specialize=_row_key),
    aggregate(f"{RECORDS}(json) json", _records(), strict=False),
    aggregate(
        "json_object_agg(any,any) json",
        Accumulator(list, list.append, list),
        strict=False,
        specialize=_object_aggregate,
        volatility=Volatility.STABLE,
    ),
)
