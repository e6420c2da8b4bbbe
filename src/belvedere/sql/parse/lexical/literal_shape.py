"""Takes the literals out of a text without parsing it: texts that differ only in these have one
shape.

    SELECT a FROM t WHERE b = 'x' AND c = 10   ->   SELECT a FROM t WHERE b = ❬s❭ AND c = ❬i❭

One regular expression finds plain strings and plain decimal numbers. Everything else stays in the
shape as it is written: other spellings (`E'..'`, `1e5`, `0x1F`), quoted names, comments. What is
taken may even be no literal (a number in a comment), so the user of a shape checks once, by the
tokens of one text, that all that was taken are tokens. Then they are for every text of the shape: a
marker says the kind of the token and for integers its type, and a token of that kind ends where the
marker ends.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from belvedere.sql.parse.lexical.lexer import INTEGER, NUMBER, STRING, tokenize

TEXT_CHARACTERS_MAX = 200_000
_PIECE = re.compile(
    r"""('[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*"|(?<![\w$.])[0-9]+(?:\.[0-9]+)?(?![\w$.]))"""
)
_split = _PIECE.split
_STRING, _SMALL, _LARGE, _DECIMAL = "\0s", "\0i", "\0j", "\0n"
_KINDS = {_STRING: STRING, _SMALL: INTEGER, _LARGE: INTEGER, _DECIMAL: NUMBER}
_SMALL_DIGITS = 9
_LARGE_DIGITS = 18
"""So many digits are an integer, or a bigint, whatever they are."""


class SplitText(NamedTuple):
    """`literals` are as written, with their quotes."""

    shape: str
    literals: list[str]


def split_literals(text: str, characters_max: int = TEXT_CHARACTERS_MAX) -> SplitText | None:
    """The shape of a text; None when it has no literals, or is better not looked at."""
    if len(text) > characters_max or "\0" in text:
        return None
    parts = _split(text)
    literals = []
    for i in range(1, len(parts), 2):
        part = parts[i]
        first = part[0]
        if first == "'":
            parts[i] = _STRING
        elif first == '"':
            continue
        elif len(part) <= _SMALL_DIGITS and "." not in part:
            parts[i] = _SMALL
        else:
            kind = _find_number_kind(part)
            if kind is None:
                continue
            parts[i] = kind
        literals.append(part)
    return SplitText("".join(parts), literals) if literals else None


def _find_number_kind(digits: str) -> str | None:
    if "." in digits:
        return _DECIMAL
    if len(digits) > _LARGE_DIGITS:
        return None
    return _SMALL if int(digits) < 2**31 else _LARGE


def find_literal_starts(text: str, split: SplitText) -> list[int] | None:
    """Where each literal begins; None when one of them is no token of its kind."""
    tokens = {token.start: token for token in tokenize(text)}
    starts: list[int] = []
    at = 0
    parts = re.split("(\0[sijn])", split.shape)
    for i, literal in enumerate(split.literals):
        at += len(parts[2 * i])
        token = tokens.get(at)
        end = at + len(literal)
        if token is None or token.kind != _KINDS[parts[2 * i + 1]] or token.end != end:
            return None
        starts.append(at)
        at = end
    return starts


def read_string_literal(written: str) -> str:
    return written[1:-1].replace("''", "'")
