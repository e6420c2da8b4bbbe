"""Parses COMMENT ON."""

from __future__ import annotations

from belvedere.errors import Unsupported
from belvedere.sql import definitions as d
from belvedere.sql.parse.lexical.token_cursor import TokenCursor
from belvedere.sql.parse.statements.ddl_clauses import make_qualified_name, parse_qualified_name

_KINDS = ("table", "view", "index", "sequence", "schema")
_MISSING = frozenset(
    """
    access aggregate cast collation conversion database domain event extension foreign function
    large operator policy procedural language procedure publication role routine rule server
    statistics subscription tablespace text transform trigger type
    """.split()
)


def parse_comment(c: TokenCursor) -> d.Comment:
    c.expect("comment")
    c.expect("on")
    kind, name, part = _parse_object(c)
    c.expect("is")
    text = None if c.accept("null") else c.parse_string()
    # An empty text is no comment, as in PostgreSQL.
    return d.Comment(kind, name, text or None, part)


def _parse_object(c: TokenCursor) -> tuple[str, d.QualifiedName, str]:
    at = c.token.start
    if c.accept("column"):
        parts = c.parse_qualified()
        if len(parts) < 2:
            raise c.make_syntax_error()
        return "column", make_qualified_name(parts[:-1], at), parts[-1]
    if c.accept("constraint"):
        part = c.parse_name()
        c.expect("on")
        return "constraint", parse_qualified_name(c), part
    if c.accept("materialized", "view"):
        return "materialized view", parse_qualified_name(c), ""
    for kind in _KINDS:
        if c.accept(kind):
            return kind, parse_qualified_name(c), ""
    if c.is_any(tuple(_MISSING)):
        raise Unsupported(f"COMMENT ON {c.token.text.upper()}", position=at + 1)
    raise c.make_syntax_error()
