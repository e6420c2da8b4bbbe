"""Parses CREATE of everything but tables; DROP, TRUNCATE; REFRESH, VERIFY, REPAIR."""

from __future__ import annotations

from belvedere.errors import Unsupported
from belvedere.sql import definitions as d
from belvedere.sql.parse.cursor import Cursor
from belvedere.sql.parse.forms import QueryForm
from belvedere.sql.parse.lexer import QUOTED, WORD
from belvedere.sql.parse.names import (
    expression_text,
    options,
    parse_sequence_options,
    qualified,
    query_form,
)
from belvedere.sql.parse.tables import parse_create_table

_MISSING = frozenset(
    """
    aggregate cast collation conversion database domain event extension foreign function group
    language operator policy procedure publication role rule server statistics subscription
    tablespace text transform trigger type user access
    """.split()
)


def parse_create(c: Cursor) -> d.Definition | QueryForm:
    at = c.expect("create")
    or_replace = c.accept("or", "replace")
    c.accept("unlogged")  # what is logged is more than what was asked for
    if c.is_any(("temp", "temporary", "global", "local")):
        raise Unsupported(f"{c.token.text} object", position=c.token.start + 1)
    if c.accept("materialized", "view"):
        return _view(c, "materialized view", or_replace)
    if c.accept("view"):
        return _view(c, "view", or_replace)
    if or_replace:
        raise c.error() if not c.is_any(_MISSING) else _missing(c)
    if c.accept("table"):
        return parse_create_table(c)
    if c.accept("unique", "index"):
        return _index(c, unique=True)
    if c.accept("index"):
        return _index(c, unique=False)
    if c.accept("sequence"):
        if_not_exists = c.accept("if", "not", "exists")
        return d.CreateSequence(qualified(c), parse_sequence_options(c), if_not_exists)
    if c.accept("schema"):
        if_not_exists = c.accept("if", "not", "exists")
        return d.CreateSchema(c.name(), if_not_exists)
    if c.is_word("recursive", "view"):
        raise Unsupported("create recursive view", position=at + 1, hint="use with recursive")
    raise _missing(c) if c.is_any(_MISSING) else c.error()


def _missing(c: Cursor) -> Unsupported:
    return Unsupported(f"create {c.token.text}", position=c.token.start + 1)


def _view(c: Cursor, kind: str, or_replace: bool) -> QueryForm:
    if_not_exists = c.accept("if", "not", "exists")
    name = qualified(c)
    columns = c.names() if c.is_sign("(") else ()
    found = options(c)
    c.expect("as")
    form = query_form(
        c, kind, name, columns, found, if_not_exists=if_not_exists, or_replace=or_replace
    )
    if c.is_word("with"):
        raise Unsupported("check option of a view", position=c.token.start + 1)
    return form


# -- indexes ---------------------------------------------------------------------------------------


def _index(c: Cursor, unique: bool) -> d.CreateIndex:
    concurrently = c.accept("concurrently")
    if_not_exists = c.accept("if", "not", "exists")
    name = None if c.is_word("on") else c.name()
    c.expect("on")
    c.accept("only")
    table = qualified(c)
    if c.accept("using") and (method := c.name()) not in ("btree", "hash"):
        raise Unsupported("index method", method=method, hint="use btree")
    c.expect_sign("(")
    parts = c.comma_list(lambda: _part(c))
    c.expect_sign(")")
    include = c.names() if c.accept("include") else ()
    distinct = not c.accept("nulls", "not", "distinct")
    if distinct:
        c.accept("nulls", "distinct")
    found = options(c)
    where = expression_text(c) if c.accept("where") else None
    return d.CreateIndex(
        name, table, parts, include, unique, distinct, where, found, if_not_exists, concurrently
    )


_ORDERED_AS_STORED: tuple[str, ...] = (
    "text_ops",
    "varchar_ops",
    "bpchar_ops",
    "int2_ops",
    "int4_ops",
    "int8_ops",
    "text_pattern_ops",
    "varchar_pattern_ops",
    "bpchar_pattern_ops",
)
"""Operator classes that mean no other order than ours: that of collation "C"."""


def _part(c: Cursor) -> d.IndexPart:
    column, expression = None, None
    token, after = c.token, c.peek()
    if token.kind in (WORD, QUOTED) and after.text != "(" and after.text != ".":
        column = c.name()
    elif c.accept_sign("("):
        expression = expression_text(c)
        c.expect_sign(")")
    else:
        expression = expression_text(c)
    if c.accept("collate"):
        if (name := c.qualified()[-1]) not in ("C", "POSIX", "default"):
            raise Unsupported("collation", name=name)
    if c.token.kind == WORD and c.token.text not in ("asc", "desc", "nulls"):
        if c.token.text not in _ORDERED_AS_STORED:
            raise Unsupported("operator class of an index", position=c.token.start + 1)
        c.take()
    descending = c.accept("desc")
    if not descending:
        c.accept("asc")
    nulls_first = None
    if c.accept("nulls"):
        nulls_first = c.choice("first", "last") == "first"
    return d.IndexPart(column, expression, None, descending, nulls_first)


# -- DROP, TRUNCATE, REFRESH -----------------------------------------------------------------------


def parse_drop(c: Cursor) -> d.Drop:
    c.expect("drop")
    kind = parse_kind(c, "drop")
    if kind == "index":
        c.accept("concurrently")
    if_exists = c.accept("if", "exists")
    names = c.comma_list(lambda: qualified(c))
    return d.Drop(kind, names, if_exists, _cascade(c))


def parse_kind(c: Cursor, verb: str) -> str:
    """The kind of object that ALTER or DROP is about."""
    if c.accept("materialized", "view"):
        return "materialized view"
    for kind in ("table", "index", "view", "sequence", "schema"):
        if c.accept(kind):
            return kind
    if c.is_any(_MISSING):
        raise Unsupported(f"{verb} {c.token.text}", position=c.token.start + 1)
    raise c.error()


def _cascade(c: Cursor) -> bool:
    if c.accept("cascade"):
        return True
    c.accept("restrict")
    return False


def parse_truncate(c: Cursor) -> d.Truncate:
    c.expect("truncate")
    c.accept("table")
    c.accept("only")
    names = c.comma_list(lambda: qualified(c))
    restart = c.accept("restart", "identity")
    if not restart:
        c.accept("continue", "identity")
    return d.Truncate(names, restart, _cascade(c))


def parse_maintain(c: Cursor) -> d.MaintainView:
    verb = c.choice("refresh", "verify", "repair")
    c.expect("materialized", "view")
    if c.is_word("concurrently"):
        c.take()
    name = qualified(c)
    if c.is_word("with", "no", "data"):
        raise Unsupported("refresh with no data", position=c.token.start + 1)
    c.accept("with", "data")
    return d.MaintainView(verb, name)
