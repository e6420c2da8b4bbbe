"""Protocols of the shell's connection: in this process, or through the owner's socket."""

from __future__ import annotations

from typing import Protocol

from belvedere.catalog.catalog import Catalog
from belvedere.session.context.notices import Notices
from belvedere.session.context.result import Result
from belvedere.session.session import Session


class TransactionStatus(Protocol):
    """The state of a session's transaction."""

    @property
    def failed(self) -> bool: ...

    @property
    def open(self) -> object | None: ...


class ShellSession(Protocol):
    @property
    def catalog(self) -> Catalog: ...

    @property
    def transactions(self) -> TransactionStatus: ...


class RemoteSession(ShellSession, Protocol):
    """A session in the process that has the store open."""

    @property
    def notices(self) -> Notices: ...


class ShellCursor(Protocol):
    @property
    def result(self) -> Result: ...


class ShellConnection(Protocol):
    @property
    def session(self) -> Session | RemoteSession: ...

    def execute(self, sql: str) -> ShellCursor: ...
