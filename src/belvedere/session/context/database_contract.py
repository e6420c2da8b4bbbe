"""The contract between sessions and the database, which satisfies it without knowing sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.edit import CatalogEdit
from belvedere.config import Config
from belvedere.errors import Error
from belvedere.txn.contracts import (
    SNAPSHOT,
    ChangeLog,
    Isolation,
    Participant,
    PublishedState,
    SingleRowCommits,
)
from belvedere.txn.engine import Engine
from belvedere.txn.transaction.locks import RowLockTable
from belvedere.txn.transaction.sequences import Sequences
from belvedere.txn.transaction.transaction import Transaction
from belvedere.views.service import ViewService


class DatabaseContract(Protocol):
    """An open store, as sessions use it."""

    config: Config
    sequences: Sequences
    visibility: PublishedState
    locks: RowLockTable
    log: ChangeLog
    single_row_commits: SingleRowCommits | None

    @property
    def catalog(self) -> Catalog: ...

    @property
    def position(self) -> int: ...

    def begin(
        self, isolation: Isolation = SNAPSHOT, *, at_least: int = 0, wait_s: float = 30.0
    ) -> Transaction: ...

    def change_schema(self, change: Callable[[CatalogEdit], Any]) -> Any: ...

    def participants_for(
        self, catalog: Catalog, relations: frozenset[int]
    ) -> tuple[Participant, ...]: ...

    views: ViewService

    @property
    def engine(self) -> Engine: ...

    @property
    def row_atomic(self) -> bool: ...

    @property
    def housekeeping_failure(self) -> Error | None: ...

    def position_to_token(self, position: int) -> str: ...

    def token_to_position(self, text: str) -> int: ...
