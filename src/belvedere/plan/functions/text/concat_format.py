"""concat, concat_ws, format and text || any; COALESCE, GREATEST, LEAST, NULLIF, num_nulls.

The Python forms depend on the argument types, because each type has its own text format.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from belvedere.plan.functions.cast.casts import cast_function, text_formatter
from belvedere.plan.functions.core.function import Function, SqlForm, Types, scalar, stable
from belvedere.plan.functions.logic.comparison import element_key
from belvedere.plan.functions.text.byte_strings import quote_identifier, quote_literal
from belvedere.plan.functions.text.strings import concatenate
from belvedere.types import TEXT, Kind, SqlType
from belvedere.values.failures import bad_argument
from belvedere.values.numbers import INT4_MIN, parse_int4
from belvedere.values.value_size import require_value_size

_SPECIFIER = re.compile(
    r"%(?:(\d{1,9})\$)?(-?)(?:(\d{1,9})|\*(?:(\d{1,9})\$)?)?([sIL%]|.|$)", re.DOTALL
)
# The longest text PostgreSQL builds.
_LENGTH_MAX = 0x3FFFFFFF - 1
# Types that DuckDB prints the way PostgreSQL does.
_PRINTS_ALIKE = {
    Kind.SMALLINT,
    Kind.INTEGER,
    Kind.BIGINT,
    Kind.VARCHAR,
    Kind.TEXT,
    Kind.DATE,
    Kind.UUID,
}


def unspecialized_form(*arguments: Any) -> Any:
    raise AssertionError("this function's python form depends on its argument types")


def _same_text_rule(template: str) -> Callable[[Types], str | None]:
    def rule(types: Types) -> str | None:
        return template if all(one.kind in _PRINTS_ALIKE for one in types) else None

    return rule


def _specialize_concat(types: Types) -> Callable[..., str]:
    shows = [text_formatter(one) for one in types]

    def concat(*values: Any) -> str:
        texts = [show(value) for show, value in zip(shows, values) if value is not None]
        require_value_size(sum(map(len, texts)))
        return "".join(texts)

    return concat


def _specialize_concat_ws(types: Types) -> Callable[..., str | None]:
    shows = [text_formatter(one) for one in types[1:]]

    def concat_ws(separator: str | None, *values: Any) -> str | None:
        if separator is None:
            return None
        texts = [show(value) for show, value in zip(shows, values) if value is not None]
        require_value_size(sum(map(len, texts)) + len(texts) * len(separator))
        return separator.join(texts)

    return concat_ws


def _text_and_any(types: Types) -> Callable[[str, Any], str]:
    show = cast_function(types[1], TEXT).python
    assert callable(show)
    return lambda left, right: concatenate(left, show(right))


def _any_and_text(types: Types) -> Callable[[Any, str], str]:
    show = cast_function(types[0], TEXT).python
    assert callable(show)
    return lambda left, right: concatenate(show(left), right)


def _specialize_format(types: Types) -> Callable[..., str | None]:
    shows = [text_formatter(one) for one in types[1:]]

    def format_text(template: str | None, *values: Any) -> str | None:
        if template is None:
            return None
        texts = [None if value is None else show(value) for show, value in zip(shows, values)]
        return _FormatCall(texts).format_template(template)

    return format_text


class _FormatCall:
    """One call of format(), with the number of the next argument."""

    def __init__(self, texts: list[str | None]) -> None:
        self.texts = texts
        self.next = 0
        self.size = 0

    def format_template(self, template: str) -> str:
        return _SPECIFIER.sub(self.format_specifier, template)

    def format_specifier(self, match: re.Match[str]) -> str:
        position, minus, width, width_position, kind = match.groups()
        if match[0] == "%%":
            return "%"
        if kind not in ("s", "I", "L", "%"):
            raise bad_argument("unrecognized format() type specifier")
        size = int(width) if width else 0
        if "*" in match[0]:
            given = self.next_argument(width_position)
            size = 0 if given is None else parse_int4(given)
            if size == INT4_MIN:
                raise bad_argument("number is out of range", "22003")
        if kind == "%":
            return self.pad_text("%", minus, size)
        text = self.next_argument(position)
        if kind == "I":
            if text is None:
                raise bad_argument("null values cannot be formatted as an SQL identifier", "22004")
            text = quote_identifier(text)
        elif kind == "L":
            text = "NULL" if text is None else quote_literal(text)
        return self.pad_text(text or "", minus, size)

    def next_argument(self, position: str | None) -> str | None:
        if position is not None:
            if int(position) == 0:
                raise bad_argument("format specifies argument 0")
            self.next = int(position)
        else:
            self.next += 1
        if self.next > len(self.texts):
            raise bad_argument("too few arguments for format()")
        return self.texts[self.next - 1]

    def pad_text(self, text: str, minus: str, size: int) -> str:
        if abs(size) > _LENGTH_MAX:
            raise bad_argument("requested length too large", "54000")
        self.size += max(abs(size), len(text))
        require_value_size(self.size)
        return text.ljust(abs(size)) if minus or size < 0 else text.rjust(size)


def coalesce(*values: Any) -> Any:
    for value in values:
        if value is not None:
            return value
    return None


def _extreme_specializer(largest: bool) -> Callable[[Types], Callable[..., Any]]:
    def specialize(types: Types) -> Callable[..., Any]:
        key = order_key(types[0])

        def extreme(*values: Any) -> Any:
            present = [value for value in values if value is not None]
            if not present:
                return None
            return max(present, key=key) if largest else min(present, key=key)

        return extreme

    return specialize


def order_key(sql_type: SqlType) -> Callable[[Any], Any]:
    """A key under which Python's order is PostgreSQL's, for values of the type, not NULL."""
    if sql_type.kind is Kind.CHAR:
        return lambda value: value.rstrip(" ")
    return element_key


def _specialize_null_if(types: Types) -> Callable[[Any, Any], Any]:
    key = order_key(types[0])

    def null_if(left: Any, right: Any) -> Any:
        if left is None or right is None:
            return left
        return None if key(left) == key(right) else left

    return null_if


def count_nulls(*values: Any) -> int:
    return sum(value is None for value in values)


def count_not_nulls(*values: Any) -> int:
    return sum(value is not None for value in values)


def _extreme_sql(name: str) -> SqlForm:
    def rule(types: Types) -> str | None:
        kinds = {one.kind for one in types}
        exact = len(kinds) == 1 and not kinds & {Kind.CHAR, Kind.INTERVAL, Kind.ARRAY}
        return f"{name}(_*)" if exact and len(set(types)) == 1 else None

    return rule


FUNCTIONS: tuple[Function, ...] = (
    stable(
        "concat(variadic any) text",
        unspecialized_form,
        _same_text_rule("concat(_*)"),
        strict=False,
        specialize=_specialize_concat,
    ),
    stable(
        "concat_ws(text,variadic any) text",
        unspecialized_form,
        _same_text_rule("concat_ws(_*)"),
        strict=False,
        specialize=_specialize_concat_ws,
    ),
    stable(
        "format(text,variadic any) text",
        unspecialized_form,
        strict=False,
        specialize=_specialize_format,
    ),
    stable("format(text) text", unspecialized_form, strict=False, specialize=_specialize_format),
    stable(
        "||(text,anynonarray) text",
        unspecialized_form,
        _same_text_rule("_0 || CAST(_1 AS VARCHAR)"),
        specialize=_text_and_any,
    ),
    stable(
        "||(anynonarray,text) text",
        unspecialized_form,
        _same_text_rule("CAST(_0 AS VARCHAR) || _1"),
        specialize=_any_and_text,
    ),
    scalar(
        "coalesce(variadic anycompatible) anycompatible", coalesce, "coalesce(_*)", strict=False
    ),
    scalar(
        "greatest(variadic anycompatible) anycompatible",
        unspecialized_form,
        _extreme_sql("greatest"),
        strict=False,
        specialize=_extreme_specializer(largest=True),
    ),
    scalar(
        "least(variadic anycompatible) anycompatible",
        unspecialized_form,
        _extreme_sql("least"),
        strict=False,
        specialize=_extreme_specializer(largest=False),
    ),
    scalar(
        "nullif(anycompatible,anycompatible) anycompatible",
        unspecialized_form,
        strict=False,
        specialize=_specialize_null_if,
    ),
    scalar("num_nulls(variadic any) int4", count_nulls, strict=False),
    scalar("num_nonnulls(variadic any) int4", count_not_nulls, strict=False),
)
