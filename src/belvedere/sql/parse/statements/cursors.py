"""Parses DECLARE, FETCH, MOVE, CLOSE, LISTEN, UNLISTEN and NOTIFY."""

from __future__ import annotations

from belvedere.sql import statements as s
from belvedere.sql.parse.lexical.token_cursor import TokenCursor
from belvedere.sql.parse.statement_forms import DeclareForm

_STEPS = {
    "next": ("forward", 1),
    "prior": ("backward", 1),
    "first": ("absolute", 1),
    "last": ("absolute", -1),
}


def parse_declare(c: TokenCursor) -> DeclareForm:
    c.expect("declare")
    name, scroll = c.parse_name(), False
    while not c.is_word("cursor"):
        if c.accept("no", "scroll"):
            scroll = False
        elif c.expect_one_of("binary", "insensitive", "asensitive", "scroll") == "scroll":
            scroll = True
    c.expect("cursor")
    hold = c.accept("with", "hold")
    if not hold:
        c.accept("without", "hold")
    c.expect("for")
    start = c.token.start
    query = c.grammar.statement(c)
    return DeclareForm(name, query, c.text[start : c.tokens[c.index - 1].end], scroll, hold)


def parse_fetch(c: TokenCursor) -> s.FetchCursor:
    moves = c.expect_one_of("fetch", "move") == "move"
    direction, count = _parse_direction(c)
    if not c.accept("from"):
        c.accept("in")
    return s.FetchCursor(c.parse_name(), direction, count, moves)


def _parse_direction(c: TokenCursor) -> tuple[str, int | None]:
    for word, found in _STEPS.items():
        if c.accept(word):
            return found
    for word in ("absolute", "relative"):
        if c.accept(word):
            return word, _parse_count(c)
    direction = "backward" if c.accept("backward") else "forward"
    if direction == "forward":
        c.accept("forward")
    if c.accept("all"):
        return direction, None
    is_number = c.is_sign("-") or c.is_sign("+") or c.token.text.isdigit()
    return direction, _parse_count(c) if is_number else 1


def _parse_count(c: TokenCursor) -> int:
    below = c.accept_sign("-")
    if not below:
        c.accept_sign("+")
    count = c.parse_integer()
    return -count if below else count


def parse_close(c: TokenCursor) -> s.CloseCursor:
    c.expect("close")
    return s.CloseCursor(None if c.accept("all") else c.parse_name())


def parse_listen(c: TokenCursor) -> s.Listen:
    c.expect("listen")
    return s.Listen(c.parse_name())


def parse_unlisten(c: TokenCursor) -> s.Unlisten:
    c.expect("unlisten")
    return s.Unlisten(None if c.accept_sign("*") else c.parse_name())


def parse_notify(c: TokenCursor) -> s.Notify:
    c.expect("notify")
    channel = c.parse_name()
    return s.Notify(channel, c.parse_string() if c.accept_sign(",") else "")
