"""LISTEN, UNLISTEN and NOTIFY."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from belvedere.session.context.result import Result
from belvedere.sql import statements as s

if TYPE_CHECKING:
    from belvedere.session.session import Session


def run_listen(session: Session, statement: s.Listen, _: Sequence[Any]) -> Result:
    session.notifications.listen(statement.channel)
    publish_unless_in_transaction(session)
    return Result("LISTEN")


def run_unlisten(session: Session, statement: s.Unlisten, _: Sequence[Any]) -> Result:
    session.notifications.unlisten(statement.channel)
    publish_unless_in_transaction(session)
    return Result("UNLISTEN")


def run_notify(session: Session, statement: s.Notify, _: Sequence[Any]) -> Result:
    session.notifications.add_notification(statement.channel, statement.payload)
    publish_unless_in_transaction(session)
    return Result("NOTIFY")


def publish_unless_in_transaction(session: Session) -> None:
    """Deliver at once what no open transaction will commit."""
    session.begin_unless_autocommit()
    if session.transactions.open is None:
        session.notifications.require_queue_room()
        session.notifications.publish_changes()
