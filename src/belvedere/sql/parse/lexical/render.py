"""Renders tokens to SQL text in one canonical spelling.

Expressions and queries that the catalog keeps go through here, so that comments, line ends and the
case of keywords do not matter, and so that a `*` can be replaced by the columns it stood for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from belvedere.errors import InvalidInput
from belvedere.sql.parse.lexical.keywords import NOT_COLUMN, RESERVED
from belvedere.sql.parse.lexical.lexer import (
    BITS,
    PARAMETER,
    QUOTED,
    SIGN,
    STRING,
    WORD,
    SqlToken,
)
from belvedere.values.quoting import quote_identifier, quote_literal

_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*\Z")
_NO_SPACE_BEFORE = frozenset({",", ")", "]", "::", "[", ";"})
_NO_SPACE_AFTER = frozenset({"(", "::", "["})
_SPACED_PARENTHESIS = RESERVED | {
    "values",
    "over",
    "filter",
    "by",
    "is",
    "like",
    "between",
    "using",
}


def render_tokens(
    tokens: Sequence[SqlToken], replaced: Mapping[int, tuple[int, str]] | None = None
) -> str:
    """The text of tokens. `replaced` gives, by start offset, the end offset and other text."""
    parts: list[str] = []
    last: SqlToken | None = None
    skip_to = -1
    for token in tokens:
        if token.start < skip_to:
            continue
        text = spell_token(token)
        if replaced is not None and token.start in replaced:
            skip_to, text = replaced[token.start]
            if token.kind == WORD and token.text == "table":  # TABLE t: the star of its columns
                text = f"select {text} from"
        if last is not None and _needs_space(last, token):
            parts.append(" ")
        parts.append(text)
        last = token
    return "".join(parts)


def spell_token(token: SqlToken) -> str:
    if token.kind == STRING:
        return quote_literal(token.text)
    if token.kind == BITS:
        return f"{token.text[0]}'{token.text[1:]}'"
    if token.kind == QUOTED:
        return quote(token.text)
    if token.kind == PARAMETER:
        raise InvalidInput(
            "parameters are not allowed here", sqlstate="42P02", position=token.start + 1
        )
    return token.text


def quote(name: str) -> str:
    """A name as SQL text: in quotes only when it needs them."""
    if _PLAIN.match(name) and name not in NOT_COLUMN:
        return name
    return quote_identifier(name)


def _needs_space(last: SqlToken, token: SqlToken) -> bool:
    if "." in (last.text, token.text) and SIGN in (last.kind, token.kind):
        return not all(one.kind in (WORD, QUOTED) or one.text in ".*" for one in (last, token))
    if token.kind == SIGN and token.text in _NO_SPACE_BEFORE:
        return False
    if last.kind == SIGN and last.text in _NO_SPACE_AFTER:
        return False
    if token.kind == SIGN and token.text == "(":
        return not (last.kind in (WORD, QUOTED) and last.text not in _SPACED_PARENTHESIS)
    return True
