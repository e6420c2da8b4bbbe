"""JSON of records: json_each, json_object_agg, json_strip_nulls, paths, and rows as JSON objects.

`json record` and `row key` cannot be written in SQL: the binder builds calls of them from row
values, the first with names and values in turn, the second with the values only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from belvedere.interrupts import check_statement
from belvedere.plan.functions.aggregate.accumulators import HeldValues
from belvedere.plan.functions.cast.casts import text_formatter
from belvedere.plan.functions.core.function import (
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
from belvedere.plan.functions.nested.json import (
    first_character,
    json_encoder,
    json_to_text,
    quote_json_string,
    split_members,
    text_at_path,
    value_at_path,
)
from belvedere.plan.functions.text.concat_format import unspecialized_form
from belvedere.types import Interval, Kind, SqlType
from belvedere.values.decimals import EXACT
from belvedere.values.failures import bad_argument

RECORD = "json record"
ROW_KEY = "row key"
RECORDS = "json_agg of records"


def json_each(value: str) -> list[tuple[str | None, str]]:
    if first_character(value) != "{":
        raise bad_argument("cannot call json_each on this json value")
    return split_members(value)


def json_each_text(value: str) -> list[tuple[str | None, str | None]]:
    return [(name, json_to_text(item)) for name, item in json_each(value)]


def extract_path(value: str, *steps: str | None) -> str | None:
    return value_at_path(value, list(steps))


def extract_path_text(value: str, *steps: str | None) -> str | None:
    return text_at_path(value, list(steps))


def strip_nulls(value: str, in_arrays: bool = False) -> str:
    """Objects without their null members, at every depth; arrays too if `in_arrays`. One pass,
    whatever the depth."""
    open_containers: list[_Container] = []
    current = _Container("[", [])
    for number, token in enumerate(_TOKENS.findall(value)):
        if not number % _CHECKED_TOKENS:
            check_statement()
        if token in "{[":
            open_containers.append(current)
            current = _Container(token, [])
            continue
        if token in ",:":
            continue
        if token in "}]":
            text = f"{current.opening}{','.join(current.parts)}{token}"
            current = open_containers.pop()
        elif token[0] != '"':
            text = token
        else:
            text = quote_json_string(str(json.loads(token, strict=False)))
            if current.opening == "{" and current.name is None:
                current.name = text
                continue
        current.add_value(text, in_arrays and bool(open_containers))
    return current.parts[0]


_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_CHECKED_TOKENS = 4096


@dataclass(slots=True)
class _Container:
    """An object or array that is being read; `name` is that of the member that comes next."""

    opening: str
    parts: list[str]
    name: str | None = None

    def add_value(self, text: str, in_arrays: bool) -> None:
        name, self.name = self.name, None
        if text == "null" and (name is not None or in_arrays):
            return
        self.parts.append(text if name is None else f"{name}:{text}")


def _specialize_record(types: Types) -> Callable[..., str]:
    """Names and values in turn, as row_to_json writes them."""
    shows = [json_encoder(one) for one in types[1::2]]

    def build_record(*values: Any) -> str:
        parts = [
            f"{quote_json_string(name)}:{'null' if value is None else show(value)}"
            for name, value, show in zip(values[::2], values[1::2], shows)
        ]
        return "{" + ",".join(parts) + "}"

    return build_record


def _specialize_row_key(types: Types) -> Callable[..., str]:
    """Equal texts for equal rows, NULLs equal to each other: what DISTINCT needs."""
    forms = [_canonical_text(one) for one in types]

    def build_row_key(*values: Any) -> str:
        return "\x1f".join(
            "-" if value is None else f"+{len(text := form(value))}:{text}"
            for form, value in zip(forms, values)
        )

    return build_row_key


def _canonical_text(sql_type: SqlType) -> Callable[[Any], str]:
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
            return text_formatter(sql_type)


def _specialize_object_aggregate(types: Types) -> Accumulator:
    name_of, show = text_formatter(types[0]), json_encoder(types[1])

    def step(state: HeldValues | None, name: Any, value: Any) -> HeldValues:
        if name is None:
            raise bad_argument("null value not allowed for object key", "22004")
        state = HeldValues() if state is None else state
        state.hold_value(
            f"{quote_json_string(name_of(name))} : {'null' if value is None else show(value)}"
        )
        return state

    return Accumulator(
        lambda: None,
        step,
        lambda state: None if state is None else "{ " + ", ".join(state) + " }",
    )


def _records_accumulator() -> Accumulator:
    def step(state: HeldValues | None, value: str) -> HeldValues:
        state = HeldValues() if state is None else state
        state.hold_value(value)
        return state

    return Accumulator(
        lambda: None,
        step,
        lambda state: None if state is None else "[" + ", \n ".join(state) + "]",
    )


FUNCTIONS: tuple[Function, ...] = (
    set_returning("json_each(json) json", json_each),
    set_returning("json_each_text(json) text", json_each_text),
    scalar("json_extract_path(json,variadic text) json", extract_path, UDF),
    scalar("json_extract_path_text(json,variadic text) text", extract_path_text, UDF),
    scalar("json_strip_nulls(json) json", strip_nulls, UDF),
    scalar("json_strip_nulls(json,bool) json", strip_nulls, UDF),
    stable(
        f"{RECORD}(variadic any) json",
        unspecialized_form,
        strict=False,
        specialize=_specialize_record,
    ),
    scalar(
        f"{ROW_KEY}(variadic any) text",
        unspecialized_form,
        strict=False,
        specialize=_specialize_row_key,
    ),
    aggregate(f"{RECORDS}(json) json", _records_accumulator(), strict=False),
    aggregate(
        "json_object_agg(any,any) json",
        Accumulator(list, list.append, list),
        strict=False,
        specialize=_specialize_object_aggregate,
        volatility=Volatility.STABLE,
    ),
)
