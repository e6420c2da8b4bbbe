"""The context of a verb: the served store, the peer that sent the request, its arguments."""

from __future__ import annotations

import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from belvedere.database import Database
from belvedere.errors import InvalidInput
from belvedere.interfaces.verbs.leases import LeaseTable
from belvedere.session.context.shared_state import SharedState
from belvedere.session.materialized.change_stream import Subscription
from belvedere.session.query_stream import QueryStream
from belvedere.session.session import Session
from belvedere.views.backfill.contracts import JobBackfill

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServedStore:
    """An open store and the state that all its peers share."""

    database: Database
    shared: SharedState
    directory: Path
    leases: LeaseTable
    ended_jobs: deque[str]
    """Jobs whose rows are not wanted any more: see `verbs.staging`."""
    backfill: JobBackfill
    closing: threading.Event = field(default_factory=threading.Event)
    sessions: dict[str, Session] = field(default_factory=dict)
    """Open sessions of peers by their keys, which only the peer of each knows."""


class Stream(NamedTuple):
    """An answer in Arrow batches. `value` is sent before them."""

    schema: pa.Schema
    batches: Iterable[pa.RecordBatch]
    value: Any = None


class Upload(NamedTuple):
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


@dataclass(slots=True)
class Peer:
    """One connection. Its session and open transaction end when it disconnects."""

    served_store: ServedStore
    _session: Session | None = field(default=None, init=False)
    _key: str | None = field(default=None, init=False)
    answers_request: bool = field(default=False, init=False)
    subscription: Subscription | None = field(default=None, init=False)
    streams: dict[int, QueryStream] = field(default_factory=dict, init=False)
    _streams_opened: int = field(default=0, init=False)
    _notices_taken: int = field(default=0, init=False)

    @property
    def database(self) -> Database:
        return self.served_store.database

    @property
    def session(self) -> Session:
        if self._session is None:
            self._session = Session(self.served_store.shared)
        return self._session

    def open_session(self, *, autocommit: bool, read_only: bool) -> str:
        """Open the session of this connection; returns the key by which it can be canceled."""
        if self._session is not None:
            raise InvalidInput("connection has a session already", sqlstate="08P01")
        self._session = Session(
            self.served_store.shared, autocommit=autocommit, read_only=read_only
        )
        self._key = secrets.token_hex(16)
        self.served_store.sessions[self._key] = self._session
        return self._key

    def add_stream(self, stream: QueryStream) -> int:
        """Keep an open stream; returns the number by which the peer fetches from it."""
        self._streams_opened += 1
        self.streams[self._streams_opened] = stream
        return self._streams_opened

    @property
    def has_session(self) -> bool:
        return self._session is not None

    def new_notices(self) -> list[str]:
        """The notices of its session since the last call."""
        notices = self.session.services.notices
        new, self._notices_taken = (
            notices.list_after_count(self._notices_taken),
            notices.total_count,
        )
        return new

    def cancel(self) -> None:
        """Stop its running statement; from any thread."""
        session = self._session
        if session is not None:
            session.cancel()

    def close(self) -> None:
        if self._key is not None:
            self.served_store.sessions.pop(self._key, None)
        if self._session is not None:
            self._session.close()


class Arguments:
    """The arguments of a request. A missing argument or a wrong type is an error that names it."""

    def __init__(self, given: dict[str, Any], upload: Upload | None = None) -> None:
        self._given = given
        self._upload = upload

    def get_text(self, name: str) -> str:
        return self._get_typed(str, name)

    def get_number(self, name: str) -> int:
        return self._get_typed(int, name)

    def get_bytes(self, name: str) -> bytes:
        return self._get_typed(bytes, name)

    def get_list(self, name: str) -> list[Any]:
        return self._get_typed(list, name)

    def has(self, name: str) -> bool:
        return self._given.get(name) is not None

    def optional_text(self, name: str) -> str | None:
        return self.get_text(name) if self.has(name) else None

    def optional_number(self, name: str) -> int | None:
        return self.get_number(name) if self.has(name) else None

    def get_texts(self, name: str) -> list[str] | None:
        """A list of texts, or None when it is not given."""
        if not self.has(name):
            return None
        found = self.get_list(name)
        if not all(isinstance(item, str) for item in found):
            raise _missing_argument(name, "list of texts")
        return found

    @property
    def upload(self) -> Upload:
        if self._upload is None:
            raise InvalidInput("request lacks its rows", sqlstate="08P01")
        return self._upload

    def _get_typed(self, kind: type[T], name: str) -> T:
        value = self._given.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise _missing_argument(name, kind.__name__)
        return value


def _missing_argument(name: str, kind: str) -> InvalidInput:
    return InvalidInput("request lacks an argument", sqlstate="08P01", name=name, kind=kind)


Verb = Callable[[Peer, Arguments], Any]
