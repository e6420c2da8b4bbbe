"""JSON functions over JSON text: extraction, types, lengths, building. Extracted parts keep their
spelling."""

from __future__ import annotations

import functools
import json
import re
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
from belvedere.plan.values.failures import bad_argument
from belvedere.types import Kind, SqlType

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = re.compile(r"[^,\]\} \t\n\r]+")


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _end(text: str, at: int) -> int:
    """The end of the value that starts at `at`. The text must be valid JSON."""
    first = text[at]
    if first == '"':
        match = _STRING.match(text, at)
    elif first in "{[":
        return _end_of_container(text, at)
    else:
        match = _SCALAR.match(text, at)
    return len(text) if match is None else match.end()


def _end_of_container(text: str, at: int) -> int:
    depth = 0
    while True:
        character = text[at]
        if character == '"':
            at = _end(text, at)
            continue
        if character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1


def members_of(text: str) -> list[tuple[str | None, str]]:
    """(name or None, spelling) of each member of the object or element of the array."""
    at = _skip(text, 0)
    closing = "}" if text[at] == "{" else "]"
    at = _skip(text, at + 1)
    found: list[tuple[str | None, str]] = []
    while text[at] != closing:
        name = None
        if closing == "}":
            end = _end(text, at)
            name = json.loads(text[at:end], strict=False)
            at = _skip(text, _skip(text, end) + 1)
        end = _end(text, at)
        found.append((name, text[at:end]))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def first_of(text: str) -> str:
    return text[_skip(text, 0)]


@functools.lru_cache(maxsize=256)
def _object(text: str) -> dict[str, str] | None:
    if first_of(text) != "{":
        return None
    return {str(name): value for name, value in members_of(text)}


def member(value: str, name: str) -> str | None:
    found = _object(value)
    return None if found is None else found.get(name)


def element(value: str, index: int) -> str | None:
    if first_of(value) != "[":
        return None
    items = members_of(value)
    if index < 0:
        index += len(items)
    return items[index][1] if 0 <= index < len(items) else None


def unquoted(value: str | None) -> str | None:
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
    return unquoted(member(value, name))


def element_text(value: str, index: int) -> str | None:
    return unquoted(element(value, index))


def path(value: str, steps: list[str | None]) -> str | None:
    found: str | None = value if steps else value.strip(" \t\n\r")
    for step in steps:
        if found is None or step is None:
            return None
        if first_of(found) == "[":
            if not re.fullmatch(r"\s*[-+]?\d{1,10}", step):
                return None
            found = element(found, int(step))
        else:
            found = member(found, step)
    return found


def path_text(value: str, steps: list[str | None]) -> str | None:
    return unquoted(path(value, steps))


def type_of(value: str) -> str:
    first = first_of(value)
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
    if first_of(value) != "[":
        raise bad_argument("cannot get array length of this json value")
    return len(members_of(value))


def array_elements(value: str) -> list[str]:
    if first_of(value) != "[":
        raise bad_argument("cannot call json_array_elements on this json value")
    return [item for _, item in members_of(value)]


def array_elements_text(value: str) -> list[str | None]:
    return [unquoted(item) for item in array_elements(value)]


def object_keys(value: str) -> list[str | None]:
    if first_of(value) != "{":
        raise bad_argument("cannot call json_object_keys on this json value")
    return [name for name, _ in members_of(value)]


def encoder(sql_type: SqlType) -> Callable[[Any], str]:
    """A value of the type as JSON."""
    kind = sql_type.kind
    if sql_type.element is not None:
        inner = encoder(sql_type.element)
        return lambda values: (
            "[" + ",".join("null" if v is None else inner(v) for v in values) + "]"
        )
    if kind is Kind.BOOLEAN:
        return lambda value: "true" if value else "false"
    show = formatter(sql_type)
    if kind is Kind.JSON:
        return show
    if kind in (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT):
        return show
    if kind in (Kind.NUMERIC, Kind.REAL, Kind.DOUBLE):
        return lambda value: show(value) if _finite(value) else f'"{show(value)}"'
    if kind is Kind.TIMESTAMP:
        return lambda value: '"' + show(value).replace(" ", "T") + '"'
    if kind is Kind.TIMESTAMPTZ:
        return lambda value: f'"{_with_minutes(show(value).replace(" ", "T"))}"'
    return lambda value: quote_json_string(show(value))


def _with_minutes(text: str) -> str:
    """The offset with its minutes, which JSON always has."""
    return text if text[-3] == ":" and text[-6] in "+-" else text + ":00"


def _finite(value: Any) -> bool:
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
    return encoder(types[0])


def _build_object(types: Types) -> Callable[..., str]:
    shows = [formatter(one) if i % 2 == 0 else encoder(one) for i, one in enumerate(types)]

    def build(*values: Any) -> str:
        if len(values) % 2:
            raise bad_argument("argument list must have even number of elements")
        parts = []
        for i in range(0, len(values), 2):
            if values[i] is None:
                raise bad_argument("null value not allowed for object key", "22004")
            item = "null" if values[i + 1] is None else shows[i + 1](values[i + 1])
            parts.append(f"{quote_json_string(shows[i](values[i]))} : {item}")
        return "{" + ", ".join(parts) + "}"

    return build


def _build_array(types: Types) -> Callable[..., str]:
    shows = [encoder(one) for one in types]

    def build(*values: Any) -> str:
        items = ["null" if value is None else show(value) for show, value in zip(shows, values)]
        return "[" + ", ".join(items) + "]"

    return build


def _aggregate(types: Types) -> Accumulator:
    show = encoder(types[0])

    def step(state: list[str] | None, value: Any) -> list[str]:
        state = [] if state is None else state
        state.append("null" if value is None else show(value))
        return state

    return Accumulator(
        lambda: None, step, lambda state: None if state is None else "[" + ", ".join(state) + "]"
    )


FUNCTIONS: tuple[Function, ...] = (
    scalar("->(json,text) json", member, UDF),
    scalar("->(json,int4) json", element, UDF),
    scalar("->>(json,text) text", member_text, UDF),
    scalar("->>(json,int4) text", element_text, UDF),
    scalar("#>(json,text[]) json", path, UDF),
    scalar("#>>(json,text[]) text", path_text, UDF),
    scalar("json_typeof(json) text", type_of, UDF),
    scalar("json_array_length(json) int4", array_length, UDF),
    set_returning("json_array_elements(json) json", array_elements),
    set_returning("json_array_elements_text(json) text", array_elements_text),
    set_returning("json_object_keys(json) text", object_keys),
    stable("to_json(anyelement) json", unspecialized, specialize=_to_json),
    stable(
        "json_build_object(variadic any) json",
        unspecialized,
        strict=False,
        specialize=_build_object,
    ),
    stable(
        "json_build_array(variadic any) json", unspecialized, strict=False, specialize=_build_array
    ),
    stable("json_build_object() json", lambda: "{}", strict=False),
    stable("json_build_array() json", lambda: "[]", strict=False),
    aggregate(
        "json_agg(anyelement) json",
        Accumulator(list, list.append, list),
        strict=False,
        specialize=_aggregate,
        volatility=Volatility.STABLE,
    ),
)
