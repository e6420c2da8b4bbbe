"""Splitting of text into statements, and the caret line of an error."""

from __future__ import annotations

import re

DUMP_FIRST = "-- the store at position"
DUMP_LAST = "-- end of the dump"
"""How the first line of a dump begins, and its last line."""

_PIECE = re.compile(
    r"""
    (?P<end>;)
  | (?P<escaped>[eE]'(?:[^'\\]++|''|\\.)*+')
  | (?P<open>[eE]'|'(?![^']*+(?:''[^']*+)*+')|"(?![^"]*+"))
  | (?P<word>\w[\w$]*)
  | (?P<string>'[^']*+(?:''[^']*+)*+')
  | (?P<quoted>"[^"]*+")
  | (?P<line>--[^\n\r]*)
  | (?P<comment>/\*)
  | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
  | (?P<other>[^;'"$\w/-]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_BLANKS = re.compile(r"(?:\s|--[^\n\r]*)*")


def is_cut_dump(text: str) -> bool:
    """Whether the text is a dump without its end: what wrote it was interrupted."""
    return text.startswith(DUMP_FIRST) and not text.rstrip().endswith(DUMP_LAST)


def find_statement_end(text: str, start: int = 0) -> int | None:
    """Where the statement that begins at `start` ends, behind its semicolon; None when the text
    ends first. Every character is looked at once, whatever the number of lines."""
    at = start
    while found := _PIECE.match(text, at):
        at = found.end()
        match found.lastgroup:
            case "end":
                return at
            case "comment":
                at = _skip_comment(text, at)
            case "dollar":
                at = text.find(found.group(), at)
                at = len(text) if at < 0 else at + len(found.group())
            case "open":
                return None
    return None


def _skip_comment(text: str, at: int) -> int:
    """The end of a comment that begins before `at`; comments nest."""
    depth = 1
    while depth:
        found = _COMMENT_EDGE.search(text, at)
        if found is None:
            return len(text)
        depth += 1 if found.group() == "/*" else -1
        at = found.end()
    return at


def split_statements(text: str) -> tuple[list[str], str]:
    """The complete statements of a text, and the rest after the last semicolon."""
    statements, start = [], 0
    while (end := find_statement_end(text, start)) is not None:
        statements.append(text[start:end].strip())
        start = end
    return [one for one in statements if one.strip(" \n\t;")], text[start:]


def skip_blanks(text: str, start: int) -> int:
    """The first place from `start` on that is neither white space nor a comment of one line."""
    found = _BLANKS.match(text, start)
    assert found is not None
    return found.end()


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
