"""Parses ALTER of tables, indexes, views, sequences and schemas."""

from __future__ import annotations

from belvedere.errors import Unsupported
from belvedere.sql import definitions as d
from belvedere.sql.parse.lexical.token_cursor import TokenCursor
from belvedere.sql.parse.queries.types import parse_column_type
from belvedere.sql.parse.statements.create_table import parse_column, parse_table_constraint
from belvedere.sql.parse.statements.ddl import parse_object_kind
from belvedere.sql.parse.statements.ddl_clauses import (
    parse_option_list,
    parse_qualified_name,
    parse_sequence_options,
    read_expression_text,
)
from belvedere.sql.parse.statements.grants import parse_default_privileges, parse_role_name
from belvedere.sql.parse.statements.roles import ROLE_WORDS, parse_alter_role

_CONSTRAINT_WORDS = ("constraint", "primary", "unique", "check", "foreign", "exclude")


def parse_alter(
    c: TokenCursor,
) -> d.Alter | d.AlterSequence | d.AlterRole | d.AlterDefaultPrivileges:
    c.expect("alter")
    if c.accept("default", "privileges"):
        return parse_default_privileges(c)
    if c.is_any(ROLE_WORDS):
        return parse_alter_role(c)
    at = c.token.start
    kind = parse_object_kind(c, "alter")
    if kind == "foreign table":
        raise Unsupported(
            "ALTER FOREIGN TABLE", position=at + 1, hint="drop it and create it again"
        )
    if_exists = c.accept("if", "exists")
    c.accept("only")
    name = d.QualifiedName(None, c.parse_name()) if kind == "schema" else parse_qualified_name(c)
    if kind == "sequence" and not c.is_any(("rename", "set", "owner")):
        return d.AlterSequence(name, parse_sequence_options(c), if_exists)
    actions = c.parse_comma_list(lambda: _parse_action(c, kind))
    return d.Alter(kind, name, actions, if_exists)


def _parse_action(c: TokenCursor, kind: str) -> d.AlterAction:
    at = c.token.start
    if c.accept("rename"):
        return _parse_rename(c)
    if c.accept("owner", "to"):
        return d.SetOwner(parse_role_name(c))
    if c.accept("set", "schema"):
        return d.SetSchema(c.parse_name())
    if c.accept("set"):
        if c.is_sign("("):
            return d.SetOptions(parse_option_list(c))
        raise Unsupported(f"alter {kind} set {c.token.text}".upper(), position=at + 1)
    if c.accept("reset"):
        return d.ResetOptions(c.parse_name_list())
    if kind == "table":
        if c.accept("add"):
            return _parse_add(c)
        if c.accept("drop"):
            return _parse_drop(c)
        if c.accept("alter"):
            c.accept("column")
            return _parse_alter_column(c)
    if c.is_any(_MISSING):
        raise Unsupported(f"alter {kind} {c.token.text}".upper(), position=at + 1)
    raise c.make_syntax_error()


_MISSING = frozenset(
    """
    validate enable disable cluster inherit attach detach no replica force depends of not
    """.split()
)


def _parse_rename(c: TokenCursor) -> d.Rename:
    if c.accept("to"):
        return d.Rename("table", "", c.parse_name())
    what = "constraint" if c.accept("constraint") else "column"
    if what == "column":
        c.accept("column")
    old = c.parse_name()
    c.expect("to")
    return d.Rename(what, old, c.parse_name())


def _parse_add(c: TokenCursor) -> d.AlterAction:
    if c.is_any(_CONSTRAINT_WORDS):
        constraint = parse_table_constraint(c)
        if c.is_word("not", "valid") or c.is_word("using", "index"):
            raise Unsupported("constraint without validation", position=c.token.start + 1)
        return d.AddConstraint(constraint)
    c.accept("column")
    if_not_exists = c.accept("if", "not", "exists")
    column, constraints = parse_column(c)
    return d.AddColumn(column, tuple(constraints), if_not_exists)


def _parse_drop(c: TokenCursor) -> d.AlterAction:
    constraint = c.accept("constraint")
    if not constraint:
        c.accept("column")
    if_exists = c.accept("if", "exists")
    name = c.parse_name()
    cascade = c.accept("cascade")
    if not cascade:
        c.accept("restrict")
    if constraint:
        return d.DropConstraint(name, if_exists, cascade)
    return d.DropColumn(name, if_exists, cascade)


def _parse_alter_column(c: TokenCursor) -> d.AlterAction:
    name = c.parse_name()
    at = c.token.start
    if c.accept("set", "default"):
        return d.SetColumnDefault(name, read_expression_text(c))
    if c.accept("drop", "default"):
        return d.SetColumnDefault(name, None)
    if c.accept("set", "not", "null"):
        return d.SetColumnNotNull(name, True)
    if c.accept("drop", "not", "null"):
        return d.SetColumnNotNull(name, False)
    if c.accept("set", "data", "type") or c.accept("type"):
        found = parse_column_type(c)
        using = read_expression_text(c) if c.accept("using") else None
        return d.SetColumnType(name, found, using)
    if c.accept("drop", "identity"):
        return d.SetColumnIdentity(name, None, None, c.accept("if", "exists"))
    if c.accept("drop", "expression"):
        return d.DropColumnExpression(name, c.accept("if", "exists"))
    if c.accept("add", "generated"):
        kind = "always" if c.accept("always") else "by default"
        if kind == "by default":
            c.expect("by", "default")
        c.expect("as", "identity")
        sequence = d.SequenceOptions()
        if c.accept_sign("("):
            sequence = parse_sequence_options(c)
            c.expect_sign(")")
        return d.SetColumnIdentity(name, kind, sequence)
    raise Unsupported(f"alter column {c.token.text}".upper(), position=at + 1)
