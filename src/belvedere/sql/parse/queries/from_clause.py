"""Parses FROM: tables, sub-queries, functions and joins."""

from __future__ import annotations

from belvedere.errors import Unsupported
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.lexical.token_cursor import TokenCursor
from belvedere.sql.parse.queries.calls import parse_call

_JOIN_WORDS = ("join", "inner", "left", "right", "full", "cross", "natural")


def parse_from_list(c: TokenCursor) -> tuple[t.FromItem, ...]:
    return c.parse_comma_list(lambda: _parse_from_item(c))


def _parse_from_item(c: TokenCursor) -> t.FromItem:
    c.enter_level()
    left = _parse_source(c)
    while c.is_any(_JOIN_WORDS):
        left = _parse_join(c, left)
    c.leave_level()
    return left


def _parse_join(c: TokenCursor, left: t.FromItem) -> t.FromItem:
    at = c.token.start
    natural = c.accept("natural")
    kind = "inner"
    if c.is_any(("inner", "left", "right", "full", "cross")):
        kind = c.next_token().text
        if kind in ("left", "right", "full"):
            c.accept("outer")
    c.expect("join")
    right = _parse_source(c)
    if kind == "cross":
        return t.JoinRef("cross", left, right, False, (), None, None, at)
    if natural:
        return t.JoinRef(kind, left, right, True, (), None, None, at)
    # `a JOIN b JOIN c ON .. ON ..`: the inner join comes first.
    while c.is_any(_JOIN_WORDS):
        right = _parse_join(c, right)
    if c.accept("using"):
        names = c.parse_name_list()
        alias = c.parse_name() if c.accept("as") else None
        return t.JoinRef(kind, left, right, False, names, None, alias, at)
    c.expect("on")
    return t.JoinRef(kind, left, right, False, (), c.parse_expression(), None, at)


def _parse_source(c: TokenCursor) -> t.FromItem:
    at = c.token.start
    lateral = c.accept("lateral")
    if c.is_sign("("):
        if c.is_query_ahead() and not _is_join_in_parentheses(c):
            return _parse_subquery(c, lateral, at)
        c.next_token()
        found = _parse_from_item(c)
        c.expect_sign(")")
        if c.parse_table_alias() is not None:
            raise Unsupported("alias of a parenthesized join", position=at + 1)
        return found
    if c.is_word("rows", "from"):
        return _parse_rows_from(c, lateral, at)
    c.accept("only")
    if _is_call_ahead(c):
        return _parse_function(c, lateral, at)
    if lateral:
        raise c.make_syntax_error()
    name = c.parse_qualified()
    c.accept_sign("*")
    alias, columns = _parse_alias(c)
    if c.is_word("tablesample"):
        raise Unsupported("TABLESAMPLE", position=c.token.start + 1)
    return t.TableRef(name, alias, columns, at)


def _is_join_in_parentheses(c: TokenCursor) -> bool:
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


def _parse_subquery(c: TokenCursor, lateral: bool, at: int) -> t.QueryRef:
    c.expect_sign("(")
    query = c.parse_query()
    c.expect_sign(")")
    alias, columns = _parse_alias(c)
    return t.QueryRef(query, alias, columns, lateral, at)


def _is_call_ahead(c: TokenCursor) -> bool:
    ahead = 1
    while c.peek(ahead).text == "." and c.peek(ahead + 1).text != "(":
        ahead += 2
    return c.peek(ahead).text == "("


def _parse_function(c: TokenCursor, lateral: bool, at: int) -> t.FunctionRef:
    return _parse_function_tail(c, (_parse_source_call(c),), lateral, at)


def _parse_rows_from(c: TokenCursor, lateral: bool, at: int) -> t.FunctionRef:
    c.expect("rows", "from")
    c.expect_sign("(")
    calls = c.parse_comma_list(lambda: _parse_source_call(c))
    c.expect_sign(")")
    return _parse_function_tail(c, calls, lateral, at)


def _parse_function_tail(
    c: TokenCursor, calls: tuple[t.FunctionCall, ...], lateral: bool, at: int
) -> t.FunctionRef:
    ordinality = c.accept("with", "ordinality")
    alias, columns = _parse_alias(c)
    return t.FunctionRef(calls, ordinality, alias, columns, lateral, at)


def _parse_source_call(c: TokenCursor) -> t.FunctionCall:
    token = c.token
    name = c.parse_qualified()
    found = parse_call(c, name, token.start)
    if not isinstance(found, t.FunctionCall):
        raise c.make_syntax_error()
    return found


def _parse_alias(c: TokenCursor) -> tuple[str | None, tuple[str, ...]]:
    alias = c.parse_table_alias()
    if alias is None or not c.is_sign("("):
        return alias, ()
    c.next_token()
    names = [c.parse_name()]
    if not c.is_sign(",") and not c.is_sign(")"):
        raise Unsupported("column definition list", position=c.token.start + 1)
    while c.accept_sign(","):
        names.append(c.parse_name())
    c.expect_sign(")")
    return alias, tuple(names)
