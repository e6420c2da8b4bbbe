"""Splitting of text into statements, and the caret line of an error."""

from __future__ import annotations

from belvedere.errors import Error
from belvedere.sql.parse.lexical.lexer import SIGN, tokenize

DUMP_FIRST = "-- the store at position"
DUMP_LAST = "-- end of the dump"
"""How the first line of a dump begins, and its last line."""


def is_cut_dump(text: str) -> bool:
    """Whether the text is a dump without its end: what wrote it was interrupted."""
    return text.startswith(DUMP_FIRST) and not text.rstrip().endswith(DUMP_LAST)


def split_statements(text: str) -> tuple[list[str], str]:
    """The complete statements of a text, and the rest after the last semicolon."""
    try:
        tokens = tokenize(text)
    except Error as error:
        if "unterminated" in error.message:
            return _split_before_quote(text)
        return [text], ""
    statements, start = [], 0
    for token in tokens:
        if token.kind == SIGN and token.text == ";":
            statements.append(text[start : token.end].strip())
            start = token.end
    return [one for one in statements if one.strip(" \n\t;")], text[start:]


def _split_before_quote(text: str) -> tuple[list[str], str]:
    """Split a text with an open quote: only statements before the quote can be complete."""
    for at in range(text.rfind(";"), -1, -1):
        if text[at] == ";":
            try:
                tokenize(text[: at + 1])
            except Error:
                continue
            found, rest = split_statements(text[: at + 1])
            return found, rest + text[at + 1 :]
    return [], text


def is_complete(text: str) -> bool:
    """Whether the text can be run: a command of the shell, or ended by a semicolon."""
    body = text.strip()
    if not body or body.startswith("\\"):
        return True
    statements, rest = split_statements(text)
    return bool(statements) and not rest.strip()


def caret_lines(text: str, position: int | None) -> list[str]:
    """The line of a statement an error points at, with a caret below it."""
    if position is None or not 1 <= position <= len(text) + 1:
        return []
    at = position - 1
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = text[start : len(text) if end < 0 else end]
    number = text.count("\n", 0, at) + 1
    head = f"LINE {number}: "
    return [head + line, " " * (len(head) + at - start) + "^"]
