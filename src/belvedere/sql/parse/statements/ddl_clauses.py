"""Rules that DDL statements share: qualified names, options, expression texts, sequence options."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from belvedere.errors import Unsupported
from belvedere.sql import definitions as d
from belvedere.sql.parse.lexical.lexer import INTEGER, NUMBER, STRING, WORD, syntax_error
from belvedere.sql.parse.lexical.render import render_tokens
from belvedere.sql.parse.lexical.token_cursor import TokenCursor
from belvedere.sql.parse.queries.types import parse_column_type
from belvedere.sql.parse.statement_forms import CreateAsForm

# expressions.RANGE: what a DEFAULT may hold without parentheses.
_DEFAULT_LEVEL = 6


def parse_qualified_name(c: TokenCursor) -> d.QualifiedName:
    return make_qualified_name(c.parse_qualified(), c.token.start)


def make_qualified_name(parts: tuple[str, ...], at: int) -> d.QualifiedName:
    if len(parts) == 1:
        return d.QualifiedName(None, parts[0])
    if len(parts) == 2:
        return d.QualifiedName(parts[0], parts[1])
    raise syntax_error("improper qualified name", at)


def read_expression_text(c: TokenCursor, before_constraint: bool = False) -> str:
    """The normalised text of an expression, which is parsed here only to find its end."""
    start = c.index
    c.grammar.expression(c, _DEFAULT_LEVEL if before_constraint else 0)
    return render_tokens(c.tokens[start : c.index])


def parse_with_options(c: TokenCursor) -> d.Options:
    """`WITH (name = value, ..)`, if it is there."""
    if not (c.is_word("with") and c.peek().text == "("):
        return ()
    c.next_token()
    return parse_option_list(c)


def parse_option_list(c: TokenCursor) -> d.Options:
    """`(name = value, ..)`; a name alone is true."""

    def parse_option() -> tuple[str, str]:
        name = ".".join((c.parse_label(), *([c.parse_label()] if c.accept_sign(".") else [])))
        return name, parse_option_value(c) if c.accept_sign("=") else "true"

    c.expect_sign("(")
    found = c.parse_comma_list(parse_option)
    c.expect_sign(")")
    return found


def parse_option_value(c: TokenCursor) -> str:
    negative = c.accept_sign("-")
    token = c.next_token()
    if token.kind not in (STRING, WORD, INTEGER, NUMBER) or (negative and token.kind == STRING):
        c.index -= 1
        raise c.make_syntax_error()
    return "-" + token.text if negative else token.text


def parse_create_as(
    c: TokenCursor,
    kind: str,
    name: d.QualifiedName,
    columns: tuple[str, ...],
    found: d.Options,
    **more: Any,
) -> CreateAsForm:
    """The query of CREATE .. AS, and WITH [NO] DATA after it."""
    start = c.index
    if c.is_word("execute"):
        raise Unsupported("create table as execute", position=c.token.start + 1)
    query = c.parse_query()
    tokens = tuple(c.tokens[start : c.index])
    with_data = True
    if c.accept("with", "no", "data"):
        with_data = False
    else:
        c.accept("with", "data")
    return CreateAsForm(kind, name, columns, query, tokens, found, with_data=with_data, **more)


# -- sequences -------------------------------------------------------------------------------------


def parse_sequence_options(c: TokenCursor) -> d.SequenceOptions:
    made = d.SequenceOptions()
    while True:
        changed = _parse_sequence_option(c, made)
        if changed is None:
            return made
        made = changed


def _parse_sequence_option(c: TokenCursor, made: d.SequenceOptions) -> d.SequenceOptions | None:
    if c.accept("start"):
        c.accept("with")
        return replace(made, start=c.parse_integer())
    if c.accept("increment"):
        c.accept("by")
        return replace(made, increment=c.parse_integer())
    if c.accept("minvalue"):
        return replace(made, minimum=c.parse_integer())
    if c.accept("maxvalue"):
        return replace(made, maximum=c.parse_integer())
    if c.accept("cache"):
        return replace(made, cache=c.parse_integer())
    if c.accept("cycle"):
        return replace(made, cycle=True)
    if c.accept("no"):
        word = c.expect_one_of("minvalue", "maxvalue", "cycle")
        return replace(made, cycle=False) if word == "cycle" else made
    if c.accept("as"):
        return replace(made, type=parse_column_type(c))
    if c.accept("owned", "by"):
        return replace(made, owned_by=() if c.accept("none") else c.parse_qualified())
    if c.accept("restart"):
        c.accept("with")
        value = c.parse_integer() if c.token.kind == INTEGER or c.is_sign("-") else None
        return replace(made, restart=value, restarts=True)
    return None
