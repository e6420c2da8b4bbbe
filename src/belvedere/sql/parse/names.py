"""Rules that DDL statements share: qualified names, options, expression texts, sequence options."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from belvedere.errors import Unsupported
from belvedere.sql import definitions as d
from belvedere.sql.parse.cursor import Cursor
from belvedere.sql.parse.forms import QueryForm
from belvedere.sql.parse.lexer import INTEGER, NUMBER, STRING, WORD, syntax_error
from belvedere.sql.parse.text import render
from belvedere.sql.parse.types import parse_type

# expressions.RANGE: what a DEFAULT may hold without parentheses.
_DEFAULT_LEVEL = 6


def qualified(c: Cursor) -> d.QualifiedName:
    return to_qualified(c.qualified(), c.token.start)


def to_qualified(parts: tuple[str, ...], at: int) -> d.QualifiedName:
    if len(parts) == 1:
        return d.QualifiedName(None, parts[0])
    if len(parts) == 2:
        return d.QualifiedName(parts[0], parts[1])
    raise syntax_error("improper qualified name", at)


def expression_text(c: Cursor, before_constraint: bool = False) -> str:
    """The normalised text of an expression, which is parsed here only to find its end."""
    start = c.index
    c.grammar.expression(c, _DEFAULT_LEVEL if before_constraint else 0)
    return render(c.tokens[start : c.index])


def options(c: Cursor) -> d.Options:
    """`WITH (name = value, ..)`, if it is there."""
    if not (c.is_word("with") and c.peek().text == "("):
        return ()
    c.take()
    return option_list(c)


def option_list(c: Cursor) -> d.Options:
    """`(name = value, ..)`; a name alone is true."""

    def one() -> tuple[str, str]:
        name = ".".join((c.label(), *([c.label()] if c.accept_sign(".") else [])))
        return name, option_value(c) if c.accept_sign("=") else "true"

    c.expect_sign("(")
    found = c.comma_list(one)
    c.expect_sign(")")
    return found


def option_value(c: Cursor) -> str:
    negative = c.accept_sign("-")
    token = c.take()
    if token.kind not in (STRING, WORD, INTEGER, NUMBER) or (negative and token.kind == STRING):
        c.index -= 1
        raise c.error()
    return "-" + token.text if negative else token.text


def query_form(
    c: Cursor,
    kind: str,
    name: d.QualifiedName,
    columns: tuple[str, ...],
    found: d.Options,
    **more: Any,
) -> QueryForm:
    """The query of CREATE .. AS, and WITH [NO] DATA after it."""
    start = c.index
    if c.is_word("execute"):
        raise Unsupported("create table as execute", position=c.token.start + 1)
    query = c.query()
    tokens = tuple(c.tokens[start : c.index])
    with_data = True
    if c.accept("with", "no", "data"):
        with_data = False
    else:
        c.accept("with", "data")
    return QueryForm(kind, name, columns, query, tokens, found, with_data=with_data, **more)


# -- sequences -------------------------------------------------------------------------------------


def parse_sequence_options(c: Cursor) -> d.SequenceOptions:
    made = d.SequenceOptions()
    while True:
        changed = _sequence_option(c, made)
        if changed is None:
            return made
        made = changed


def _sequence_option(c: Cursor, made: d.SequenceOptions) -> d.SequenceOptions | None:
    if c.accept("start"):
        c.accept("with")
        return replace(made, start=c.integer())
    if c.accept("increment"):
        c.accept("by")
        return replace(made, increment=c.integer())
    if c.accept("minvalue"):
        return replace(made, minimum=c.integer())
    if c.accept("maxvalue"):
        return replace(made, maximum=c.integer())
    if c.accept("cache"):
        return replace(made, cache=c.integer())
    if c.accept("cycle"):
        return replace(made, cycle=True)
    if c.accept("no"):
        word = c.choice("minvalue", "maxvalue", "cycle")
        return replace(made, cycle=False) if word == "cycle" else made
    if c.accept("as"):
        return replace(made, type=parse_type(c))
    if c.accept("owned", "by"):
        return replace(made, owned_by=() if c.accept("none") else c.qualified())
    if c.accept("restart"):
        c.accept("with")
        value = c.integer() if c.token.kind == INTEGER or c.is_sign("-") else None
        return replace(made, restart=value, restarts=True)
    return None
