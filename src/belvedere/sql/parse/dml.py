"""Parses INSERT, UPDATE and DELETE."""

from __future__ import annotations

from msgspec.structs import replace

from belvedere.errors import Unsupported
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.cursor import Cursor
from belvedere.sql.parse.query import parse_query, parse_query_after, parse_target
from belvedere.sql.parse.sources import parse_sources
from belvedere.sql.parse.with_clause import parse_with


def parse_data_statement(c: Cursor) -> t.DataStatement:
    """A query or a change of data, with its WITH."""
    at = c.token.start
    ctes, recursive = parse_with(c)
    found: t.InsertTree | t.UpdateTree | t.DeleteTree
    if c.is_word("insert"):
        found = _insert(c)
    elif c.is_word("update"):
        found = _update(c)
    elif c.is_word("delete"):
        found = _delete(c)
    elif c.is_word("merge"):
        raise Unsupported("merge", position=c.token.start + 1, hint="use insert on conflict")
    else:
        return parse_query_after(c, at, ctes, recursive)
    return replace(found, ctes=ctes, recursive=recursive) if ctes else found


def _insert(c: Cursor) -> t.InsertTree:
    c.expect("insert", "into")
    at = c.token.start
    table = c.qualified()
    alias = c.name() if c.accept("as") else None
    columns: tuple[tuple[str, int], ...] = ()
    if c.is_sign("(") and not c.query_ahead():
        c.take()
        columns = c.comma_list(lambda: _column(c))
        c.expect_sign(")")
    overriding = ""
    if c.accept("overriding"):
        overriding = c.choice("system", "user")
        c.expect("value")
    query = None if c.accept("default", "values") else parse_query(c)
    conflict = _conflict(c) if c.is_word("on", "conflict") else None
    return t.InsertTree(table, alias, columns, query, overriding, conflict, _returning(c), at)


def _column(c: Cursor) -> tuple[str, int]:
    at = c.token.start
    name = c.name()
    if c.is_sign(".") or c.is_sign("["):
        raise Unsupported("assignment to a part of a column", position=at + 1)
    return name, at


def _conflict(c: Cursor) -> t.ConflictTree:
    at = c.expect("on", "conflict")
    constraint, targets, target_where = None, [], None
    if c.accept("on", "constraint"):
        constraint = c.name()
    elif c.accept_sign("("):
        targets = list(c.comma_list(lambda: _conflict_target(c)))
        c.expect_sign(")")
        target_where = c.expression() if c.accept("where") else None
    c.expect("do")
    if c.accept("nothing"):
        return t.ConflictTree(constraint, tuple(targets), target_where, None, None, at)
    c.expect("update", "set")
    updates = c.comma_list(lambda: _set_clause(c))
    where = c.expression() if c.accept("where") else None
    return t.ConflictTree(constraint, tuple(targets), target_where, updates, where, at)


def _conflict_target(c: Cursor) -> t.Expr:
    found = c.expression()
    return found.operand if isinstance(found, t.Collate) else found


def _update(c: Cursor) -> t.UpdateTree:
    c.expect("update")
    c.accept("only")
    at = c.token.start
    table = c.qualified()
    alias = c.table_alias()
    c.expect("set")
    sets = c.comma_list(lambda: _set_clause(c))
    sources = parse_sources(c) if c.accept("from") else ()
    where = _where(c)
    return t.UpdateTree(table, alias, sets, sources, where, _returning(c), at)


def _delete(c: Cursor) -> t.DeleteTree:
    c.expect("delete", "from")
    c.accept("only")
    at = c.token.start
    table = c.qualified()
    alias = c.table_alias()
    sources = parse_sources(c) if c.accept("using") else ()
    where = _where(c)
    return t.DeleteTree(table, alias, sources, where, _returning(c), at)


def _where(c: Cursor) -> t.Expr | None:
    if not c.accept("where"):
        return None
    if c.is_word("current", "of"):
        raise Unsupported("where current of", position=c.token.start + 1)
    return c.expression()


def _set_clause(c: Cursor) -> t.SetClause:
    at = c.token.start
    if c.accept_sign("("):
        columns = tuple(name for name, _ in c.comma_list(lambda: _column(c)))
        c.expect_sign(")")
        c.expect_sign("=")
        return t.SetClause(columns, c.expression(), at, True)
    name, _ = _column(c)
    c.expect_sign("=")
    return t.SetClause((name,), c.expression(), at, False)


def _returning(c: Cursor) -> tuple[t.Target, ...]:
    if not c.accept("returning"):
        return ()
    if c.is_word("with"):
        raise Unsupported("returning with", position=c.token.start + 1)
    return c.comma_list(lambda: parse_target(c))
