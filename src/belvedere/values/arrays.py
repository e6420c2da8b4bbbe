"""Parser and formatter of array literals: '{1,NULL,"a b"}'. Arrays have one dimension here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from belvedere.errors import InvalidInput, Unsupported
from belvedere.values.numbers import SPACE


class Vector(list[int]):
    """An array of the system catalogs (int2vector, oidvector): its first element is number 0."""

    first = 0


def find_lower_bound(values: Sequence[object]) -> int:
    """The number of an array's first element."""
    return getattr(values, "first", 1)


_PLAIN_SPECIAL = set('{}",\\ \t\n\r\v\f')
_RECORD_SPECIAL = set('()",\\ \t\n\r\v\f')


def _malformed_literal(text: str) -> InvalidInput:
    return InvalidInput("malformed array literal", sqlstate="22P02", text=repr(text[:200]))


def format_array(value: Sequence[Any], element: Callable[[Any], str]) -> str:
    return (
        "{"
        + ",".join("NULL" if one is None else _quote_element(element(one)) for one in value)
        + "}"
    )


def _quote_element(text: str) -> str:
    if text and text.upper() != "NULL" and _PLAIN_SPECIAL.isdisjoint(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def format_record(value: Sequence[Any], items: Sequence[Callable[[Any], str]]) -> str:
    """A row as text: `(1,"two words",)`."""
    texts = ["" if one is None else _quote_item(form(one)) for one, form in zip(value, items)]
    return f"({','.join(texts)})"


def _quote_item(text: str) -> str:
    if text and _RECORD_SPECIAL.isdisjoint(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'


def parse_array(text: str, element: Callable[[str], Any]) -> list[Any]:
    body = text.strip(SPACE)
    if body.startswith("["):
        raise Unsupported("array literals with subscript bounds are not supported")
    if not body.startswith("{"):
        raise _malformed_literal(text)
    items, position = _parse_items(body, text)
    if body[position:].strip(SPACE):
        raise _malformed_literal(text)
    return [None if item is None else element(item) for item in items]


def _parse_items(body: str, text: str) -> tuple[list[str | None], int]:
    position = 1
    items: list[str | None] = []
    while True:
        position = _skip_space(body, position)
        if position >= len(body):
            raise _malformed_literal(text)
        if body[position] == "}" and not items:
            return items, position + 1
        item, position = _parse_item(body, position, text)
        items.append(item)
        position = _skip_space(body, position)
        if position >= len(body):
            raise _malformed_literal(text)
        if body[position] == "}":
            return items, position + 1
        if body[position] != ",":
            raise _malformed_literal(text)
        position += 1


def _skip_space(body: str, position: int) -> int:
    while position < len(body) and body[position] in SPACE:
        position += 1
    return position


def _parse_item(body: str, position: int, text: str) -> tuple[str | None, int]:
    if body[position] == "{":
        raise Unsupported("arrays of more than one dimension are not supported")
    if body[position] == '"':
        return _parse_quoted(body, position + 1, text)
    out: list[str] = []
    kept = 0  # length up to the last character that is not trailing blank
    escaped = False
    while position < len(body) and body[position] not in ',}{"':
        character = body[position]
        if character == "\\":
            position += 1
            if position >= len(body):
                raise _malformed_literal(text)
            character = body[position]
            escaped = True
            out.append(character)
            kept = len(out)
        else:
            out.append(character)
            if character not in SPACE:
                kept = len(out)
        position += 1
    if position < len(body) and body[position] in '{"':
        raise _malformed_literal(text)
    item = "".join(out[:kept])
    if not item:
        raise _malformed_literal(text)
    return (None if item.upper() == "NULL" and not escaped else item), position


def _parse_quoted(body: str, position: int, text: str) -> tuple[str, int]:
    out: list[str] = []
    while position < len(body):
        character = body[position]
        if character == '"':
            return "".join(out), position + 1
        if character == "\\":
            position += 1
            if position >= len(body):
                break
            character = body[position]
        out.append(character)
        position += 1
    raise _malformed_literal(text)
