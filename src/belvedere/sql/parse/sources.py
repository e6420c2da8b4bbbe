"""Parses FROM: tables, sub-queries, functions and joins."""

from __future__ import annotations

from belvedere.errors import Unsupported
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.calls import parse_call
from belvedere.sql.parse.cursor import Cursor

_JOIN_WORDS = ("join", "inner", "left", "right", "full", "cross", "natural")


def parse_sources(c: Cursor) -> tuple[t.FromItem, ...]:
    return c.comma_list(lambda: _joined(c))


def _joined(c: Cursor) -> t.FromItem:
    c.enter()
    left = _source(c)
    while c.is_any(_JOIN_WORDS):
        left = _join(c, left)
    c.leave()
    return left


def _join(c: Cursor, left: t.FromItem) -> t.FromItem:
    at = c.token.start
    natural = c.accept("natural")
    kind = "inner"
    if c.is_any(("inner", "left", "right", "full", "cross")):
        kind = c.take().text
        if kind in ("left", "right", "full"):
            c.accept("outer")
    c.expect("join")
    right = _source(c)
    if kind == "cross":
        return t.JoinRef("cross", left, right, False, (), None, None, at)
    if natural:
        return t.JoinRef(kind, left, right, True, (), None, None, at)
    # `a JOIN b JOIN c ON .. ON ..`: the inner join comes first.
    while c.is_any(_JOIN_WORDS):
        right = _join(c, right)
    if c.accept("using"):
        names = c.names()
        alias = c.name() if c.accept("as") else None
        return t.JoinRef(kind, left, right, False, names, None, alias, at)
    c.expect("on")
    return t.JoinRef(kind, left, right, False, (), c.expression(), None, at)


def _source(c: Cursor) -> t.FromItem:
    at = c.token.start
    lateral = c.accept("lateral")
    if c.is_sign("("):
        if c.query_ahead() and not _join_in_parentheses(c):
            return _subquery(c, lateral, at)
        c.take()
        found = _joined(c)
        c.expect_sign(")")
        if c.table_alias() is not None:
            raise Unsupported("alias of a parenthesized join", position=at + 1)
        return found
    if c.is_word("rows", "from"):
        return _rows_from(c, lateral, at)
    c.accept("only")
    if _call_ahead(c):
        return _function(c, lateral, at)
    if lateral:
        raise c.error()
    name = c.qualified()
    c.accept_sign("*")
    alias, columns = _alias(c)
    if c.is_word("tablesample"):
        raise Unsupported("tablesample", position=c.token.start + 1)
    return t.TableRef(name, alias, columns, at)


def _join_in_parentheses(c: Cursor) -> bool:
    """`((select ..) x join ..)`: a join whose first part is a sub-query."""
    ahead, depth = 1, 0
    if c.peek(ahead).text != "(":
        return False
    while True:
        token = c.peek(ahead)
        if token.text == "(":
            depth += 1
        elif token.text == ")":
            depth -= 1
            if depth == 0:
                break
        elif token.start == token.end:
            return False
        ahead += 1
    after = c.peek(ahead + 1).text
    return after not in (")", "union", "except", "intersect", "order", "limit", "offset", "fetch")


def _subquery(c: Cursor, lateral: bool, at: int) -> t.QueryRef:
    c.expect_sign("(")
    query = c.query()
    c.expect_sign(")")
    alias, columns = _alias(c)
    return t.QueryRef(query, alias, columns, lateral, at)


def _call_ahead(c: Cursor) -> bool:
    ahead = 1
    while c.peek(ahead).text == "." and c.peek(ahead + 1).text != "(":
        ahead += 2
    return c.peek(ahead).text == "("


def _function(c: Cursor, lateral: bool, at: int) -> t.FunctionRef:
    return _function_tail(c, (_call(c),), lateral, at)


def _rows_from(c: Cursor, lateral: bool, at: int) -> t.FunctionRef:
    c.expect("rows", "from")
    c.expect_sign("(")
    calls = c.comma_list(lambda: _call(c))
    c.expect_sign(")")
    return _function_tail(c, calls, lateral, at)


def _function_tail(
    c: Cursor, calls: tuple[t.FunctionCall, ...], lateral: bool, at: int
) -> t.FunctionRef:
    ordinality = c.accept("with", "ordinality")
    alias, columns = _alias(c)
    return t.FunctionRef(calls, ordinality, alias, columns, lateral, at)


def _call(c: Cursor) -> t.FunctionCall:
    token = c.token
    name = c.qualified()
    found = parse_call(c, name, token.start)
    if not isinstance(found, t.FunctionCall):
        raise c.error()
    return found


def _alias(c: Cursor) -> tuple[str | None, tuple[str, ...]]:
    alias = c.table_alias()
    if alias is None or not c.is_sign("("):
        return alias, ()
    c.take()
    names = [c.name()]
    if not c.is_sign(",") and not c.is_sign(")"):
        raise Unsupported("column definition list", position=c.token.start + 1)
    while c.accept_sign(","):
        names.append(c.name())
    c.expect_sign(")")
    return alias, tuple(names)
