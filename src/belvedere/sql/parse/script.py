"""Splits a text into statements and dispatches each to its parsing rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from belvedere.errors import Unsupported
from belvedere.sql.definitions import MaintainView
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.lexical.lexer import END, SIGN, WORD, syntax_error, tokenize
from belvedere.sql.parse.lexical.token_cursor import Grammar, TokenCursor, too_complex_error
from belvedere.sql.parse.queries.expression import parse_expression
from belvedere.sql.parse.queries.query import parse_query
from belvedere.sql.parse.statement_forms import CreateAsForm, ExplainForm, Tree
from belvedere.sql.parse.statements import cursors, ddl, grants, utility
from belvedere.sql.parse.statements.alter import parse_alter
from belvedere.sql.parse.statements.comment import parse_comment
from belvedere.sql.parse.statements.ddl_clauses import parse_qualified_name
from belvedere.sql.parse.statements.dml import parse_data_statement

_GRAMMAR = Grammar(parse_expression, parse_query, parse_data_statement)


class ParsedStatement(NamedTuple):
    """One statement: its tree, and where it stands in the text."""

    tree: Tree
    start: int
    end: int


def parse_script(text: str) -> list[ParsedStatement]:
    """The statements of a text, which are separated by semicolons; empty ones are left out."""
    c = TokenCursor(tokenize(text), text, _GRAMMAR)
    found: list[ParsedStatement] = []
    try:
        while True:
            while c.accept_sign(";"):
                pass
            if c.token.kind == END:
                return found
            start = c.token.start
            tree = _parse_statement(c)
            if not c.at_end:
                raise c.make_syntax_error()
            if c.into is not None:
                raise syntax_error("select into is not allowed here", c.into[0])
            found.append(ParsedStatement(tree, start, c.tokens[c.index - 1].end))
    except RecursionError:
        raise too_complex_error() from None


def parse_expression_text(text: str) -> t.Expr:
    """A text that is one expression: what the catalog stores of defaults, checks and the like."""
    c = TokenCursor(tokenize(text), text, _GRAMMAR)
    tree = parse_expression(c)
    if c.token.kind != END:
        raise c.make_syntax_error()
    return tree


def _parse_statement(c: TokenCursor) -> Tree:
    token = c.token
    if token.kind == WORD:
        rule = _RULES.get(token.text)
        if rule is not None:
            return rule(c)
        if token.text in _MISSING:
            raise Unsupported(_MISSING[token.text], position=token.start + 1)
    elif token.kind == SIGN and token.text == "(":
        return parse_data_statement(c)
    raise c.make_syntax_error()


def _parse_query_or_into(c: TokenCursor) -> Tree:
    """A query, or CREATE TABLE AS in the form SELECT .. INTO."""
    start = c.index
    tree = parse_data_statement(c)
    if c.into is None:
        return tree
    at, first, end = c.into
    body = tree.body if isinstance(tree, t.QueryTree) else None
    while isinstance(body, t.SetOperationTree):
        body = body.left
    if not isinstance(tree, t.QueryTree) or not isinstance(body, t.Select) or body.at != at:
        raise syntax_error("select into is not allowed here", at)
    inside = TokenCursor([*c.tokens[first:end], c.tokens[-1]], c.text, _GRAMMAR)
    inside.next_token()
    inside.accept("unlogged")
    inside.accept("table")
    name, c.into = parse_qualified_name(inside), None
    tokens = (*c.tokens[start:first], *c.tokens[end : c.index])
    return CreateAsForm("table", name, (), tree, tokens)


def _parse_explain(c: TokenCursor) -> ExplainForm:
    options = utility.parse_explain_options(c)
    start = c.token.start
    if c.accept("materialized", "view"):
        statement: Tree = MaintainView("explain", parse_qualified_name(c))
    else:
        statement = _parse_statement(c)
    return ExplainForm(statement, c.text[start : c.tokens[c.index - 1].end], options)


_RULES: dict[str, Callable[[TokenCursor], Tree]] = {
    "select": _parse_query_or_into,
    "with": _parse_query_or_into,
    "values": parse_data_statement,
    "table": parse_data_statement,
    "insert": parse_data_statement,
    "update": parse_data_statement,
    "delete": parse_data_statement,
    "merge": parse_data_statement,
    "create": ddl.parse_create,
    "alter": parse_alter,
    "comment": parse_comment,
    "drop": ddl.parse_drop,
    "truncate": ddl.parse_truncate,
    "grant": grants.parse_grant,
    "revoke": grants.parse_revoke,
    "reassign": grants.parse_reassign,
    "refresh": ddl.parse_maintain,
    "verify": ddl.parse_maintain,
    "repair": ddl.parse_maintain,
    "begin": utility.parse_begin,
    "start": utility.parse_begin,
    "commit": utility.parse_commit,
    "end": utility.parse_commit,
    "rollback": utility.parse_rollback,
    "abort": utility.parse_rollback,
    "savepoint": utility.parse_savepoint,
    "release": utility.parse_release,
    "lock": utility.parse_lock,
    "set": utility.parse_set,
    "show": utility.parse_show,
    "reset": utility.parse_reset,
    "prepare": utility.parse_prepare,
    "execute": utility.parse_execute,
    "deallocate": utility.parse_deallocate,
    "discard": utility.parse_discard,
    "explain": _parse_explain,
    "declare": cursors.parse_declare,
    "fetch": cursors.parse_fetch,
    "move": cursors.parse_fetch,
    "close": cursors.parse_close,
    "listen": cursors.parse_listen,
    "unlisten": cursors.parse_unlisten,
    "notify": cursors.parse_notify,
    "copy": utility.parse_copy,
    "analyze": utility.parse_analyze,
    "analyse": utility.parse_analyze,
    "vacuum": utility.parse_vacuum,
    "reindex": utility.parse_reindex,
}
_MISSING = {
    **{
        word: word.upper()
        for word in """
            analyse call checkpoint cluster do load
        """.split()
    },
    "import": "IMPORT FOREIGN SCHEMA",
    "security": "SECURITY LABEL",
}
"""Statements of PostgreSQL that are refused, by their first word."""
