"""Parsed statements that contain a query or another statement, which is not bound yet."""

from __future__ import annotations

import msgspec

from belvedere.sql.definitions import Definition, Options, QualifiedName
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.lexical.lexer import SqlToken
from belvedere.sql.statements import Utility


class CreateAsForm(msgspec.Struct, frozen=True):
    """CREATE TABLE AS, CREATE VIEW, CREATE MATERIALIZED VIEW; `tokens` are those of the query."""

    kind: str  # 'table', 'view' or 'materialized view'
    name: QualifiedName
    columns: tuple[str, ...]
    query: t.QueryTree
    tokens: tuple[SqlToken, ...]
    options: Options = ()
    if_not_exists: bool = False
    or_replace: bool = False
    with_data: bool = True


class ExplainForm(msgspec.Struct, frozen=True):
    statement: Tree
    source: str
    options: Options


class DeclareForm(msgspec.Struct, frozen=True):
    """DECLARE .. CURSOR; `source` is the text of the query."""

    name: str
    query: t.DataStatement
    source: str
    scroll: bool = False
    hold: bool = False


class ExecuteForm(msgspec.Struct, frozen=True):
    name: str
    arguments: tuple[t.Expr, ...]


class CopyForm(msgspec.Struct, frozen=True):
    direction: str
    table: tuple[str, ...] | None
    columns: tuple[tuple[str, int], ...]
    query: t.DataStatement | None
    path: str | None
    options: Options
    at: int


Tree = (
    t.DataStatement
    | CreateAsForm
    | ExplainForm
    | DeclareForm
    | ExecuteForm
    | CopyForm
    | Definition
    | Utility
)
