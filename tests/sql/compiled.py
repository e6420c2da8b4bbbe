"""Texts over the shop's catalog, compiled by the code that ships: a session's binder and rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from msgspec import structs

from belvedere.catalog.catalog import Catalog
from belvedere.database import Database
from belvedere.session.context.shared_state import SharedState
from belvedere.session.session import Session
from belvedere.session.statement import bind
from belvedere.sql import statements as s
from belvedere.sql.definitions import CreateTableAs
from tests.sql.shop import SYSTEM, shop, sized

CATALOG = shop()


class ShopSession(Session):
    """A session that sees the catalog of the shop, its sizes, and one system table."""

    def __init__(self, shared: SharedState) -> None:
        super().__init__(shared)
        shared.table_statistics = sized()  # type: ignore[assignment]
        self.virtual.find_table_fields = SYSTEM  # type: ignore[method-assign]

    @property
    def catalog(self) -> Catalog:
        return CATALOG


@cache
def shop_session() -> ShopSession:
    return ShopSession(SharedState(Database.open(":memory:")))


def bind_text(text: str) -> list[s.Statement]:
    """The statements of a text, bound."""
    return _compile_text(text, lambda session, statement: statement)


def plan_text(text: str) -> list[s.Statement]:
    """The statements of a text, bound and optimized."""
    return _compile_text(text, _plan_statement)


def _compile_text(text: str, finish: Callable[[Session, Any], Any]) -> list[s.Statement]:
    session = shop_session()

    def compile_all() -> Any:
        return [
            finish(session, bind.bind_inferring_parameter_types(session, one, ())[0])
            for one in bind.parse_statements(text)
        ]

    return session.run_with_timeout(compile_all)


def _plan_statement(session: Session, statement: Any) -> Any:
    match statement:
        case s.DataPlan():
            return replace(statement, plan=session.expand_views_and_optimize(statement.plan))
        case s.Copy() | CreateTableAs():
            return structs.replace(
                statement, plan=session.expand_views_and_optimize(statement.plan)
            )
        case s.Explain():
            inner = _plan_statement(session, statement.statement)
            return structs.replace(statement, statement=inner)
        case _:
            return statement
