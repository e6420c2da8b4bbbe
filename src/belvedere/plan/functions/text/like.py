"""LIKE and ILIKE. A pattern is compiled once and cached.

The escape character is the backslash; `like_escape` rewrites a pattern with another one. ILIKE
folds ASCII letters only, as the C collation does.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from belvedere.plan.functions.core.function import UDF, Function, scalar
from belvedere.plan.functions.text.strings import LOWER as _LOWER
from belvedere.plan.functions.text.strings import UPPER as _UPPER
from belvedere.plan.functions.text.strings import lower
from belvedere.values.failures import bad_argument

Match = Callable[[str], bool]


@functools.lru_cache(maxsize=1024)
def like_matcher(pattern: str) -> Match:
    """A test of a text against a LIKE pattern."""
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
            if position == len(pattern):
                return functools.partial(_match_dangling_escape, pattern)
            parts.append(re.escape(pattern[position]))
        elif character == "%":
            parts.append(".*")
        elif character == "_":
            parts.append(".")
        else:
            parts.append(re.escape(character))
        position += 1
    return _simple_matcher(pattern) or _compile_matcher("".join(parts))


def _compile_matcher(expression: str) -> Match:
    # Runs of % mean one; left as they are they would backtrack for each.
    found = re.compile(re.sub(r"(?:\.\*)+", ".*", expression), re.DOTALL).fullmatch
    return lambda text: found(text) is not None


def _simple_matcher(pattern: str) -> Match | None:
    """Equality, prefix, suffix or containment, when the pattern is no more than that."""
    body = pattern.strip("%")
    if not body or any(special in body for special in "%_\\"):
        return None
    before, after = pattern.startswith("%"), pattern.endswith("%")
    if before and after:
        return lambda text: body in text
    if before:
        return lambda text: text.endswith(body)
    if after:
        return lambda text: text.startswith(body)
    return lambda text: text == body


def _match_dangling_escape(pattern: str, text: str) -> bool:
    """PostgreSQL's own matching, for a pattern that ends in an escape character.

    That is an error only when matching reaches the escape with text left.
    """
    return _match_from(text, 0, pattern, 0)


def _match_from(text: str, at: int, pattern: str, position: int) -> bool:
    while at < len(text) and position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
            if position >= len(pattern):
                raise bad_argument("like pattern must not end with escape character", "22025")
            if pattern[position] != text[at]:
                return False
        elif character == "%":
            while position < len(pattern) and pattern[position] == "%":
                position += 1
            if position >= len(pattern):
                return True
            return any(_match_from(text, i, pattern, position) for i in range(at, len(text)))
        elif character not in ("_", text[at]):
            return False
        at += 1
        position += 1
    if at < len(text):
        return False
    return not pattern[position:].strip("%")


def like(text: str, pattern: str) -> bool:
    return like_matcher(pattern)(text)


def not_like(text: str, pattern: str) -> bool:
    return not like_matcher(pattern)(text)


def ilike(text: str, pattern: str) -> bool:
    return like_matcher(lower(pattern))(lower(text))


def not_ilike(text: str, pattern: str) -> bool:
    return not like_matcher(lower(pattern))(lower(text))


def like_escape(pattern: str, escape: str) -> str:
    """The pattern with `escape` in place of the backslash rewritten to use the backslash."""
    if not escape:
        return pattern.replace("\\", "\\\\")
    if len(escape) > 1:
        raise bad_argument("invalid escape string", "22025")
    if escape == "\\":
        return pattern
    out: list[str] = []
    escaped = False
    for character in pattern:
        if character == escape and not escaped:
            out.append("\\")
            escaped = True
        elif character == "\\":
            out.append("\\\\" if not escaped else "\\")
            escaped = False
        else:
            out.append(character)
            escaped = False
    return "".join(out)


def _decode_latin(value: bytes) -> str:
    return value.decode("latin-1")


def like_escape_bytes(pattern: bytes, escape: bytes) -> bytes:
    return like_escape(_decode_latin(pattern), _decode_latin(escape)).encode("latin-1")


def like_bytes(value: bytes, pattern: bytes) -> bool:
    return like_matcher(_decode_latin(pattern))(_decode_latin(value))


def not_like_bytes(value: bytes, pattern: bytes) -> bool:
    return not like_matcher(_decode_latin(pattern))(_decode_latin(value))


def _native_sql(left: str, name: str, operator: str, fold: bool) -> str:
    """DuckDB's LIKE for patterns without escapes: the two differ on a trailing escape."""
    symbol = "".join(f"x{ord(character):x}" for character in name)
    value, pattern = (
        f"translate({side}, '{_UPPER}', '{_LOWER}')" if fold else side for side in ("_0", "_1")
    )
    udf = f"belvedere_{symbol}_{left}_text(_0, _1)"
    return f"CASE WHEN contains(_1, '\\') THEN {udf} ELSE {value} {operator} {pattern} END"


def _like_operators(left: str) -> list[Function]:
    forms = (
        ("~~", like, "LIKE", False),
        ("!~~", not_like, "NOT LIKE", False),
        ("~~*", ilike, "LIKE", True),
        ("!~~*", not_ilike, "NOT LIKE", True),
    )
    return [
        scalar(f"{name}({left},text) bool", form, _native_sql(left, name, operator, fold), udf=True)
        for name, form, operator, fold in forms
    ]


FUNCTIONS: tuple[Function, ...] = (
    *_like_operators("text"),
    *_like_operators("bpchar"),
    scalar("like(text,text) bool", like, UDF),
    scalar("notlike(text,text) bool", not_like, UDF),
    scalar("like_escape(text,text) text", like_escape, UDF),
    scalar("like(bytea,bytea) bool", like_bytes, UDF),
    scalar("notlike(bytea,bytea) bool", not_like_bytes, UDF),
    scalar("like_escape(bytea,bytea) bytea", like_escape_bytes, UDF),
    scalar("~~(bytea,bytea) bool", like_bytes, UDF),
    scalar("!~~(bytea,bytea) bool", not_like_bytes, UDF),
)
