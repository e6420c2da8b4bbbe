"""What sessions are doing, for those who watch: pg_stat_activity, pg_locks, pg_stat_database.

Statements on a fast path, about one row or one page of rows, are not noted: to note them would take
a part of their time.
"""

from __future__ import annotations

import time
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from belvedere.session.session import Session


class SessionActivity:
    """`address` and `port` are those of a client on another machine, or of this one by TCP. Times
    are in seconds since 1970."""

    __slots__ = ("address", "port", "session_start", "statement_start", "text")

    def __init__(self) -> None:
        self.session_start = time.time()
        self.statement_start: float | None = None
        self.text = ""
        self.address: str | None = None
        self.port: int | None = None

    def note_statement(self, text: str) -> None:
        self.text = text
        self.statement_start = time.time()


class OpenSessions:
    """The sessions of an open store. One that nobody closes is forgotten when it is gone."""

    def __init__(self) -> None:
        self._known: dict[int, weakref.ref[Session]] = {}

    def add_session(self, session: Session) -> None:
        key = id(session)
        self._known[key] = weakref.ref(session, lambda _: self._known.pop(key, None))

    def remove_session(self, session: Session) -> None:
        self._known.pop(id(session), None)

    def list_sessions(self) -> list[Session]:
        found = [known() for known in self._known.copy().values()]
        return [session for session in found if session is not None]
