"""Parses queries: SELECT, VALUES, TABLE, set operations, WITH, ORDER BY, LIMIT and locks."""

from __future__ import annotations

from typing import Any

from belvedere.errors import InvalidInput, Unsupported
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.calls import parse_order, parse_window
from belvedere.sql.parse.cursor import QUERY_DEPTH, Cursor
from belvedere.sql.parse.lexer import INTEGER, NUMBER, PARAMETER, SIGN, syntax_error
from belvedere.sql.parse.sources import parse_sources
from belvedere.sql.parse.with_clause import parse_with

_ADD_LEVEL = 8  # expressions.ADD; what a FETCH count may be without parentheses is no more


def parse_query(c: Cursor) -> t.Query:
    """A complete query: WITH, body, ORDER BY, LIMIT, locks."""
    at = c.token.start
    ctes, recursive = parse_with(c)
    return parse_query_after(c, at, ctes, recursive)


def parse_query_after(c: Cursor, at: int, ctes: tuple[t.CteTree, ...], recursive: bool) -> t.Query:
    """A query whose WITH has been taken."""
    c.enter(QUERY_DEPTH)
    body = _set_operations(c, 0)
    tail = _tail(c)
    if isinstance(body, t.Query) and not ctes and not tail:
        query = body
    elif isinstance(body, t.Query) and _is_bare(body):
        query = t.Query(body.body, at, ctes, recursive, **tail)
    else:
        query = t.Query(body, at, ctes, recursive, **tail)
    c.leave(QUERY_DEPTH)
    return query


def _is_bare(query: t.Query) -> bool:
    return query == t.Query(query.body, query.at)


# -- the body --------------------------------------------------------------------------------------

_LEVELS = {"union": 1, "except": 1, "intersect": 2}


def _set_operations(c: Cursor, level: int) -> t.QueryBody:
    left = _body(c)
    while True:
        word = c.token.text if c.is_any(("union", "except", "intersect")) else ""
        found = _LEVELS.get(word, 0)
        if found <= level:
            return left
        at = c.take().start
        every = c.accept("all")
        if not every:
            c.accept("distinct")
        right = _set_operations(c, found)
        left = t.SetOperationTree(word, every, left, right, at)


def _body(c: Cursor) -> t.QueryBody:
    if c.is_word("select"):
        return _select(c)
    if c.is_word("values"):
        return parse_values(c)
    if c.is_word("table"):
        return _table(c)
    if c.is_sign("("):
        c.take()
        query = parse_query(c)
        c.expect_sign(")")
        return query
    raise c.error()


def parse_values(c: Cursor) -> t.ValuesList:
    at = c.expect("values")

    def row() -> tuple[t.Expr, ...]:
        c.expect_sign("(")
        items = c.expressions()
        c.expect_sign(")")
        return items

    return t.ValuesList(c.comma_list(row), at)


def _table(c: Cursor) -> t.Select:
    at = c.expect("table")
    place = c.token.start
    source = t.TableRef(c.qualified(), None, (), place)
    return t.Select((t.Target(t.Star((), at, at), None),), at, sources=(source,))


def _select(c: Cursor) -> t.Select:
    at = c.expect("select")
    distinct, on = _distinct(c)
    targets: tuple[t.Target, ...] = ()
    if not c.is_any(_AFTER_TARGETS) and not c.is_sign(")") and not c.at_end:
        targets = c.comma_list(lambda: parse_target(c))
    if c.is_word("into"):
        _into(c, at)
    sources = parse_sources(c) if c.accept("from") else ()
    where = c.expression() if c.accept("where") else None
    groups, group_distinct = _group_by(c)
    having = c.expression() if c.accept("having") else None
    windows: tuple[tuple[str, t.WindowSpec], ...] = ()
    if c.accept("window"):
        windows = c.comma_list(lambda: _named_window(c))
    return t.Select(
        targets, at, distinct, on, sources, where, groups, group_distinct, having, windows
    )


def _into(c: Cursor, at: int) -> None:
    """INTO: remembered for the statement, which makes CREATE TABLE AS of it."""
    first = c.index
    c.take()
    if c.is_any(("temp", "temporary", "local", "global")):
        raise Unsupported(f"{c.token.text} object", position=c.token.start + 1)
    c.accept("unlogged")
    c.accept("table")
    c.qualified()
    if c.into is not None:
        raise syntax_error("into specified more than once", at)
    c.into = (at, first, c.index)


_AFTER_TARGETS = frozenset(
    """
    from where group having window order limit offset fetch for union except intersect into
    """.split()
)


def _distinct(c: Cursor) -> tuple[bool, tuple[t.Expr, ...]]:
    if not c.accept("distinct"):
        c.accept("all")
        return False, ()
    if not c.accept("on"):
        return True, ()
    c.expect_sign("(")
    on = c.expressions()
    c.expect_sign(")")
    return True, on


def parse_target(c: Cursor) -> t.Target:
    """One item of a select list or of RETURNING."""
    expression = c.expression()
    if c.accept("as"):
        return t.Target(expression, c.label())
    return t.Target(expression, c.bare_label())


def _named_window(c: Cursor) -> tuple[str, t.WindowSpec]:
    name = c.name()
    c.expect("as")
    return name, parse_window(c)


# -- GROUP BY --------------------------------------------------------------------------------------


def _group_by(c: Cursor) -> tuple[tuple[t.GroupItem, ...] | None, bool]:
    if not c.is_word("group", "by"):
        return None, False
    c.index += 2
    distinct = c.accept("distinct")
    if not distinct:
        c.accept("all")
    return c.comma_list(lambda: _group_item(c)), distinct


def _group_item(c: Cursor) -> t.GroupItem:
    at = c.token.start
    if c.is_word("grouping", "sets"):
        c.index += 2
        return t.GroupingSets("sets", _grouping_items(c), at)
    if c.is_any(("rollup", "cube")) and c.peek().text == "(":
        word = c.take().text
        return t.GroupingSets(word, _grouping_items(c), at)
    if c.is_sign("(") and c.peek().kind == SIGN and c.peek().text == ")":
        c.index += 2
        return t.GroupingSets("sets", ((),), at)
    return c.expression()


def _grouping_items(c: Cursor) -> tuple[tuple[t.Expr, ...] | t.GroupingSets, ...]:
    def item() -> tuple[t.Expr, ...] | t.GroupingSets:
        found = _group_item(c)
        if isinstance(found, t.GroupingSets):
            return found
        return found.items if isinstance(found, t.RowItems) else (found,)

    c.expect_sign("(")
    items = c.comma_list(item)
    c.expect_sign(")")
    return items


# -- ORDER BY, LIMIT, locks ------------------------------------------------------------------------


def _tail(c: Cursor) -> dict[str, Any]:
    found: dict[str, Any] = {}
    order = parse_order(c)
    if order:
        found["order_by"] = order
    locks = _locks(c)
    while c.is_any(("limit", "offset", "fetch")):
        at = c.token.start
        word = c.take().text
        name = "offset" if word == "offset" else "limit"
        if name in found:
            raise c.error()
        if word == "limit":
            found["limit"] = t.Constant("null", None, at) if c.accept("all") else c.expression()
        elif word == "offset":
            found["offset"] = c.expression()
            if c.is_any(("row", "rows")):
                c.take()
        else:
            found.update(_fetch(c, at))
    if found.get("with_ties") and not order:
        raise InvalidInput("with ties needs an order by", sqlstate="42601")
    locks += _locks(c)
    if locks:
        found["locks"] = locks
    return found


def _fetch(c: Cursor, at: int) -> dict[str, Any]:
    c.choice("first", "next")
    count: t.Expr = t.Constant("integer", "1", at)
    if c.token.kind in (INTEGER, NUMBER, PARAMETER) or c.is_sign("(") or c.is_sign("-"):
        count = c.grammar.expression(c, _ADD_LEVEL)
    c.choice("row", "rows")
    if c.accept("only"):
        return {"limit": count}
    c.expect("with", "ties")
    return {"limit": count, "with_ties": True}


def _locks(c: Cursor) -> tuple[t.LockClause, ...]:
    found = []
    while c.is_word("for"):
        at = c.take().start
        if c.accept("no", "key", "update") or c.accept("update"):
            strength = "update"
        elif c.accept("read", "only"):
            continue
        else:
            c.accept("key")
            c.expect("share")
            strength = "share"
        of = c.comma_list(c.name) if c.accept("of") else ()
        wait = ""
        if c.accept("nowait"):
            wait = "nowait"
        elif c.accept("skip", "locked"):
            wait = "skip locked"
        found.append(t.LockClause(strength, of, wait, at))
    return tuple(found)
