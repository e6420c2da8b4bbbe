"""Parses INSERT, UPDATE and DELETE."""

from __future__ import annotations

from msgspec.structs import replace

from belvedere.errors import Unsupported
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.lexical.token_cursor import TokenCursor
from belvedere.sql.parse.queries.from_clause import parse_from_list
from belvedere.sql.parse.queries.query import parse_query, parse_query_after_with, parse_target
from belvedere.sql.parse.queries.with_clause import parse_with


def parse_data_statement(c: TokenCursor) -> t.DataStatement:
    """A query or a change of data, with its WITH."""
    at = c.token.start
    ctes, recursive = parse_with(c)
    found: t.InsertTree | t.UpdateTree | t.DeleteTree
    if c.is_word("insert"):
        found = _parse_insert(c)
    elif c.is_word("update"):
        found = _parse_update(c)
    elif c.is_word("delete"):
        found = _parse_delete(c)
    elif c.is_word("merge"):
        raise Unsupported("MERGE", position=c.token.start + 1, hint="use insert on conflict")
    else:
        return parse_query_after_with(c, at, ctes, recursive)
    return replace(found, ctes=ctes, recursive=recursive) if ctes else found


def _parse_insert(c: TokenCursor) -> t.InsertTree:
    c.expect("insert", "into")
    at = c.token.start
    table = c.parse_qualified()
    alias = c.parse_name() if c.accept("as") else None
    columns: tuple[tuple[str, int], ...] = ()
    if c.is_sign("(") and not c.is_query_ahead():
        c.next_token()
        columns = c.parse_comma_list(lambda: _parse_column_name(c))
        c.expect_sign(")")
    overriding = ""
    if c.accept("overriding"):
        overriding = c.expect_one_of("system", "user")
        c.expect("value")
    query = None if c.accept("default", "values") else parse_query(c)
    conflict = _parse_on_conflict(c) if c.is_word("on", "conflict") else None
    return t.InsertTree(table, alias, columns, query, overriding, conflict, _parse_returning(c), at)


def _parse_column_name(c: TokenCursor) -> tuple[str, int]:
    at = c.token.start
    name = c.parse_name()
    if c.is_sign(".") or c.is_sign("["):
        raise Unsupported("assignment to a part of a column", position=at + 1)
    return name, at


def _parse_on_conflict(c: TokenCursor) -> t.ConflictTree:
    at = c.expect("on", "conflict")
    constraint, targets, target_where = None, [], None
    if c.accept("on", "constraint"):
        constraint = c.parse_name()
    elif c.accept_sign("("):
        targets = list(c.parse_comma_list(lambda: _parse_conflict_target(c)))
        c.expect_sign(")")
        target_where = c.parse_expression() if c.accept("where") else None
    c.expect("do")
    if c.accept("nothing"):
        return t.ConflictTree(constraint, tuple(targets), target_where, None, None, at)
    c.expect("update", "set")
    updates = c.parse_comma_list(lambda: _parse_set_clause(c))
    where = c.parse_expression() if c.accept("where") else None
    return t.ConflictTree(constraint, tuple(targets), target_where, updates, where, at)


def _parse_conflict_target(c: TokenCursor) -> t.Expr:
    found = c.parse_expression()
    return found.operand if isinstance(found, t.Collate) else found


def _parse_update(c: TokenCursor) -> t.UpdateTree:
    c.expect("update")
    c.accept("only")
    at = c.token.start
    table = c.parse_qualified()
    alias = c.parse_table_alias()
    c.expect("set")
    sets = c.parse_comma_list(lambda: _parse_set_clause(c))
    sources = parse_from_list(c) if c.accept("from") else ()
    where = _parse_where(c)
    return t.UpdateTree(table, alias, sets, sources, where, _parse_returning(c), at)


def _parse_delete(c: TokenCursor) -> t.DeleteTree:
    c.expect("delete", "from")
    c.accept("only")
    at = c.token.start
    table = c.parse_qualified()
    alias = c.parse_table_alias()
    sources = parse_from_list(c) if c.accept("using") else ()
    where = _parse_where(c)
    return t.DeleteTree(table, alias, sources, where, _parse_returning(c), at)


def _parse_where(c: TokenCursor) -> t.Expr | None:
    if not c.accept("where"):
        return None
    if c.is_word("current", "of"):
        raise Unsupported("where current of", position=c.token.start + 1)
    return c.parse_expression()


def _parse_set_clause(c: TokenCursor) -> t.SetClause:
    at = c.token.start
    if c.accept_sign("("):
        columns = tuple(name for name, _ in c.parse_comma_list(lambda: _parse_column_name(c)))
        c.expect_sign(")")
        c.expect_sign("=")
        return t.SetClause(columns, c.parse_expression(), at, True)
    name, _ = _parse_column_name(c)
    c.expect_sign("=")
    return t.SetClause((name,), c.parse_expression(), at, False)


def _parse_returning(c: TokenCursor) -> tuple[t.SelectItem, ...]:
    if not c.accept("returning"):
        return ()
    if c.is_word("with"):
        raise Unsupported("returning with", position=c.token.start + 1)
    return c.parse_comma_list(lambda: parse_target(c))
