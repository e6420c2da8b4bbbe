"""Parses WITH: common table expressions, of queries and of statements that change data."""

from __future__ import annotations

from belvedere.errors import Unsupported
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.lexical.token_cursor import TokenCursor


def parse_with(c: TokenCursor) -> tuple[tuple[t.CteTree, ...], bool]:
    """The CTEs of a statement (none without WITH), and whether they are RECURSIVE."""
    if not c.accept("with"):
        return (), False
    recursive = c.accept("recursive")
    return c.parse_comma_list(lambda: _parse_cte(c)), recursive


def _parse_cte(c: TokenCursor) -> t.CteTree:
    at = c.token.start
    name = c.parse_name()
    columns = c.parse_name_list() if c.is_sign("(") else ()
    c.expect("as")
    materialized = None
    if c.accept("not", "materialized"):
        materialized = False
    elif c.accept("materialized"):
        materialized = True
    c.expect_sign("(")
    statement = c.grammar.statement(c)
    c.expect_sign(")")
    if c.is_any(("search", "cycle")):
        raise Unsupported(f"{c.token.text} clause of a recursive query", position=c.token.start + 1)
    return t.CteTree(name, columns, statement, materialized, at)
