"""Parses function calls, those with special syntax, and their FILTER, OVER and WITHIN GROUP."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from belvedere.errors import Unsupported
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.cursor import Cursor
from belvedere.sql.parse.lexer import QUOTED, STRING, WORD, syntax_error
from belvedere.sql.parse.types import parse_type, second_digits
from belvedere.types import TIME, TIMESTAMP, TIMESTAMPTZ, SqlType, timed

WITHOUT_PARENTHESES = frozenset(
    """
    current_catalog current_date current_role current_schema current_time current_timestamp
    current_user localtime localtimestamp session_user user
    """.split()
)
_RANGE_LEVEL = 6  # expressions.RANGE: operands of POSITION stop before IN


def parse_call(c: Cursor, name: tuple[str, ...] | None = None, at: int | None = None) -> t.Expr:
    """A call whose name comes next, or has been taken already."""
    if name is None:
        token = c.take()
        name, at = (token.text,), token.start
        special = SPECIAL_CALLS.get(token.text)
        if special is not None:
            found = special(c, token.start)
            return _after(c, found) if isinstance(found, t.FunctionCall) else found
    assert at is not None
    if name[0] == "pg_catalog" and len(name) == 2:
        name = name[1:]
    return _after(c, _arguments(c, name, at))


def _arguments(c: Cursor, name: tuple[str, ...], at: int) -> t.FunctionCall:
    c.expect_sign("(")
    if c.accept_sign(")"):
        return t.FunctionCall(name, (), at)
    if c.is_sign("*") and c.peek().text == ")":
        c.take()
        c.take()
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
            names.append(c.name())
            c.take()
        elif names:
            raise syntax_error("positional argument cannot follow named argument", c.token.start)
        items.append(c.expression())
        if variadic or not c.accept_sign(","):
            break
    order_by = parse_order(c)
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


def _after(c: Cursor, call: t.FunctionCall) -> t.FunctionCall:
    """WITHIN GROUP, FILTER and OVER."""
    if c.is_word("within", "group"):
        c.index += 2
        c.expect_sign("(")
        call = replace(call, within=parse_order(c, required=True))
        c.expect_sign(")")
    if c.is_word("filter") and c.peek().text == "(":
        c.index += 2
        c.expect("where")
        call = replace(call, filter=c.expression())
        c.expect_sign(")")
    if c.is_word("over"):
        c.index += 1
        over = parse_window(c) if c.is_sign("(") else c.name()
        call = replace(call, over=over)
    return call


def parse_order(c: Cursor, required: bool = False) -> tuple[t.OrderItem, ...]:
    """ORDER BY .., if it is there."""
    if not c.is_word("order", "by"):
        if required:
            raise c.error()
        return ()
    c.index += 2
    return c.comma_list(lambda: _order_item(c))


def _order_item(c: Cursor) -> t.OrderItem:
    expression = c.expression()
    descending = False
    if c.accept("using"):
        sign = c.take().text
        if sign not in ("<", ">"):
            raise Unsupported("order by using operator", position=c.token.start + 1)
        descending = sign == ">"
    elif c.accept("desc"):
        descending = True
    else:
        c.accept("asc")
    nulls_first = None
    if c.accept("nulls"):
        nulls_first = c.choice("first", "last") == "first"
    return t.OrderItem(expression, descending, nulls_first)


# -- windows ---------------------------------------------------------------------------------------


def parse_window(c: Cursor) -> t.WindowSpec:
    """`( [base] [PARTITION BY ..] [ORDER BY ..] [frame] )`"""
    at = c.expect_sign("(")
    base = None
    if not c.is_any(("partition", "order", "rows", "range", "groups")) and not c.is_sign(")"):
        base = c.name()
    partition: tuple[t.Expr, ...] = ()
    if c.accept("partition", "by"):
        partition = c.expressions()
    order = parse_order(c)
    mode, start, end, exclude = None, None, None, ""
    if c.is_any(("rows", "range", "groups")):
        mode = c.take().text
        if c.accept("between"):
            start = _edge(c)
            c.expect("and")
            end = _edge(c)
        else:
            start = _edge(c)
        exclude = _exclude(c)
    c.expect_sign(")")
    return t.WindowSpec(base, partition, order, mode, start, end, exclude, at)


def _edge(c: Cursor) -> t.FrameEdge:
    if c.accept("unbounded"):
        return t.FrameEdge("unbounded " + c.choice("preceding", "following"), None)
    if c.accept("current", "row"):
        return t.FrameEdge("current row", None)
    offset = c.expression()
    return t.FrameEdge(c.choice("preceding", "following"), offset)


def _exclude(c: Cursor) -> str:
    if not c.accept("exclude"):
        return ""
    if c.accept("current", "row"):
        return "current row"
    if c.accept("no", "others"):
        return ""
    return c.choice("group", "ties")


# -- calls in a syntax of their own ----------------------------------------------------------------


def _cast(c: Cursor, at: int) -> t.Expr:
    c.expect_sign("(")
    operand = c.expression()
    c.expect("as")
    found = parse_type(c)
    c.expect_sign(")")
    return t.CastExpr(operand, found, at)


def _extract(c: Cursor, at: int) -> t.Expr:
    c.expect_sign("(")
    token = c.token
    field = token.text if token.kind == STRING else c.label()
    if token.kind == STRING:
        c.take()
    c.expect("from")
    operand = c.expression()
    c.expect_sign(")")
    return t.FunctionCall(("extract",), (t.Constant("string", field, token.start), operand), at)


def _substring(c: Cursor, at: int) -> t.Expr:
    c.expect_sign("(")
    items = [c.expression()]
    if c.is_any(("from", "for")):
        start = c.expression() if c.accept("from") else None
        count = c.expression() if c.accept("for") else None
        if start is None:
            start = c.expression() if c.accept("from") else t.Constant("integer", "1", at)
        items += [start] if count is None else [start, count]
    elif c.accept("similar"):
        items.append(c.expression())
        c.expect("escape")
        items.append(c.expression())
    else:
        while c.accept_sign(","):
            items.append(c.expression())
    c.expect_sign(")")
    return t.FunctionCall(("substring",), tuple(items), at)


def _trim(c: Cursor, at: int) -> t.Expr:
    c.expect_sign("(")
    side = "both"
    if c.is_any(("both", "leading", "trailing")):
        side = c.take().text
    name = {"both": "btrim", "leading": "ltrim", "trailing": "rtrim"}[side]
    if c.accept("from"):
        items = c.expressions()
    else:
        items = c.expressions()
        if c.accept("from"):
            items = (*c.expressions(), *items)
    c.expect_sign(")")
    return t.FunctionCall((name,), items, at)


def _position(c: Cursor, at: int) -> t.Expr:
    c.expect_sign("(")
    part = c.grammar.expression(c, _RANGE_LEVEL)
    c.expect("in")
    whole = c.grammar.expression(c, _RANGE_LEVEL)
    c.expect_sign(")")
    return t.FunctionCall(("position",), (whole, part), at)


def _overlay(c: Cursor, at: int) -> t.Expr:
    c.expect_sign("(")
    items = [c.expression()]
    if c.accept("placing"):
        items.append(c.expression())
        c.expect("from")
        items.append(c.expression())
        if c.accept("for"):
            items.append(c.expression())
    else:
        while c.accept_sign(","):
            items.append(c.expression())
    c.expect_sign(")")
    return t.FunctionCall(("overlay",), tuple(items), at)


def _plain(name: str) -> Callable[[Cursor, int], t.Expr]:
    """A keyword that is called like any function."""
    return lambda c, at: _arguments(c, (name,), at)


def _timed(name: str, sql_type: SqlType) -> Callable[[Cursor, int], t.Expr]:
    """current_timestamp(3): the moment, rounded."""

    def parse(c: Cursor, at: int) -> t.Expr:
        call = t.FunctionCall((name,), (), at)
        return t.CastExpr(call, timed(sql_type, second_digits(c)), at)

    return parse


SPECIAL_CALLS: dict[str, Callable[[Cursor, int], t.Expr]] = {
    "cast": _cast,
    "extract": _extract,
    "substring": _substring,
    "trim": _trim,
    "position": _position,
    "overlay": _overlay,
    "coalesce": _plain("coalesce"),
    "greatest": _plain("greatest"),
    "least": _plain("least"),
    "nullif": _plain("nullif"),
    "grouping": _plain("grouping"),
    "current_schema": _plain("current_schema"),
    "current_timestamp": _timed("current_timestamp", TIMESTAMPTZ),
    "localtime": _timed("localtime", TIME),
    "localtimestamp": _timed("localtimestamp", TIMESTAMP),
}
