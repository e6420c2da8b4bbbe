"""Text to statements: the parser and the binder, as a session uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from belvedere.sql.parse.script import Parsed, parse_script
from belvedere.sql.statements import DataPlan, Prepare, Statement
from belvedere.types import SqlType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from belvedere.session.session import Session


def parse(text: str) -> list[Parsed]:
    return parse_script(text)


def bind(session: Session, text: str, parsed: Parsed, parameters: Sequence[Any]) -> Statement:
    raise NotImplementedError


def is_cacheable(statement: DataPlan) -> bool:
    return True


def bind_prepared(session: Session, statement: Prepare) -> Statement:
    raise NotImplementedError


def bind_default(session: Session, text: str, sql_type: SqlType) -> e.Expression:
    raise NotImplementedError


def bind_over_table(session: Session, table: Table, text: str) -> e.Expression:
    raise NotImplementedError
