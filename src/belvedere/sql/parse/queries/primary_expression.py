"""Parses the atoms of expressions: names, constants, parentheses, CASE, and calls."""

from __future__ import annotations

from belvedere.errors import InvalidInput, Unsupported
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.lexical.keywords import NOT_COLUMN, NOT_FUNCTION
from belvedere.sql.parse.lexical.lexer import (
    BITS,
    INTEGER,
    NUMBER,
    PARAMETER,
    QUOTED,
    SIGN,
    STRING,
    WORD,
    SqlToken,
)
from belvedere.sql.parse.lexical.token_cursor import TokenCursor
from belvedere.sql.parse.queries.calls import SPECIAL_CALLS, WITHOUT_PARENTHESES, parse_call
from belvedere.sql.parse.queries.types import INTERVAL_FIELDS, TYPE_WORDS, parse_type


def parse_primary(c: TokenCursor) -> t.Expr:
    """An atom; postfix operators are left to the expression parser."""
    token = c.tokens[c.index]
    kind = token.kind
    if kind == WORD:
        return _parse_word(c, token)
    c.index += 1
    if kind == INTEGER:
        return t.Constant("integer", token.text, token.start)
    if kind == BITS:
        return t.Constant("bits", token.text, token.start)
    if kind == STRING:
        return t.Constant("string", token.text, token.start)
    if kind == PARAMETER:
        return t.ParameterRef(int(token.text), token.start)
    if kind == NUMBER:
        return t.Constant("number", token.text, token.start)
    if kind == QUOTED:
        return _parse_name(c, token)
    c.index -= 1
    if kind == SIGN and token.text == "(":
        return _parse_parenthesis(c)
    if kind == SIGN and token.text == "*":
        c.index += 1
        return t.Star((), token.start, token.end)
    raise c.make_syntax_error()


def _parse_word(c: TokenCursor, token: SqlToken) -> t.Expr:
    word, at = token.text, token.start
    special = _ATOMS.get(word)
    if special is not None:
        return special(c, at)
    after = c.peek()
    if after.kind == SIGN and after.text == "(":
        if word in SPECIAL_CALLS or word not in NOT_FUNCTION:
            return parse_call(c)
    elif word in WITHOUT_PARENTHESES:
        c.index += 1
        return t.FunctionCall((word,), (), at)
    if word in TYPE_WORDS and _is_typed_constant_ahead(c):
        return _parse_typed_constant(c)
    if word in NOT_COLUMN:
        raise c.make_syntax_error()
    c.index += 1
    return _parse_name(c, token)


def _parse_name(c: TokenCursor, token: SqlToken) -> t.Expr:
    """A column, `t.*`, or a call of a quoted or qualified function; the first name is taken."""
    parts = [token.text]
    while c.is_sign("."):
        c.index += 1
        if c.accept_sign("*"):
            return t.Star(tuple(parts), token.start, c.tokens[c.index - 1].end)
        parts.append(c.parse_label())
    if c.is_sign("("):
        return parse_call(c, tuple(parts), token.start)
    return t.Name(tuple(parts), token.start)


def _parse_parenthesis(c: TokenCursor) -> t.Expr:
    at = c.token.start
    if c.is_query_ahead() and c.peek().text != "(":
        c.next_token()
        query = c.parse_query()
        c.expect_sign(")")
        return t.ScalarQuery(query, at)
    if c.is_query_ahead():
        return _parse_ambiguous(c, at)
    c.next_token()
    items = c.parse_expression_list()
    c.expect_sign(")")
    if len(items) > 1:
        return t.RowItems(items, at)
    if c.is_sign("."):
        return _parse_row_field(c, items[0], at)
    return items[0]


def _parse_row_field(c: TokenCursor, row: t.Expr, at: int) -> t.Expr:
    """`(t).*`, which is `t.*`, or `(record).name`."""
    c.next_token()
    if c.accept_sign("*"):
        if not isinstance(row, t.Name):
            raise Unsupported("all fields of a row value", position=at + 1, hint="name them")
        return t.Star(row.parts, at, c.tokens[c.index - 1].end)
    return t.FieldOf(row, c.parse_label(), at)


def _parse_ambiguous(c: TokenCursor, at: int) -> t.Expr:
    """`((select 1) + 2)` or `((select 1) union select 2)`: try the expression first."""
    index, depth = c.index, c.depth
    c.next_token()
    try:
        items = c.parse_expression_list()
        c.expect_sign(")")
    except InvalidInput as error:
        if error.sqlstate != "42601":
            raise
        c.index, c.depth = index, depth
        c.next_token()
        query = c.parse_query()
        c.expect_sign(")")
        return t.ScalarQuery(query, at)
    return t.RowItems(items, at) if len(items) > 1 else items[0]


def _is_typed_constant_ahead(c: TokenCursor) -> bool:
    """`date '..'`, `timestamp with time zone '..'`, `numeric(3,1) '..'`."""
    ahead = 1
    if c.peek(ahead).kind == WORD and c.peek(ahead).text in ("precision", "varying", "character"):
        ahead += 1
    if c.peek(ahead).kind == SIGN and c.peek(ahead).text == "(":
        while c.peek(ahead).kind in (SIGN, INTEGER) and c.peek(ahead).text != ")":
            ahead += 1
        ahead += 1
    if c.peek(ahead).kind == WORD and c.peek(ahead).text in ("with", "without"):
        ahead += 3
    return c.peek(ahead).kind == STRING


def _parse_typed_constant(c: TokenCursor) -> t.Expr:
    at = c.token.start
    if c.is_word("interval"):
        return _parse_interval(c, at)
    found = parse_type(c)
    text = c.token
    return t.CastExpr(t.Constant("string", c.parse_string(), text.start), found, at)


def _parse_interval(c: TokenCursor, at: int) -> t.Expr:
    found = parse_type(c)
    start = c.token.start
    text = c.parse_string()
    if c.is_any(INTERVAL_FIELDS):
        field = c.next_token().text
        if c.is_word("to") or not _is_number(text):
            raise Unsupported("interval field restriction", position=start + 1)
        text = f"{text} {field}"
    return t.CastExpr(t.Constant("string", text, start), found, at)


def _is_number(text: str) -> bool:
    return text.strip().lstrip("+-").replace(".", "", 1).isdigit()


# -- words that are atoms --------------------------------------------------------------------------


def _parse_null(c: TokenCursor, at: int) -> t.Expr:
    c.index += 1
    return t.Constant("null", None, at)


def _parse_true(c: TokenCursor, at: int) -> t.Expr:
    c.index += 1
    return t.Constant("bool", True, at)


def _parse_false(c: TokenCursor, at: int) -> t.Expr:
    c.index += 1
    return t.Constant("bool", False, at)


def _parse_default(c: TokenCursor, at: int) -> t.Expr:
    c.index += 1
    return t.Default(at)


def _parse_case(c: TokenCursor, at: int) -> t.Expr:
    c.next_token()
    subject = None if c.is_word("when") else c.parse_expression()
    whens = []
    while c.accept("when"):
        condition = c.parse_expression()
        c.expect("then")
        whens.append((condition, c.parse_expression()))
    if not whens:
        raise c.make_syntax_error()
    default = c.parse_expression() if c.accept("else") else None
    c.expect("end")
    return t.CaseExpr(subject, tuple(whens), default, at)


def _parse_exists(c: TokenCursor, at: int) -> t.Expr:
    c.next_token()
    c.expect_sign("(")
    query = c.parse_query()
    c.expect_sign(")")
    return t.ExistsQuery(query, at)


def _parse_array(c: TokenCursor, at: int) -> t.Expr:
    c.next_token()
    if c.accept_sign("("):
        query = c.parse_query()
        c.expect_sign(")")
        return t.ArrayQuery(query, at)
    return _parse_array_items(c, at)


def _parse_array_items(c: TokenCursor, at: int) -> t.Expr:
    c.expect_sign("[")
    if c.is_sign("["):
        raise Unsupported("array of arrays", position=at + 1)
    items = () if c.is_sign("]") else c.parse_expression_list()
    c.expect_sign("]")
    return t.ArrayItems(items, at)


def _parse_row(c: TokenCursor, at: int) -> t.Expr:
    if c.peek().text != "(":
        c.next_token()
        return _parse_name(c, c.tokens[c.index - 1])
    c.next_token()
    c.expect_sign("(")
    items = () if c.is_sign(")") else c.parse_expression_list()
    c.expect_sign(")")
    return t.RowItems(items, at)


_ATOMS = {
    "null": _parse_null,
    "true": _parse_true,
    "false": _parse_false,
    "default": _parse_default,
    "case": _parse_case,
    "exists": _parse_exists,
    "array": _parse_array,
    "row": _parse_row,
}
