"""The transaction a session is in: begun, failed, with savepoints, ended.

    none ----begin----> open ----error----> failed ----rollback----> none
      ^                  |  ^                  |
      +--commit/rollback-+  +--rollback to-----+

A failed transaction takes nothing but ROLLBACK and ROLLBACK TO (25P02); COMMIT of it rolls back, as
in PostgreSQL.
"""

from __future__ import annotations

from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.edit import Edit
from belvedere.catalog.model import Index, State
from belvedere.errors import InvalidInput, Unsupported
from belvedere.session.settings import Settings
from belvedere.session.shared import Host
from belvedere.txn.border import Isolation, Reader
from belvedere.txn.schema import apply_edit
from belvedere.txn.transaction import Savepoint, Transaction


class Named(NamedTuple):
    name: str
    savepoint: Savepoint
    catalog: Catalog


class TransactionState:
    __slots__ = (
        "_before",
        "_host",
        "_savepoints",
        "_settings",
        "caught_up",
        "deferred",
        "deferred_names",
        "explicit",
        "failed",
        "floor",
        "open",
        "point",
        "position",
        "read_only",
        "shown",
    )

    def __init__(self, host: Host, settings: Settings) -> None:
        self._host = host
        self._settings = settings
        self.open: Transaction | None = None
        self.explicit = False
        self.failed = False
        self.read_only = False
        self.deferred: bool | None = None  # SET CONSTRAINTS ALL; None: as each constraint says
        self.deferred_names: dict[str, bool] = {}  # SET CONSTRAINTS of single names, since then
        self.floor = 0  # the next snapshot is at least this position
        self.position = 0  # of the last commit, or of what was read last
        self.point: Reader | None = None  # of the last read without a transaction
        self.caught_up = 0  # what a reader with a bound was shown of deferred views, at most
        self.shown: int | None = None  # what the open transaction read is only as new as this
        self._before = 0  # the position before the open transaction
        self._savepoints: list[Named] = []

    def begin(self, *, explicit: bool, isolation: Isolation | None = None) -> Transaction:
        level = isolation or self._settings.get("default_transaction_isolation")
        self.open = self._host.begin(level, at_least=self.floor)
        self._before, self.shown = self.seen, None
        self.position = max(self._before, self.open.position)
        self.explicit = explicit
        self.failed = False
        self.read_only = self._settings.get("default_transaction_read_only")
        return self.open

    @property
    def seen(self) -> int:
        """What the session has written or read, at most: it never goes back behind that."""
        return self.position if self.point is None else max(self.position, self.point.position)

    @property
    def seen_before(self) -> int:
        """The same, before the open transaction."""
        return self.seen if self.open is None else self._before

    def did(self, position: int) -> None:
        """The session has changed something outside of a transaction, up to this position."""
        if self.open is None:
            self.position = max(self.position, position)

    @property
    def defaults_read_only(self) -> bool:
        return bool(self._settings.get("default_transaction_read_only"))

    def require_usable(self) -> None:
        if self.failed:
            raise InvalidInput(
                "current transaction is aborted",
                sqlstate="25P02",
                hint="end it with ROLLBACK, or go back with ROLLBACK TO",
            )

    def commit(self) -> bool:
        """False when there was nothing but a failed transaction, which is rolled back."""
        transaction, failed = self.open, self.failed
        if transaction is None:
            return True
        if failed:
            self.rollback()
            return False
        self._forget()
        try:
            shown = None if transaction.changes else self.shown
            reached = transaction.commit().position
            self.position = max(self.position, reached) if shown is None else shown
            self.floor = max(self.floor, self.position)
        except BaseException:
            self._settings.ended(committed=False)
            raise
        self._settings.ended(committed=True)
        return True

    def rollback(self) -> None:
        transaction = self.open
        self._forget()
        if transaction is not None:
            transaction.rollback()
            self._settings.ended(committed=False)

    def _forget(self) -> None:
        self.open, self.explicit, self.failed, self.deferred = None, False, False, None
        self.deferred_names = {}
        self._savepoints.clear()

    def defers(self, name: str, initially: bool) -> bool:
        """Whether a deferrable constraint waits for the commit now."""
        known = self.deferred_names.get(name, self.deferred)
        return initially if known is None else known

    # -- savepoints ---------------------------------------------------------------------------

    def savepoint(self, name: str) -> None:
        transaction = self._required("SAVEPOINT")
        self._savepoints.append(Named(name, transaction.savepoint(), transaction.catalog))

    def rollback_to(self, name: str) -> None:
        transaction = self._required("ROLLBACK TO SAVEPOINT")
        at = self._find(name)
        transaction.rollback_to(self._savepoints[at].savepoint)
        self.show_catalog(self._savepoints[at].catalog)
        del self._savepoints[at + 1 :]
        self.failed = False

    def release(self, name: str) -> None:
        self._required("RELEASE SAVEPOINT")
        self.require_usable()
        del self._savepoints[self._find(name) :]

    def _required(self, what: str) -> Transaction:
        if self.open is None:
            raise InvalidInput(f"{what} can only be used in transaction blocks", sqlstate="25P01")
        return self.open

    def _find(self, name: str) -> int:
        for at in range(len(self._savepoints) - 1, -1, -1):
            if self._savepoints[at].name == name:
                return at
        raise InvalidInput("savepoint does not exist", sqlstate="3B001", name=name)

    # -- the catalog inside a transaction -----------------------------------------------------

    def apply(self, edit: Edit) -> None:
        """Make a catalog change part of the open transaction, which sees it from now on."""
        assert self.open is not None
        for item in edit.objects().values():
            if isinstance(item, Index) and item.state is State.BUILDING:
                if item.table in self._host.catalog.objects:
                    raise Unsupported(
                        "filling an index inside of a transaction that has changes",
                        hint="commit first",
                    )
                # Every row of the table is a change of this transaction, so the commit fills it.
                edit.set_state(item.id, State.READY)
        apply_edit(self.open, edit)
        self.show_catalog(edit.before.replaced(edit.objects()))

    def show_catalog(self, catalog: Catalog) -> None:
        assert self.open is not None
        self.open.show_catalog(catalog)
