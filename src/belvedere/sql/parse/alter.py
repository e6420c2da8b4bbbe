"""Parses ALTER of tables, indexes, views, sequences and schemas."""

from __future__ import annotations

from belvedere.errors import Unsupported
from belvedere.sql import definitions as d
from belvedere.sql.parse.cursor import Cursor
from belvedere.sql.parse.names import (
    expression_text,
    option_list,
    parse_sequence_options,
    qualified,
)
from belvedere.sql.parse.objects import parse_kind
from belvedere.sql.parse.tables import parse_column, parse_table_constraint
from belvedere.sql.parse.types import parse_type

_CONSTRAINT_WORDS = ("constraint", "primary", "unique", "check", "foreign", "exclude")


def parse_alter(c: Cursor) -> d.Alter | d.AlterSequence:
    c.expect("alter")
    kind = parse_kind(c, "alter")
    if_exists = c.accept("if", "exists")
    c.accept("only")
    name = d.QualifiedName(None, c.name()) if kind == "schema" else qualified(c)
    if kind == "sequence" and not c.is_any(("rename", "set", "owner")):
        return d.AlterSequence(name, parse_sequence_options(c), if_exists)
    actions = c.comma_list(lambda: _action(c, kind))
    return d.Alter(kind, name, actions, if_exists)


def _action(c: Cursor, kind: str) -> d.AlterAction:
    at = c.token.start
    if c.accept("rename"):
        return _rename(c)
    if c.accept("set", "schema"):
        return d.SetSchema(c.name())
    if c.accept("set"):
        if c.is_sign("("):
            return d.SetOptions(option_list(c))
        raise Unsupported(f"alter {kind} set {c.token.text}", position=at + 1)
    if c.accept("reset"):
        return d.ResetOptions(c.names())
    if kind == "table":
        if c.accept("add"):
            return _add(c)
        if c.accept("drop"):
            return _drop(c)
        if c.accept("alter"):
            c.accept("column")
            return _column(c)
    if c.is_any(_MISSING):
        raise Unsupported(f"alter {kind} {c.token.text}", position=at + 1)
    raise c.error()


_MISSING = frozenset(
    """
    owner validate enable disable cluster inherit attach detach no replica force depends of not
    """.split()
)


def _rename(c: Cursor) -> d.Rename:
    if c.accept("to"):
        return d.Rename("table", "", c.name())
    what = "constraint" if c.accept("constraint") else "column"
    if what == "column":
        c.accept("column")
    old = c.name()
    c.expect("to")
    return d.Rename(what, old, c.name())


def _add(c: Cursor) -> d.AlterAction:
    if c.is_any(_CONSTRAINT_WORDS):
        constraint = parse_table_constraint(c)
        if c.is_word("not", "valid") or c.is_word("using", "index"):
            raise Unsupported("constraint without validation", position=c.token.start + 1)
        return d.AddConstraint(constraint)
    c.accept("column")
    if_not_exists = c.accept("if", "not", "exists")
    column, constraints = parse_column(c)
    return d.AddColumn(column, tuple(constraints), if_not_exists)


def _drop(c: Cursor) -> d.AlterAction:
    constraint = c.accept("constraint")
    if not constraint:
        c.accept("column")
    if_exists = c.accept("if", "exists")
    name = c.name()
    cascade = c.accept("cascade")
    if not cascade:
        c.accept("restrict")
    if constraint:
        return d.DropConstraint(name, if_exists, cascade)
    return d.DropColumn(name, if_exists, cascade)


def _column(c: Cursor) -> d.AlterAction:
    name = c.name()
    at = c.token.start
    if c.accept("set", "default"):
        return d.SetColumnDefault(name, expression_text(c))
    if c.accept("drop", "default"):
        return d.SetColumnDefault(name, None)
    if c.accept("set", "not", "null"):
        return d.SetColumnNotNull(name, True)
    if c.accept("drop", "not", "null"):
        return d.SetColumnNotNull(name, False)
    if c.accept("set", "data", "type") or c.accept("type"):
        found = parse_type(c)
        using = expression_text(c) if c.accept("using") else None
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
    raise Unsupported(f"alter column {c.token.text}", position=at + 1)
