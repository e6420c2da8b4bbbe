"""Parses function calls, those with special syntax, and their FILTER, OVER and WITHIN GROUP."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from belvedere.errors import Unsupported
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.lexical.lexer import QUOTED, STRING, WORD, syntax_error
from belvedere.sql.parse.lexical.token_cursor import TokenCursor
from belvedere.sql.parse.queries.types import parse_second_digits, parse_type
from belvedere.types import TIME, TIMESTAMP, TIMESTAMPTZ, SqlType, with_second_digits

WITHOUT_PARENTHESES = frozenset(
    """
    current_catalog current_date current_role current_schema current_time current_timestamp
    current_user localtime localtimestamp session_user user
    """.split()
)
_RANGE_LEVEL = 6  # expressions.RANGE: operands of POSITION stop before IN


def parse_call(
    c: TokenCursor, name: tuple[str, ...] | None = None, at: int | None = None
) -> t.Expr:
    """A call whose name comes next, or has been taken already."""
    if name is None:
        token = c.next_token()
        name, at = (token.text,), token.start
        special = SPECIAL_CALLS.get(token.text)
        if special is not None:
            found = special(c, token.start)
            return _parse_call_suffix(c, found) if isinstance(found, t.FunctionCall) else found
    assert at is not None
    if name[0] == "pg_catalog" and len(name) == 2:
        name = name[1:]
    return _parse_call_suffix(c, _parse_arguments(c, name, at))


def _parse_arguments(c: TokenCursor, name: tuple[str, ...], at: int) -> t.FunctionCall:
    c.expect_sign("(")
    if c.accept_sign(")"):
        return t.FunctionCall(name, (), at)
    if c.is_sign("*") and c.peek().text == ")":
        c.next_token()
        c.next_token()
        return t.FunctionCall(name, (), at, star=True)
    distinct = c.accept("distinct")
    if not distinct:
        c.accept("all")
    variadic = False
    items: list[t.Expr] = []
    names: list[str] = []
    while True:
        variadic = c.accept("variadic")
        if c.token.kind in (WORD, QUOTED) and c.peek().text in ("=>", ":="):
            names.append(c.parse_name())
            c.next_token()
        elif names:
            raise syntax_error("positional argument cannot follow named argument", c.token.start)
        items.append(c.parse_expression())
        if variadic or not c.accept_sign(","):
            break
    order_by = parse_order_by(c)
    c.expect_sign(")")
    return t.FunctionCall(
        name,
        tuple(items),
        at,
        distinct=distinct,
        variadic=variadic,
        order_by=order_by,
        names=tuple(names),
    )


def _parse_call_suffix(c: TokenCursor, call: t.FunctionCall) -> t.FunctionCall:
    """WITHIN GROUP, FILTER and OVER."""
    if c.is_word("within", "group"):
        c.index += 2
        c.expect_sign("(")
        call = replace(call, within=parse_order_by(c, required=True))
        c.expect_sign(")")
    if c.is_word("filter") and c.peek().text == "(":
        c.index += 2
        c.expect("where")
        call = replace(call, filter=c.parse_expression())
        c.expect_sign(")")
    if c.is_word("over"):
        c.index += 1
        over = parse_window_spec(c) if c.is_sign("(") else c.parse_name()
        call = replace(call, over=over)
    return call


def parse_order_by(c: TokenCursor, required: bool = False) -> tuple[t.OrderItem, ...]:
    """ORDER BY .., if it is there."""
    if not c.is_word("order", "by"):
        if required:
            raise c.make_syntax_error()
        return ()
    c.index += 2
    return c.parse_comma_list(lambda: _parse_order_item(c))


def _parse_order_item(c: TokenCursor) -> t.OrderItem:
    expression = c.parse_expression()
    descending = False
    if c.accept("using"):
        sign = c.next_token().text
        if sign not in ("<", ">"):
            raise Unsupported("order by using operator", position=c.token.start + 1)
        descending = sign == ">"
    elif c.accept("desc"):
        descending = True
    else:
        c.accept("asc")
    nulls_first = None
    if c.accept("nulls"):
        nulls_first = c.expect_one_of("first", "last") == "first"
    return t.OrderItem(expression, descending, nulls_first)


# -- windows ---------------------------------------------------------------------------------------


def parse_window_spec(c: TokenCursor) -> t.WindowSpec:
    """`( [base] [PARTITION BY ..] [ORDER BY ..] [frame] )`"""
    at = c.expect_sign("(")
    base = None
    if not c.is_any(("partition", "order", "rows", "range", "groups")) and not c.is_sign(")"):
        base = c.parse_name()
    partition: tuple[t.Expr, ...] = ()
    if c.accept("partition", "by"):
        partition = c.parse_expression_list()
    order = parse_order_by(c)
    mode, start, end, exclude = None, None, None, ""
    if c.is_any(("rows", "range", "groups")):
        mode = c.next_token().text
        if c.accept("between"):
            start = _parse_frame_edge(c)
            c.expect("and")
            end = _parse_frame_edge(c)
        else:
            start = _parse_frame_edge(c)
        exclude = _parse_exclude(c)
    c.expect_sign(")")
    return t.WindowSpec(base, partition, order, mode, start, end, exclude, at)


def _parse_frame_edge(c: TokenCursor) -> t.FrameEdge:
    if c.accept("unbounded"):
        return t.FrameEdge("unbounded " + c.expect_one_of("preceding", "following"), None)
    if c.accept("current", "row"):
        return t.FrameEdge("current row", None)
    offset = c.parse_expression()
    return t.FrameEdge(c.expect_one_of("preceding", "following"), offset)


def _parse_exclude(c: TokenCursor) -> str:
    if not c.accept("exclude"):
        return ""
    if c.accept("current", "row"):
        return "current row"
    if c.accept("no", "others"):
        return ""
    return c.expect_one_of("group", "ties")


# -- calls in a syntax of their own ----------------------------------------------------------------


def _parse_cast(c: TokenCursor, at: int) -> t.Expr:
    c.expect_sign("(")
    operand = c.parse_expression()
    c.expect("as")
    found = parse_type(c)
    c.expect_sign(")")
    return t.CastExpr(operand, found, at)


def _parse_extract(c: TokenCursor, at: int) -> t.Expr:
    c.expect_sign("(")
    token = c.token
    field = token.text if token.kind == STRING else c.parse_label()
    if token.kind == STRING:
        c.next_token()
    c.expect("from")
    operand = c.parse_expression()
    c.expect_sign(")")
    return t.FunctionCall(("extract",), (t.Constant("string", field, token.start), operand), at)


def _parse_substring(c: TokenCursor, at: int) -> t.Expr:
    c.expect_sign("(")
    items = [c.parse_expression()]
    if c.is_any(("from", "for")):
        start = c.parse_expression() if c.accept("from") else None
        count = c.parse_expression() if c.accept("for") else None
        if start is None:
            start = c.parse_expression() if c.accept("from") else t.Constant("integer", "1", at)
        items += [start] if count is None else [start, count]
    elif c.accept("similar"):
        items.append(c.parse_expression())
        c.expect("escape")
        items.append(c.parse_expression())
    else:
        while c.accept_sign(","):
            items.append(c.parse_expression())
    c.expect_sign(")")
    return t.FunctionCall(("substring",), tuple(items), at)


def _parse_trim(c: TokenCursor, at: int) -> t.Expr:
    c.expect_sign("(")
    side = "both"
    if c.is_any(("both", "leading", "trailing")):
        side = c.next_token().text
    name = {"both": "btrim", "leading": "ltrim", "trailing": "rtrim"}[side]
    if c.accept("from"):
        items = c.parse_expression_list()
    else:
        items = c.parse_expression_list()
        if c.accept("from"):
            items = (*c.parse_expression_list(), *items)
    c.expect_sign(")")
    return t.FunctionCall((name,), items, at)


def _parse_position(c: TokenCursor, at: int) -> t.Expr:
    c.expect_sign("(")
    part = c.grammar.expression(c, _RANGE_LEVEL)
    c.expect("in")
    whole = c.grammar.expression(c, _RANGE_LEVEL)
    c.expect_sign(")")
    return t.FunctionCall(("position",), (whole, part), at)


def _parse_overlay(c: TokenCursor, at: int) -> t.Expr:
    c.expect_sign("(")
    items = [c.parse_expression()]
    if c.accept("placing"):
        items.append(c.parse_expression())
        c.expect("from")
        items.append(c.parse_expression())
        if c.accept("for"):
            items.append(c.parse_expression())
    else:
        while c.accept_sign(","):
            items.append(c.parse_expression())
    c.expect_sign(")")
    return t.FunctionCall(("overlay",), tuple(items), at)


def _make_plain_rule(name: str) -> Callable[[TokenCursor, int], t.Expr]:
    """A keyword that is called like any function."""
    return lambda c, at: _parse_arguments(c, (name,), at)


def _make_time_rule(name: str, sql_type: SqlType) -> Callable[[TokenCursor, int], t.Expr]:
    """current_timestamp(3): the moment, rounded."""

    def parse_time_call(c: TokenCursor, at: int) -> t.Expr:
        call = t.FunctionCall((name,), (), at)
        return t.CastExpr(call, with_second_digits(sql_type, parse_second_digits(c)), at)

    return parse_time_call


SPECIAL_CALLS: dict[str, Callable[[TokenCursor, int], t.Expr]] = {
    "cast": _parse_cast,
    "extract": _parse_extract,
    "substring": _parse_substring,
    "trim": _parse_trim,
    "position": _parse_position,
    "overlay": _parse_overlay,
    "coalesce": _make_plain_rule("coalesce"),
    "greatest": _make_plain_rule("greatest"),
    "least": _make_plain_rule("least"),
    "nullif": _make_plain_rule("nullif"),
    "grouping": _make_plain_rule("grouping"),
    "current_schema": _make_plain_rule("current_schema"),
    "current_timestamp": _make_time_rule("current_timestamp", TIMESTAMPTZ),
    "localtime": _make_time_rule("localtime", TIME),
    "localtimestamp": _make_time_rule("localtimestamp", TIMESTAMP),
}
