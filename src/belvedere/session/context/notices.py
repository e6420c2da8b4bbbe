"""Notices: messages of a session to its user other than results and errors, as in PostgreSQL.

A session stores the newest ones for its door: `con.notices` shows them, the shell prints them after
each statement. `SET client_min_messages = 'warning'` suppresses them.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from belvedere.catalog.catalog import Catalog
from belvedere.sql import definitions as d

if TYPE_CHECKING:
    from belvedere.session.session import Session

NOTICES_MAX = 50
_SILENT_LEVELS = ("warning", "error")
_CREATE_STATEMENTS = (
    d.CreateTable | d.CreateTableAs | d.CreateIndex | d.CreateSequence | d.CreateMaterializedView
)


def add_notice_unless_silenced(session: Session, text: str) -> None:
    """Add a notice, unless `client_min_messages` suppresses notices."""
    if session.settings.get("client_min_messages").lower() not in _SILENT_LEVELS:
        session.services.notices.add(text)


class Notices:
    """The newest notices of a session, and the count of all it ever had."""

    def __init__(self) -> None:
        self.newest: deque[str] = deque(maxlen=NOTICES_MAX)
        self.total_count = 0

    def add(self, text: str) -> None:
        self.newest.append(text)
        self.total_count += 1

    def list_after_count(self, told: int) -> list[str]:
        """The notices after the first `total_count` ones, as far as they are still stored."""
        new = self.total_count - told
        return list(self.newest)[-new:] if new else []


def build_cascade_notices(before: Catalog, after: Catalog, statement: d.Drop) -> list[str]:
    """A notice for each view that CASCADE dropped."""
    named = {name.name for name in statement.names}
    left = {view.id for view in after.views}
    gone = [view.name for view in before.views if view.id not in left and not view.part]
    return [f'drop cascades to materialized view "{name}"' for name in gone if name not in named]


def build_skip_notices(catalog: Catalog, statement: Any) -> list[str]:
    """A notice for each object that IF NOT EXISTS or IF EXISTS skips."""
    match statement:
        case d.Drop(if_exists=True) if statement.kind != "schema":
            missing = [
                name.name
                for name in statement.names
                if catalog.find_relation(name.name, name.schema or "public") is None
            ]
            return [f'{statement.kind} "{name}" does not exist, skipping' for name in missing]
        case d.Drop(if_exists=True):
            known = {schema.name for schema in catalog.schemas}
            gone = [name.name for name in statement.names if name.name not in known]
            return [f'schema "{name}" does not exist, skipping' for name in gone]
        case d.CreateSchema(if_not_exists=True):
            there = any(schema.name == statement.name for schema in catalog.schemas)
            return [f'schema "{statement.name}" already exists, skipping'] if there else []
        case _ if isinstance(statement, _CREATE_STATEMENTS) and statement.if_not_exists:
            name, schema = _find_created_name_and_schema(statement)
            there = name is not None and catalog.find_relation(name, schema) is not None
            return [f'relation "{name}" already exists, skipping'] if there else []
        case _:
            return []


def _find_created_name_and_schema(statement: Any) -> tuple[str | None, str]:
    name = statement.name
    if isinstance(statement, d.CreateIndex):
        return name, statement.table.schema or "public"
    return name.name, name.schema or "public"
