"""Expressions, by precedence climbing with PostgreSQL's levels (low to high):

OR, AND, NOT, IS, comparison, BETWEEN IN LIKE ILIKE SIMILAR, other operators, + -, * / %, ^,
AT TIME ZONE, COLLATE, unary minus, [], ::
"""

from __future__ import annotations

from typing import Final

from belvedere.errors import Unsupported
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.lexical.lexer import SIGN, WORD
from belvedere.sql.parse.lexical.token_cursor import TokenCursor
from belvedere.sql.parse.queries.primary_expression import parse_primary
from belvedere.sql.parse.queries.types import parse_type

OR: Final = 1
AND: Final = 2
NOT: Final = 3
IS: Final = 4
COMPARISON: Final = 5
RANGE: Final = 6
OTHER: Final = 7
ADD: Final = 8
MULTIPLY: Final = 9
POWER: Final = 10
AT: Final = 11
COLLATE: Final = 12
UNARY: Final = 13
SUBSCRIPT: Final = 14
CAST: Final = 15

_SIGNS = {
    "<": COMPARISON,
    ">": COMPARISON,
    "=": COMPARISON,
    "<=": COMPARISON,
    ">=": COMPARISON,
    "<>": COMPARISON,
    "+": ADD,
    "-": ADD,
    "*": MULTIPLY,
    "/": MULTIPLY,
    "%": MULTIPLY,
    "^": POWER,
    "[": SUBSCRIPT,
    "::": CAST,
}
_PUNCTUATION = frozenset("(),;.:]") | {":=", "..", "=>"}
_WORDS = {
    "or": OR,
    "and": AND,
    "is": IS,
    "isnull": IS,
    "notnull": IS,
    "between": RANGE,
    "in": RANGE,
    "like": RANGE,
    "ilike": RANGE,
    "similar": RANGE,
    "at": AT,
    "collate": COLLATE,
    "operator": OTHER,
    "overlaps": RANGE,
}
_NEGATED = frozenset({"between", "in", "like", "ilike", "similar"})
QUANTIFIERS = ("any", "some", "all")


def parse_expression(c: TokenCursor, level: int = 0) -> t.Expr:
    """An expression of operators that bind tighter than `level`."""
    c.enter_level()
    left = _parse_prefix(c)
    while True:
        found = _infix_level(c)
        if found <= level:
            break
        left = _parse_infix(c, left, found)
    c.leave_level()
    return left


def _parse_prefix(c: TokenCursor) -> t.Expr:
    token = c.tokens[c.index]
    if token.kind == SIGN:
        if token.text in ("-", "+"):
            c.index += 1
            operand = parse_expression(c, UNARY)
            return _apply_sign(token.text, operand, token.start)
        if token.text not in _PUNCTUATION and token.text not in _SIGNS:
            c.index += 1
            return t.Operation(token.text, None, parse_expression(c, OTHER), token.start)
    elif token.kind == WORD and token.text == "not":
        c.index += 1
        return t.NotExpr(parse_expression(c, NOT), token.start)
    return parse_primary(c)


def _apply_sign(sign: str, operand: t.Expr, at: int) -> t.Expr:
    """-5 is a constant, so that -9223372036854775808 is a bigint."""
    if sign == "-" and isinstance(operand, t.Constant) and operand.kind in ("integer", "number"):
        digits = str(operand.value)
        return t.Constant(operand.kind, digits[1:] if digits[0] == "-" else "-" + digits, at)
    return t.Operation(sign, None, operand, at)


def _infix_level(c: TokenCursor) -> int:
    """The level of the operator that comes next; 0 when none does."""
    token = c.tokens[c.index]
    if token.kind == SIGN:
        level = _SIGNS.get(token.text)
        if level is not None:
            return level
        return 0 if token.text in _PUNCTUATION else OTHER
    if token.kind != WORD:
        return 0
    if token.text == "not":
        return RANGE if c.peek().kind == WORD and c.peek().text in _NEGATED else 0
    if token.text == "at":
        return AT if c.peek().text in ("time", "local") else 0
    if token.text == "similar":  # in substring(.. similar .. escape ..) it is no operator
        return RANGE if c.peek().text == "to" else 0
    return _WORDS.get(token.text, 0)


def _parse_infix(c: TokenCursor, left: t.Expr, level: int) -> t.Expr:
    token = c.next_token()
    if token.kind == SIGN:
        return _parse_operator(c, left, token.text, token.start, level)
    match token.text:
        case "or" | "and":
            return _parse_logic(c, left, token.text, token.start, level)
        case "is":
            return _parse_is(c, left, token.start)
        case "isnull" | "notnull":
            return t.IsExpr(left, "null", token.text == "notnull", token.start)
        case "not":
            word = c.next_token().text
            return _parse_range_predicate(c, left, word, True, token.start)
        case "at":
            return _parse_at_time_zone(c, left, token.start)
        case "collate":
            return t.Collate(left, c.parse_qualified()[-1], token.start)
        case "operator":
            sign = _parse_named_operator(c)
            return t.Operation(sign, left, parse_expression(c, OTHER), token.start)
        case word:
            return _parse_range_predicate(c, left, word, False, token.start)


def _parse_operator(c: TokenCursor, left: t.Expr, sign: str, at: int, level: int) -> t.Expr:
    if sign == "::":
        return t.CastExpr(left, parse_type(c), at)
    if sign == "[":
        return _parse_subscript(c, left, at)
    if c.is_any(QUANTIFIERS) and c.peek().text == "(":
        return _parse_quantified(c, left, sign, at)
    right = parse_expression(c, level)
    if level == COMPARISON and _infix_level(c) == COMPARISON:
        raise c.make_syntax_error()  # comparisons do not associate
    return t.Operation(sign, left, right, at)


def _parse_subscript(c: TokenCursor, left: t.Expr, at: int) -> t.Expr:
    low = None if c.is_sign(":") else parse_expression(c)
    if c.accept_sign(":"):
        high = None if c.is_sign("]") else parse_expression(c)
        c.expect_sign("]")
        return t.Slice(left, low, high, at)
    c.expect_sign("]")
    assert low is not None
    return t.Subscript(left, low, at)


def _parse_quantified(c: TokenCursor, left: t.Expr, operator: str, at: int) -> t.Expr:
    quantifier = "all" if c.next_token().text == "all" else "any"
    c.expect_sign("(")
    right: t.Expr | t.QueryTree = c.parse_query() if c.is_query_ahead() else parse_expression(c)
    c.expect_sign(")")
    return t.Quantify(quantifier, operator, left, right, at)


def _parse_logic(c: TokenCursor, left: t.Expr, word: str, at: int, level: int) -> t.Expr:
    """One node for a chain: generated statements have thousands of operands."""
    operands = [left, parse_expression(c, level)]
    while c.accept(word):
        operands.append(parse_expression(c, level))
    return t.Logic(word, tuple(operands), at)


def _parse_is(c: TokenCursor, left: t.Expr, at: int) -> t.Expr:
    negated = c.accept("not")
    if c.accept("distinct", "from"):
        return t.DistinctFrom(left, parse_expression(c, IS), negated, at)
    if c.is_any(("json", "normalized", "document", "nfc", "nfd", "nfkc", "nfkd")):
        raise Unsupported(f"is {c.token.text}", position=at + 1)
    word = c.expect_one_of("null", "true", "false", "unknown")
    return t.IsExpr(left, word, negated, at)


def _parse_range_predicate(
    c: TokenCursor, left: t.Expr, word: str, negated: bool, at: int
) -> t.Expr:
    match word:
        case "between":
            symmetric = c.accept("symmetric")
            if not symmetric:
                c.accept("asymmetric")
            low = parse_expression(c, RANGE)
            c.expect("and")
            return t.Between(left, low, parse_expression(c, RANGE), negated, symmetric, at)
        case "in":
            return _parse_in(c, left, negated, at)
        case "like" | "ilike" | "similar":
            return _parse_like(c, left, word, negated, at)
        case _:
            right = parse_expression(c, RANGE)
            if not isinstance(left, t.RowItems) or not isinstance(right, t.RowItems):
                raise c.make_syntax_error()
            return t.FunctionCall(("overlaps",), (*left.items, *right.items), at)


def _parse_in(c: TokenCursor, left: t.Expr, negated: bool, at: int) -> t.Expr:
    c.expect_sign("(")
    if c.is_query_ahead():
        query = c.parse_query()
        c.expect_sign(")")
        return t.InQuery(left, query, negated, at)
    items = c.parse_comma_list(lambda: parse_expression(c))
    c.expect_sign(")")
    return t.InItems(left, items, negated, at)


def _parse_like(c: TokenCursor, left: t.Expr, word: str, negated: bool, at: int) -> t.Expr:
    if word == "similar":
        c.expect("to")
        word = "similar to"
    if c.is_any(QUANTIFIERS) and c.peek().text == "(":
        return _parse_quantified(c, left, f"not {word}" if negated else word, at)
    pattern = parse_expression(c, RANGE)
    escape = parse_expression(c, RANGE) if c.accept("escape") else None
    return t.Like(word, left, pattern, escape, negated, at)


def _parse_at_time_zone(c: TokenCursor, left: t.Expr, at: int) -> t.Expr:
    if c.accept("local"):
        return t.FunctionCall(("timezone",), (left,), at)
    c.expect("time", "zone")
    zone = parse_expression(c, AT)
    return t.FunctionCall(("timezone",), (zone, left), at)


def _parse_named_operator(c: TokenCursor) -> str:
    """OPERATOR(pg_catalog.+)"""
    c.expect_sign("(")
    while c.token.kind == WORD:
        c.next_token()
        c.expect_sign(".")
    token = c.next_token()
    if token.kind != SIGN or token.text in _PUNCTUATION:
        raise c.make_syntax_error()
    c.expect_sign(")")
    return token.text
