"""Protocols of the shell's connection: in this process, or through the owner's socket."""

from __future__ import annotations

from typing import Protocol

from belvedere.catalog.catalog import Catalog
from belvedere.session.notices import Notices
from belvedere.session.result import Result
from belvedere.session.session import Session


class State(Protocol):
    """The state of a session's transaction."""

    @property
    def failed(self) -> bool: ...

    @property
    def open(self) -> object | None: ...


class SessionShown(Protocol):
    @property
    def catalog(self) -> Catalog: ...

    @property
    def transactions(self) -> State: ...


class Elsewhere(SessionShown, Protocol):
    """A session in the process that has the store open."""

    @property
    def notices(self) -> Notices: ...


class Answer(Protocol):
    @property
    def result(self) -> Result: ...


class Connected(Protocol):
    @property
    def session(self) -> Session | Elsewhere: ...

    def execute(self, sql: str) -> Answer: ...
