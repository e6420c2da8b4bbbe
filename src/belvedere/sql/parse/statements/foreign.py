"""Parses CREATE and DROP SERVER, and CREATE FOREIGN TABLE."""

from __future__ import annotations

from belvedere.errors import Unsupported
from belvedere.sql import definitions as d
from belvedere.sql.parse.lexical.lexer import STRING
from belvedere.sql.parse.lexical.token_cursor import TokenCursor
from belvedere.sql.parse.queries.types import parse_column_type
from belvedere.sql.parse.statements.ddl_clauses import parse_qualified_name

_CONSTRAINTS = ("primary", "unique", "foreign", "references", "check", "default", "generated")


def parse_create_server(c: TokenCursor) -> d.CreateServer:
    """After CREATE SERVER."""
    if_not_exists = c.accept("if", "not", "exists")
    name = c.parse_name()
    if c.is_any(("type", "version")):
        raise Unsupported(f"{c.token.text} of a server", position=c.token.start + 1)
    c.expect("foreign", "data", "wrapper")
    return d.CreateServer(name, c.parse_name(), parse_foreign_options(c), if_not_exists)


def parse_drop_server(c: TokenCursor) -> d.DropServer:
    """After DROP SERVER."""
    if_exists = c.accept("if", "exists")
    names = c.parse_comma_list(c.parse_name)
    cascade = c.accept("cascade")
    if not cascade:
        c.accept("restrict")
    return d.DropServer(names, if_exists, cascade)


def parse_create_foreign(c: TokenCursor) -> d.CreateForeignTable:
    """After CREATE FOREIGN."""
    if not c.accept("table"):
        raise Unsupported(
            "CREATE FOREIGN DATA WRAPPER", position=c.token.start + 1, hint="hbase is there already"
        )
    if_not_exists = c.accept("if", "not", "exists")
    name = parse_qualified_name(c)
    c.expect_sign("(")
    columns = () if c.is_sign(")") else c.parse_comma_list(lambda: _parse_column(c))
    c.expect_sign(")")
    if c.is_any(("inherits", "partition")):
        raise Unsupported(f"{c.token.text} of a foreign table", position=c.token.start + 1)
    c.expect("server")
    server = c.parse_name()
    return d.CreateForeignTable(name, columns, server, parse_foreign_options(c), if_not_exists)


def _parse_column(c: TokenCursor) -> d.ForeignColumnClause:
    if c.is_any(("constraint", *_CONSTRAINTS)):
        raise _constraint_error(c)
    name = c.parse_name()
    sql_type = parse_column_type(c)
    options = parse_foreign_options(c)
    not_null = False
    while True:
        if c.accept("not", "null"):
            not_null = True
        elif not c.accept("null"):
            break
    if c.is_any(("constraint", *_CONSTRAINTS)):
        raise _constraint_error(c)
    return d.ForeignColumnClause(name, sql_type, not_null, options)


def _constraint_error(c: TokenCursor) -> Unsupported:
    return Unsupported(
        f"{c.token.text} on a foreign table",
        position=c.token.start + 1,
        hint="of constraints it has NOT NULL, which is believed",
    )


def parse_foreign_options(c: TokenCursor) -> d.Options:
    """`OPTIONS (name 'value', ..)`, if it is there."""
    if not c.accept("options"):
        return ()

    def parse_option() -> tuple[str, str]:
        name = c.parse_label()
        if c.token.kind != STRING:
            raise c.make_syntax_error()
        return name, c.next_token().text

    c.expect_sign("(")
    found = c.parse_comma_list(parse_option)
    c.expect_sign(")")
    return found
