"""The context of a verb: the served store, the peer that sent the request, its arguments."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from belvedere.database import Database
from belvedere.errors import InvalidInput
from belvedere.interfaces.verbs.leases import Leases
from belvedere.session.session import Session
from belvedere.session.shared import Shared
from belvedere.views.external_backfill import ExternalBackfill

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Serving:
    """An open store and the state that all its peers share."""

    database: Database
    shared: Shared
    directory: Path
    leases: Leases
    ended_jobs: deque[str]
    """Jobs whose rows are not wanted any more: see `verbs.staging`."""
    backfill: ExternalBackfill


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

    serving: Serving
    _session: Session | None = field(default=None, init=False)
    _told: int = field(default=0, init=False)

    @property
    def database(self) -> Database:
        return self.serving.database

    @property
    def session(self) -> Session:
        if self._session is None:
            self._session = Session(self.serving.shared)
        return self._session

    def new_notices(self) -> list[str]:
        """The notices of its session since the last call."""
        notices = self.session.services.notices
        new, self._told = notices.since(self._told), notices.told
        return new

    def close(self) -> None:
        if self._session is not None:
            self._session.close()


class Arguments:
    """The arguments of a request. A missing argument or a wrong type is an error that names it."""

    def __init__(self, given: dict[str, Any], upload: Upload | None = None) -> None:
        self._given = given
        self._upload = upload

    def text(self, name: str) -> str:
        return self._of(str, name)

    def number(self, name: str) -> int:
        return self._of(int, name)

    def data(self, name: str) -> bytes:
        return self._of(bytes, name)

    def items(self, name: str) -> list[Any]:
        return self._of(list, name)

    def has(self, name: str) -> bool:
        return self._given.get(name) is not None

    def optional_text(self, name: str) -> str | None:
        return self.text(name) if self.has(name) else None

    def optional_number(self, name: str) -> int | None:
        return self.number(name) if self.has(name) else None

    def texts(self, name: str) -> list[str] | None:
        """A list of texts, or None when it is not given."""
        if not self.has(name):
            return None
        found = self.items(name)
        if not all(isinstance(item, str) for item in found):
            raise _wrong(name, "list of texts")
        return found

    @property
    def upload(self) -> Upload:
        if self._upload is None:
            raise InvalidInput("request lacks its rows", sqlstate="08P01")
        return self._upload

    def _of(self, kind: type[T], name: str) -> T:
        value = self._given.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise _wrong(name, kind.__name__)
        return value


def _wrong(name: str, kind: str) -> InvalidInput:
    return InvalidInput("request lacks an argument", sqlstate="08P01", name=name, kind=kind)


Verb = Callable[[Peer, Arguments], Any]
