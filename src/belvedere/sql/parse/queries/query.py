"""Parses queries: SELECT, VALUES, TABLE, set operations, WITH, ORDER BY, LIMIT and locks."""

from __future__ import annotations

from typing import Any

from belvedere.errors import InvalidInput, Unsupported
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.lexical.lexer import INTEGER, NUMBER, PARAMETER, SIGN, syntax_error
from belvedere.sql.parse.lexical.token_cursor import QUERY_DEPTH, TokenCursor
from belvedere.sql.parse.queries.calls import parse_order_by, parse_window_spec
from belvedere.sql.parse.queries.from_clause import parse_from_list
from belvedere.sql.parse.queries.with_clause import parse_with

_ADD_LEVEL = 8  # expressions.ADD; what a FETCH count may be without parentheses is no more


def parse_query(c: TokenCursor) -> t.QueryTree:
    """A complete query: WITH, body, ORDER BY, LIMIT, locks."""
    at = c.token.start
    ctes, recursive = parse_with(c)
    return parse_query_after_with(c, at, ctes, recursive)


def parse_query_after_with(
    c: TokenCursor, at: int, ctes: tuple[t.CteTree, ...], recursive: bool
) -> t.QueryTree:
    """A query whose WITH has been taken."""
    c.enter_level(QUERY_DEPTH)
    body = _parse_set_operations(c, 0)
    tail = _parse_tail(c)
    if isinstance(body, t.QueryTree) and not ctes and not tail:
        query = body
    elif isinstance(body, t.QueryTree) and _is_bare(body):
        query = t.QueryTree(body.body, at, ctes, recursive, **tail)
    else:
        query = t.QueryTree(body, at, ctes, recursive, **tail)
    c.leave_level(QUERY_DEPTH)
    return query


def _is_bare(query: t.QueryTree) -> bool:
    return query == t.QueryTree(query.body, query.at)


# -- the body --------------------------------------------------------------------------------------

_LEVELS = {"union": 1, "except": 1, "intersect": 2}


def _parse_set_operations(c: TokenCursor, level: int) -> t.QueryBody:
    left = _parse_body(c)
    while True:
        word = c.token.text if c.is_any(("union", "except", "intersect")) else ""
        found = _LEVELS.get(word, 0)
        if found <= level:
            return left
        at = c.next_token().start
        every = c.accept("all")
        if not every:
            c.accept("distinct")
        right = _parse_set_operations(c, found)
        left = t.SetOperationTree(word, every, left, right, at)


def _parse_body(c: TokenCursor) -> t.QueryBody:
    if c.is_word("select"):
        return _parse_select(c)
    if c.is_word("values"):
        return parse_values(c)
    if c.is_word("table"):
        return _parse_table(c)
    if c.is_sign("("):
        c.next_token()
        query = parse_query(c)
        c.expect_sign(")")
        return query
    raise c.make_syntax_error()


def parse_values(c: TokenCursor) -> t.ValuesList:
    at = c.expect("values")

    def parse_row() -> tuple[t.Expr, ...]:
        c.expect_sign("(")
        items = c.parse_expression_list()
        c.expect_sign(")")
        return items

    return t.ValuesList(c.parse_comma_list(parse_row), at)


def _parse_table(c: TokenCursor) -> t.Select:
    at = c.expect("table")
    place = c.token.start
    source = t.TableRef(c.parse_qualified(), None, (), place)
    return t.Select((t.SelectItem(t.Star((), at, at), None),), at, sources=(source,))


def _parse_select(c: TokenCursor) -> t.Select:
    at = c.expect("select")
    distinct, on = _parse_distinct(c)
    targets: tuple[t.SelectItem, ...] = ()
    if not c.is_any(_AFTER_TARGETS) and not c.is_sign(")") and not c.at_end:
        targets = c.parse_comma_list(lambda: parse_target(c))
    if c.is_word("into"):
        _parse_into(c, at)
    sources = parse_from_list(c) if c.accept("from") else ()
    where = c.parse_expression() if c.accept("where") else None
    groups, group_distinct = _parse_group_by(c)
    having = c.parse_expression() if c.accept("having") else None
    windows: tuple[tuple[str, t.WindowSpec], ...] = ()
    if c.accept("window"):
        windows = c.parse_comma_list(lambda: _parse_named_window(c))
    return t.Select(
        targets, at, distinct, on, sources, where, groups, group_distinct, having, windows
    )


def refuse_temporary(c: TokenCursor) -> None:
    """0A000 for a table, view or sequence of one session, by what it is."""
    at = c.token.start + 1
    if not c.is_any(_TEMPORARY):
        return
    while c.is_any(_TEMPORARY):
        c.next_token()
    kind = c.token.text.lower() if c.is_any(("view", "sequence")) else "table"
    raise Unsupported(f"temporary {kind}", position=at)


_TEMPORARY = ("temp", "temporary", "local", "global")


def _parse_into(c: TokenCursor, at: int) -> None:
    """INTO: remembered for the statement, which makes CREATE TABLE AS of it."""
    first = c.index
    c.next_token()
    refuse_temporary(c)
    c.accept("unlogged")
    c.accept("table")
    c.parse_qualified()
    if c.into is not None:
        raise syntax_error("into specified more than once", at)
    c.into = (at, first, c.index)


_AFTER_TARGETS = frozenset(
    """
    from where group having window order limit offset fetch for union except intersect into
    """.split()
)


def _parse_distinct(c: TokenCursor) -> tuple[bool, tuple[t.Expr, ...]]:
    if not c.accept("distinct"):
        c.accept("all")
        return False, ()
    if not c.accept("on"):
        return True, ()
    c.expect_sign("(")
    on = c.parse_expression_list()
    c.expect_sign(")")
    return True, on


def parse_target(c: TokenCursor) -> t.SelectItem:
    """One item of a select list or of RETURNING."""
    expression = c.parse_expression()
    if c.accept("as"):
        return t.SelectItem(expression, c.parse_label())
    return t.SelectItem(expression, c.parse_bare_label())


def _parse_named_window(c: TokenCursor) -> tuple[str, t.WindowSpec]:
    name = c.parse_name()
    c.expect("as")
    return name, parse_window_spec(c)


# -- GROUP BY --------------------------------------------------------------------------------------


def _parse_group_by(c: TokenCursor) -> tuple[tuple[t.GroupItem, ...] | None, bool]:
    if not c.is_word("group", "by"):
        return None, False
    c.index += 2
    distinct = c.accept("distinct")
    if not distinct:
        c.accept("all")
    return c.parse_comma_list(lambda: _parse_group_item(c)), distinct


def _parse_group_item(c: TokenCursor) -> t.GroupItem:
    at = c.token.start
    if c.is_word("grouping", "sets"):
        c.index += 2
        return t.GroupingSets("sets", _parse_grouping_items(c), at)
    if c.is_any(("rollup", "cube")) and c.peek().text == "(":
        word = c.next_token().text
        return t.GroupingSets(word, _parse_grouping_items(c), at)
    if c.is_sign("(") and c.peek().kind == SIGN and c.peek().text == ")":
        c.index += 2
        return t.GroupingSets("sets", ((),), at)
    return c.parse_expression()


def _parse_grouping_items(c: TokenCursor) -> tuple[tuple[t.Expr, ...] | t.GroupingSets, ...]:
    def parse_item() -> tuple[t.Expr, ...] | t.GroupingSets:
        found = _parse_group_item(c)
        if isinstance(found, t.GroupingSets):
            return found
        return found.items if isinstance(found, t.RowItems) else (found,)

    c.expect_sign("(")
    items = c.parse_comma_list(parse_item)
    c.expect_sign(")")
    return items


# -- ORDER BY, LIMIT, locks ------------------------------------------------------------------------


def _parse_tail(c: TokenCursor) -> dict[str, Any]:
    found: dict[str, Any] = {}
    order = parse_order_by(c)
    if order:
        found["order_by"] = order
    locks = _parse_locks(c)
    while c.is_any(("limit", "offset", "fetch")):
        at = c.token.start
        word = c.next_token().text
        name = "offset" if word == "offset" else "limit"
        if name in found:
            raise c.make_syntax_error()
        if word == "limit":
            found["limit"] = (
                t.Constant("null", None, at) if c.accept("all") else c.parse_expression()
            )
        elif word == "offset":
            found["offset"] = c.parse_expression()
            if c.is_any(("row", "rows")):
                c.next_token()
        else:
            found.update(_parse_fetch(c, at))
    if found.get("with_ties") and not order:
        raise InvalidInput("with ties needs an order by", sqlstate="42601")
    locks += _parse_locks(c)
    if locks:
        found["locks"] = locks
    return found


def _parse_fetch(c: TokenCursor, at: int) -> dict[str, Any]:
    c.expect_one_of("first", "next")
    count: t.Expr = t.Constant("integer", "1", at)
    if c.token.kind in (INTEGER, NUMBER, PARAMETER) or c.is_sign("(") or c.is_sign("-"):
        count = c.grammar.expression(c, _ADD_LEVEL)
    c.expect_one_of("row", "rows")
    if c.accept("only"):
        return {"limit": count}
    c.expect("with", "ties")
    return {"limit": count, "with_ties": True}


def _parse_locks(c: TokenCursor) -> tuple[t.LockClause, ...]:
    found = []
    while c.is_word("for"):
        at = c.next_token().start
        if c.accept("no", "key", "update") or c.accept("update"):
            strength = "update"
        elif c.accept("read", "only"):
            continue
        else:
            c.accept("key")
            c.expect("share")
            strength = "share"
        of = c.parse_comma_list(c.parse_name) if c.accept("of") else ()
        wait = ""
        if c.accept("nowait"):
            wait = "nowait"
        elif c.accept("skip", "locked"):
            wait = "skip locked"
        found.append(t.LockClause(strength, of, wait, at))
    return tuple(found)
