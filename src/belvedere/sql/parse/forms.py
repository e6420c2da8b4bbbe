"""Statements around a query or another statement, before that is bound."""

from __future__ import annotations

from dataclasses import dataclass

from belvedere.sql.definitions import Definition, Options, QualifiedName
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.lexer import Token
from belvedere.sql.statements import Utility


@dataclass(frozen=True, slots=True)
class QueryForm:
    """CREATE TABLE AS, CREATE VIEW, CREATE MATERIALIZED VIEW; `tokens` are those of the query."""

    kind: str  # 'table', 'view' or 'materialized view'
    name: QualifiedName
    columns: tuple[str, ...]
    query: t.Query
    tokens: tuple[Token, ...]
    options: Options = ()
    if_not_exists: bool = False
    or_replace: bool = False
    with_data: bool = True


@dataclass(frozen=True, slots=True)
class ExplainForm:
    statement: Tree
    source: str
    options: Options


@dataclass(frozen=True, slots=True)
class ExecuteForm:
    name: str
    arguments: tuple[t.Expr, ...]


@dataclass(frozen=True, slots=True)
class CopyForm:
    direction: str
    table: tuple[str, ...] | None
    columns: tuple[tuple[str, int], ...]
    query: t.DataStatement | None
    path: str | None
    options: Options
    at: int


Tree = t.DataStatement | QueryForm | ExplainForm | ExecuteForm | CopyForm | Definition | Utility
