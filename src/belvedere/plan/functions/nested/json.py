"""JSON functions over JSON text: extraction, types, lengths, building. Extracted parts keep their
spelling."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

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
from belvedere.plan.functions.text.concat_format import unspecialized_form
from belvedere.types import Kind, SqlType
from belvedere.values.failures import bad_argument

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = re.compile(r"[^,\]\} \t\n\r]+")


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _value_end(text: str, at: int) -> int:
    """The end of the value that starts at `at`. The text must be valid JSON."""
    first = text[at]
    if first == '"':
        match = _STRING.match(text, at)
    elif first in "{[":
        return _container_end(text, at)
    else:
        match = _SCALAR.match(text, at)
    return len(text) if match is None else match.end()


def _container_end(text: str, at: int) -> int:
    depth = 0
    while True:
        character = text[at]
        if character == '"':
            at = _value_end(text, at)
            continue
        if character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1


def split_members(text: str) -> list[tuple[str | None, str]]:
    """(name or None, spelling) of each member of the object or element of the array."""
    at = _skip_space(text, 0)
    closing = "}" if text[at] == "{" else "]"
    at = _skip_space(text, at + 1)
    found: list[tuple[str | None, str]] = []
    while text[at] != closing:
        name = None
        if closing == "}":
            end = _value_end(text, at)
            name = json.loads(text[at:end], strict=False)
            at = _skip_space(text, _skip_space(text, end) + 1)
        end = _value_end(text, at)
        found.append((name, text[at:end]))
        at = _skip_space(text, end)
        if text[at] == ",":
            at = _skip_space(text, at + 1)
    return found


def first_character(text: str) -> str:
    return text[_skip_space(text, 0)]


def _object_members(text: str) -> dict[str, str] | None:
    return _keep_members(text) if len(text) <= _SHORT else _keep_long_members(text)


def _read_members(text: str) -> dict[str, str] | None:
    if first_character(text) != "{":
        return None
    return {str(name): value for name, value in split_members(text)}


_SHORT = 1 << 14
_keep_members = functools.lru_cache(maxsize=256)(_read_members)
_keep_long_members = functools.lru_cache(maxsize=2)(_read_members)
"""Of long texts only the last ones: they are read for one member after the other."""


def member(value: str, name: str) -> str | None:
    found = _object_members(value)
    return None if found is None else found.get(name)


def element(value: str, index: int) -> str | None:
    if first_character(value) != "[":
        return None
    items = split_members(value)
    if index < 0:
        index += len(items)
    return items[index][1] if 0 <= index < len(items) else None


def json_to_text(value: str | None) -> str | None:
    """A JSON value as text: strings without their quotes, null as NULL."""
    if value is None:
        return None
    bare = value.strip(" \t\n\r")
    if bare == "null":
        return None
    if bare.startswith('"'):
        text = str(json.loads(bare, strict=False))
        if "\0" in text:
            raise bad_argument("unsupported unicode escape sequence", "22P05")
        return text
    return value


def member_text(value: str, name: str) -> str | None:
    return json_to_text(member(value, name))


def element_text(value: str, index: int) -> str | None:
    return json_to_text(element(value, index))


def value_at_path(value: str, steps: list[str | None]) -> str | None:
    found: str | None = value if steps else value.strip(" \t\n\r")
    for step in steps:
        if found is None or step is None:
            return None
        if first_character(found) == "[":
            if not re.fullmatch(r"\s*[-+]?\d{1,10}", step):
                return None
            found = element(found, int(step))
        else:
            found = member(found, step)
    return found


def text_at_path(value: str, steps: list[str | None]) -> str | None:
    return json_to_text(value_at_path(value, steps))


def type_of(value: str) -> str:
    first = first_character(value)
    names = {
        "{": "object",
        "[": "array",
        '"': "string",
        "t": "boolean",
        "f": "boolean",
        "n": "null",
    }
    return names.get(first, "number")


def array_length(value: str) -> int:
    if first_character(value) != "[":
        raise bad_argument("cannot get array length of this json value")
    return len(split_members(value))


def array_elements(value: str) -> list[str]:
    if first_character(value) != "[":
        raise bad_argument("cannot call json_array_elements on this json value")
    return [item for _, item in split_members(value)]


def array_elements_text(value: str) -> list[str | None]:
    return [json_to_text(item) for item in array_elements(value)]


def object_keys(value: str) -> list[str | None]:
    if first_character(value) != "{":
        raise bad_argument("cannot call json_object_keys on this json value")
    return [name for name, _ in split_members(value)]


def json_encoder(sql_type: SqlType) -> Callable[[Any], str]:
    """A value of the type as JSON."""
    kind = sql_type.kind
    if sql_type.element is not None:
        inner = json_encoder(sql_type.element)
        return lambda values: (
            "[" + ",".join("null" if v is None else inner(v) for v in values) + "]"
        )
    if kind is Kind.BOOLEAN:
        return lambda value: "true" if value else "false"
    show = text_formatter(sql_type)
    if kind is Kind.JSON:
        return show
    if kind in (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT):
        return show
    if kind in (Kind.NUMERIC, Kind.REAL, Kind.DOUBLE):
        return lambda value: show(value) if _is_finite(value) else f'"{show(value)}"'
    if kind is Kind.TIMESTAMP:
        return lambda value: '"' + show(value).replace(" ", "T") + '"'
    if kind is Kind.TIMESTAMPTZ:
        return lambda value: f'"{_with_minutes(show(value).replace(" ", "T"))}"'
    return lambda value: quote_json_string(show(value))


def _with_minutes(text: str) -> str:
    """The offset with its minutes, which JSON always has."""
    return text if text[-3] == ":" and text[-6] in "+-" else text + ":00"


def _is_finite(value: Any) -> bool:
    return value.is_finite() if isinstance(value, Decimal) else value - value == 0


_ESCAPES = {
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    '"': '\\"',
    "\\": "\\\\",
}


def quote_json_string(text: str) -> str:
    def escape(match: re.Match[str]) -> str:
        return _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}"

    return '"' + re.sub(r'["\\\x00-\x1f]', escape, text) + '"'


def _to_json(types: Types) -> Callable[[Any], str]:
    return json_encoder(types[0])


def _specialize_build_object(types: Types) -> Callable[..., str]:
    shows = [
        text_formatter(one) if i % 2 == 0 else json_encoder(one) for i, one in enumerate(types)
    ]

    def build_object(*values: Any) -> str:
        if len(values) % 2:
            raise bad_argument("argument list must have even number of elements")
        parts = []
        for i in range(0, len(values), 2):
            if values[i] is None:
                raise bad_argument("null value not allowed for object key", "22004")
            item = "null" if values[i + 1] is None else shows[i + 1](values[i + 1])
            parts.append(f"{quote_json_string(shows[i](values[i]))} : {item}")
        return "{" + ", ".join(parts) + "}"

    return build_object


def _specialize_build_array(types: Types) -> Callable[..., str]:
    shows = [json_encoder(one) for one in types]

    def build_array(*values: Any) -> str:
        items = ["null" if value is None else show(value) for show, value in zip(shows, values)]
        return "[" + ", ".join(items) + "]"

    return build_array


def _specialize_aggregate(types: Types) -> Accumulator:
    show = json_encoder(types[0])

    def step(state: HeldValues | None, value: Any) -> HeldValues:
        state = HeldValues() if state is None else state
        state.hold_value("null" if value is None else show(value))
        return state

    return Accumulator(
        lambda: None, step, lambda state: None if state is None else "[" + ", ".join(state) + "]"
    )


FUNCTIONS: tuple[Function, ...] = (
    scalar("->(json,text) json", member, UDF),
    scalar("->(json,int4) json", element, UDF),
    scalar("->>(json,text) text", member_text, UDF),
    scalar("->>(json,int4) text", element_text, UDF),
    scalar("#>(json,text[]) json", value_at_path, UDF),
    scalar("#>>(json,text[]) text", text_at_path, UDF),
    scalar("json_typeof(json) text", type_of, UDF),
    scalar("json_array_length(json) int4", array_length, UDF),
    set_returning("json_array_elements(json) json", array_elements),
    set_returning("json_array_elements_text(json) text", array_elements_text),
    set_returning("json_object_keys(json) text", object_keys),
    stable("to_json(anyelement) json", unspecialized_form, specialize=_to_json),
    stable(
        "json_build_object(variadic any) json",
        unspecialized_form,
        strict=False,
        specialize=_specialize_build_object,
    ),
    stable(
        "json_build_array(variadic any) json",
        unspecialized_form,
        strict=False,
        specialize=_specialize_build_array,
    ),
    stable("json_build_object() json", lambda: "{}", strict=False),
    stable("json_build_array() json", lambda: "[]", strict=False),
    aggregate(
        "json_agg(anyelement) json",
        Accumulator(list, list.append, list),
        strict=False,
        specialize=_specialize_aggregate,
        volatility=Volatility.STABLE,
    ),
)
