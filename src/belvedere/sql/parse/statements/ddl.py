"""Parses CREATE of everything but tables; DROP, TRUNCATE; REFRESH, VERIFY, REPAIR."""

from __future__ import annotations

from belvedere.errors import Unsupported
from belvedere.sql import definitions as d
from belvedere.sql.parse.lexical.lexer import QUOTED, WORD
from belvedere.sql.parse.lexical.token_cursor import TokenCursor
from belvedere.sql.parse.queries.query import refuse_temporary
from belvedere.sql.parse.statement_forms import CreateAsForm
from belvedere.sql.parse.statements.create_table import parse_create_table
from belvedere.sql.parse.statements.ddl_clauses import (
    parse_create_as,
    parse_qualified_name,
    parse_sequence_options,
    parse_with_options,
    read_expression_text,
)
from belvedere.sql.parse.statements.foreign import (
    parse_create_foreign,
    parse_create_server,
    parse_drop_server,
)
from belvedere.sql.parse.statements.grants import parse_drop_owned
from belvedere.sql.parse.statements.roles import ROLE_WORDS, parse_create_role, parse_drop_role

_MISSING = frozenset(
    """
    aggregate cast collation conversion database domain event extension function group
    language operator policy procedure publication rule statistics subscription
    system tablespace text transform trigger type access
    """.split()
)


def parse_create(c: TokenCursor) -> d.Definition | CreateAsForm:
    at = c.expect("create")
    or_replace = c.accept("or", "replace")
    c.accept("unlogged")  # what is logged is more than what was asked for
    refuse_temporary(c)
    if c.accept("materialized", "view"):
        return _parse_view(c, "materialized view", or_replace)
    if c.accept("view"):
        return _parse_view(c, "view", or_replace)
    if or_replace:
        raise c.make_syntax_error() if not c.is_any(_MISSING) else _unsupported_error(c)
    if c.accept("table"):
        return parse_create_table(c)
    if c.accept("unique", "index"):
        return _parse_index(c, unique=True)
    if c.accept("index"):
        return _parse_index(c, unique=False)
    if c.accept("sequence"):
        if_not_exists = c.accept("if", "not", "exists")
        return d.CreateSequence(parse_qualified_name(c), parse_sequence_options(c), if_not_exists)
    if c.accept("schema"):
        if_not_exists = c.accept("if", "not", "exists")
        return d.CreateSchema(c.parse_name(), if_not_exists)
    if c.accept("server"):
        return parse_create_server(c)
    if c.accept("foreign"):
        return parse_create_foreign(c)
    if c.is_word("user", "mapping"):
        raise Unsupported("CREATE USER MAPPING", position=at + 1)
    if c.is_any(ROLE_WORDS):
        return parse_create_role(c)
    if c.is_word("recursive", "view"):
        raise Unsupported("create recursive view", position=at + 1, hint="use with recursive")
    raise _unsupported_error(c) if c.is_any(_MISSING) else c.make_syntax_error()


def _unsupported_error(c: TokenCursor) -> Unsupported:
    return Unsupported(f"CREATE {c.token.text.upper()}", position=c.token.start + 1)


def _parse_view(c: TokenCursor, kind: str, or_replace: bool) -> CreateAsForm:
    if_not_exists = c.accept("if", "not", "exists")
    name = parse_qualified_name(c)
    columns = c.parse_name_list() if c.is_sign("(") else ()
    found = parse_with_options(c)
    c.expect("as")
    form = parse_create_as(
        c, kind, name, columns, found, if_not_exists=if_not_exists, or_replace=or_replace
    )
    if c.is_word("with"):
        raise Unsupported("check option of a view", position=c.token.start + 1)
    return form


# -- indexes ---------------------------------------------------------------------------------------


def _parse_index(c: TokenCursor, unique: bool) -> d.CreateIndex:
    concurrently = c.accept("concurrently")
    if_not_exists = c.accept("if", "not", "exists")
    name = None if c.is_word("on") else c.parse_name()
    c.expect("on")
    c.accept("only")
    table = parse_qualified_name(c)
    if c.accept("using") and (method := c.parse_name()) not in ("btree", "hash"):
        raise Unsupported("index method", method=method, hint="use btree")
    c.expect_sign("(")
    parts = c.parse_comma_list(lambda: _parse_index_part(c))
    c.expect_sign(")")
    include = c.parse_name_list() if c.accept("include") else ()
    distinct = not c.accept("nulls", "not", "distinct")
    if distinct:
        c.accept("nulls", "distinct")
    found = parse_with_options(c)
    where = read_expression_text(c) if c.accept("where") else None
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


def _parse_index_part(c: TokenCursor) -> d.IndexPart:
    column, expression = None, None
    token, after = c.token, c.peek()
    if token.kind in (WORD, QUOTED) and after.text != "(" and after.text != ".":
        column = c.parse_name()
    elif c.accept_sign("("):
        expression = read_expression_text(c)
        c.expect_sign(")")
    else:
        expression = read_expression_text(c)
    if c.accept("collate"):
        if (name := c.parse_qualified()[-1]) not in ("C", "POSIX", "default"):
            raise Unsupported("collation", name=name)
    if c.token.kind == WORD and c.token.text not in ("asc", "desc", "nulls"):
        if c.token.text not in _ORDERED_AS_STORED:
            raise Unsupported("operator class of an index", position=c.token.start + 1)
        c.next_token()
    descending = c.accept("desc")
    if not descending:
        c.accept("asc")
    nulls_first = None
    if c.accept("nulls"):
        nulls_first = c.expect_one_of("first", "last") == "first"
    return d.IndexPart(column, expression, None, descending, nulls_first)


# -- DROP, TRUNCATE, REFRESH -----------------------------------------------------------------------


def parse_drop(c: TokenCursor) -> d.Drop | d.DropRole | d.DropOwned | d.DropServer:
    c.expect("drop")
    if c.is_word("owned"):
        return parse_drop_owned(c)
    if c.is_any(ROLE_WORDS):
        return parse_drop_role(c)
    if c.accept("server"):
        return parse_drop_server(c)
    kind = parse_object_kind(c, "drop")
    if kind == "index":
        c.accept("concurrently")
    if_exists = c.accept("if", "exists")
    names = c.parse_comma_list(lambda: parse_qualified_name(c))
    return d.Drop(kind, names, if_exists, _parse_cascade(c))


def parse_object_kind(c: TokenCursor, verb: str) -> str:
    """The kind of object that ALTER or DROP is about."""
    if c.accept("materialized", "view"):
        return "materialized view"
    if c.accept("foreign", "table"):
        return "foreign table"
    if c.is_any(("foreign", "server")):
        words = {"foreign": "foreign data wrapper"}.get(c.token.text, c.token.text)
        raise Unsupported(f"{verb} {words}".upper(), position=c.token.start + 1)
    for kind in ("table", "index", "view", "sequence", "schema"):
        if c.accept(kind):
            return kind
    if c.is_any(_MISSING):
        raise Unsupported(f"{verb} {c.token.text}".upper(), position=c.token.start + 1)
    raise c.make_syntax_error()


def _parse_cascade(c: TokenCursor) -> bool:
    if c.accept("cascade"):
        return True
    c.accept("restrict")
    return False


def parse_truncate(c: TokenCursor) -> d.Truncate:
    c.expect("truncate")
    c.accept("table")
    c.accept("only")
    names = c.parse_comma_list(lambda: parse_qualified_name(c))
    restart = c.accept("restart", "identity")
    if not restart:
        c.accept("continue", "identity")
    return d.Truncate(names, restart, _parse_cascade(c))


def parse_maintain(c: TokenCursor) -> d.MaintainView:
    verb = c.expect_one_of("refresh", "verify", "repair")
    c.expect("materialized", "view")
    if c.is_word("concurrently"):
        c.next_token()
    name = parse_qualified_name(c)
    if c.is_word("with", "no", "data"):
        raise Unsupported("refresh with no data", position=c.token.start + 1)
    c.accept("with", "data")
    return d.MaintainView(verb, name)
