"""Text functions: case, length, cutting, padding, searching, replacing.

Case conversion follows the C collation: only ASCII letters change. Positions count code points.
"""

from __future__ import annotations

import re

from belvedere.plan.functions.core.function import UDF, Function, scalar
from belvedere.values.failures import bad_argument
from belvedere.values.numbers import INT4_MAX, INT4_MIN
from belvedere.values.value_size import ALWAYS_ALLOWED, require_value_size

LOWER = "abcdefghijklmnopqrstuvwxyz"
UPPER = LOWER.upper()
_TO_UPPER = str.maketrans(LOWER, UPPER)
_TO_LOWER = str.maketrans(UPPER, LOWER)
_WORD = re.compile("[0-9A-Za-z]+")
# PostgreSQL refuses to build a text that might exceed its largest allocation.
_LENGTH_MAX = (0x3FFFFFFF - 4) // 4
_BYTES_MAX = 0x3FFFFFFF - 4


def too_large_error() -> Exception:
    return bad_argument("requested length too large", "54000")


def concatenate(left: str, right: str) -> str:
    if (size := len(left) + len(right)) > ALWAYS_ALLOWED:
        require_value_size(size)
    return left + right


def length(value: str) -> int:
    return len(value)


def char_length(value: str) -> int:
    return len(value.rstrip(" "))


def octet_length(value: str) -> int:
    return len(value) if value.isascii() else len(value.encode())


def bit_length(value: str) -> int:
    return 8 * octet_length(value)


def lower(value: str) -> str:
    return value.lower() if value.isascii() else value.translate(_TO_LOWER)


def upper(value: str) -> str:
    return value.upper() if value.isascii() else value.translate(_TO_UPPER)


def initcap(value: str) -> str:
    return _WORD.sub(lambda word: word[0].capitalize(), value)


def left(value: str, count: int) -> str:
    return value[:count]


def right(value: str, count: int) -> str:
    if count == INT4_MIN:
        return value  # its negation overflows in PostgreSQL, which then cuts nothing
    return value[-count:] if count else ""


def left_pad(value: str, size: int, fill: str) -> str:
    return _padding(value, size, fill) + value[: max(size, 0)]


def right_pad(value: str, size: int, fill: str) -> str:
    return value[: max(size, 0)] + _padding(value, size, fill)


def _padding(value: str, size: int, fill: str) -> str:
    missing = size - len(value)
    if missing <= 0 or not fill:
        return ""
    if size > _LENGTH_MAX:
        raise too_large_error()
    require_value_size(size)
    return (fill * (missing // len(fill) + 1))[:missing]


def left_pad_blank(value: str, size: int) -> str:
    return left_pad(value, size, " ")


def right_pad_blank(value: str, size: int) -> str:
    return right_pad(value, size, " ")


def trim(value: str) -> str:
    return value.strip(" ")


def left_trim(value: str) -> str:
    return value.lstrip(" ")


def right_trim(value: str) -> str:
    return value.rstrip(" ")


# Python strips blanks when it is given no characters at all; PostgreSQL then strips nothing.
def trim_of(value: str, characters: str) -> str:
    return value.strip(characters) if characters else value


def left_trim_of(value: str, characters: str) -> str:
    return value.lstrip(characters) if characters else value


def right_trim_of(value: str, characters: str) -> str:
    return value.rstrip(characters) if characters else value


def substring_from(value: str, start: int) -> str:
    return value[start - 1 :] if start > 0 else value


def substring(value: str, start: int, count: int) -> str:
    if count < 0 and start + count < start:
        raise bad_argument("negative substring length not allowed", "22011")
    end = start - 1 + count
    return value[max(start - 1, 0) : max(end, 0)]


def position(value: str, part: str) -> int:
    return value.find(part) + 1


def replace(value: str, old: str, new: str) -> str:
    if not old:
        return value
    if len(new) > len(old) and len(value) * len(new) > ALWAYS_ALLOWED:
        require_value_size(len(value) + value.count(old) * (len(new) - len(old)))
    return value.replace(old, new)


def translate(value: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for i, character in enumerate(old):
        table.setdefault(ord(character), new[i] if i < len(new) else None)
    return value.translate(table)


def repeat(value: str, count: int) -> str:
    if count <= 0:
        return ""
    if octet_length(value) * count > _BYTES_MAX:
        raise too_large_error()
    require_value_size(len(value) * count)
    return value * count


def reverse(value: str) -> str:
    return value[::-1]


def split_part(value: str, separator: str, number: int) -> str:
    if number == 0:
        raise bad_argument("field position must not be zero")
    if not value:
        return ""
    require_value_size(8 * value.count(separator) if separator else 0)
    parts = value.split(separator) if separator else [value]
    index = number - 1 if number > 0 else len(parts) + number
    return parts[index] if 0 <= index < len(parts) else ""


def starts_with(value: str, prefix: str) -> bool:
    return value.startswith(prefix)


def ascii_code(value: str) -> int:
    return ord(value[0]) if value else 0


def character(code: int) -> str:
    if code < 0:
        raise bad_argument("character number must be positive")
    if code == 0:
        raise bad_argument("null character not permitted", "54000")
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise bad_argument("requested character is not valid", "54000")
    return chr(code)


def overlay(value: str, new: str, start: int) -> str:
    return overlay_count(value, new, start, len(new))


def overlay_count(value: str, new: str, start: int, count: int) -> str:
    if start <= 0:
        raise bad_argument("negative substring length not allowed", "22011")
    if start + count > INT4_MAX:
        raise bad_argument("integer out of range", "22003")
    require_value_size(len(value) + len(new))
    rest = max(start + count - 1, 0)
    return value[: start - 1] + new + value[rest:]


_REPLACE_SQL = (
    "CASE WHEN strlen(_2) > strlen(_1) AND CAST(strlen(_0) AS BIGINT) * strlen(_2) > 16384"
    " THEN belvedere_replace_text_text_text(_0, _1, _2) ELSE replace(_0, _1, _2) END"
)
"""DuckDB's own replace counts none of the memory of its results."""


FUNCTIONS: tuple[Function, ...] = (
    scalar("||(text,text) text", concatenate, "_0 || _1"),
    scalar("textcat(text,text) text", concatenate, "_0 || _1"),
    *(
        scalar(f"{name}(text) int4", length, "CAST(length(_0) AS INTEGER)")
        for name in ("length", "char_length", "character_length")
    ),
    *(
        scalar(f"{name}(bpchar) int4", char_length, "CAST(length(rtrim(_0, ' ')) AS INTEGER)")
        for name in ("length", "char_length", "character_length")
    ),
    scalar("octet_length(text) int4", octet_length, "CAST(strlen(_0) AS INTEGER)"),
    scalar("octet_length(bpchar) int4", octet_length, "CAST(strlen(_0) AS INTEGER)"),
    scalar("bit_length(text) int4", bit_length, "CAST(8 * strlen(_0) AS INTEGER)"),
    scalar("lower(text) text", lower, f"translate(_0, '{UPPER}', '{LOWER}')"),
    scalar("upper(text) text", upper, f"translate(_0, '{LOWER}', '{UPPER}')"),
    scalar("initcap(text) text", initcap, UDF),
    scalar("left(text,int4) text", left, UDF),
    scalar("right(text,int4) text", right, UDF),
    scalar("lpad(text,int4,text) text", left_pad, UDF),
    scalar("rpad(text,int4,text) text", right_pad, UDF),
    scalar("lpad(text,int4) text", left_pad_blank, UDF),
    scalar("rpad(text,int4) text", right_pad_blank, UDF),
    scalar("btrim(text) text", trim, "trim(_0, ' ')"),
    scalar("ltrim(text) text", left_trim, "ltrim(_0, ' ')"),
    scalar("rtrim(text) text", right_trim, "rtrim(_0, ' ')"),
    scalar("btrim(text,text) text", trim_of, "trim(_0, _1)"),
    scalar("ltrim(text,text) text", left_trim_of, "ltrim(_0, _1)"),
    scalar("rtrim(text,text) text", right_trim_of, "rtrim(_0, _1)"),
    scalar("substring(text,int4) text", substring_from, UDF),
    scalar("substr(text,int4) text", substring_from, UDF),
    scalar("substring(text,int4,int4) text", substring, UDF),
    scalar("substr(text,int4,int4) text", substring, UDF),
    scalar("position(text,text) int4", position, "CAST(instr(_0, _1) AS INTEGER)"),
    scalar("strpos(text,text) int4", position, "CAST(instr(_0, _1) AS INTEGER)"),
    scalar("replace(text,text,text) text", replace, _REPLACE_SQL, udf=True),
    scalar("translate(text,text,text) text", translate, UDF),
    scalar("repeat(text,int4) text", repeat, UDF),
    scalar("reverse(text) text", reverse, UDF),
    scalar("split_part(text,text,int4) text", split_part, UDF),
    scalar("starts_with(text,text) bool", starts_with, "starts_with(_0, _1)"),
    scalar("^@(text,text) bool", starts_with, "starts_with(_0, _1)"),
    scalar("ascii(text) int4", ascii_code, UDF),
    scalar("chr(int4) text", character, UDF),
    scalar("overlay(text,text,int4) text", overlay, UDF),
    scalar("overlay(text,text,int4,int4) text", overlay_count, UDF),
)
