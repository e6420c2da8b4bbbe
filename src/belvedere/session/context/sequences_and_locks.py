"""Services of a session for running plans: sequences, row ids, system tables, row locks."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Sequence
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.errors import InvalidInput, Retry, Unavailable, Unsupported
from belvedere.session.context.database_contract import DatabaseContract
from belvedere.session.context.notices import Notices
from belvedere.txn.contracts import LockRequest
from belvedere.txn.transaction.root_keys import root_finder
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row

VirtualRows = Callable[[str, str], Iterable[Row]]


class SessionServices:
    """One per session; holds the values of `currval` and `lastval`, and the notices."""

    def __init__(
        self,
        host: DatabaseContract,
        catalog: Callable[[], Catalog],
        virtual_rows: VirtualRows,
        require_writable: Callable[[str], None],
    ) -> None:
        self._host = host
        self._catalog = catalog
        self._require_writable = require_writable
        self._last: dict[int, int] = {}
        self._latest: int | None = None
        self.virtual_rows = virtual_rows
        self.row_id = host.sequences.next_row_id
        self.transaction: Transaction | None = None
        self.lock_wait_ms: int | None = None
        self.notices = Notices()

    def next_value(self, sequence: int) -> int:
        self._require_writable("call nextval")
        value = self._host.sequences.next_value(self._require_sequence(sequence))
        self._last[sequence] = self._latest = value
        return value

    def current_value(self, sequence: int) -> int:
        if sequence not in self._last:
            raise InvalidInput("currval is not yet defined in this session", sqlstate="55000")
        return self._last[sequence]

    def last_value(self) -> int:
        if self._latest is None:
            raise InvalidInput("lastval is not yet defined in this session", sqlstate="55000")
        return self._latest

    def forget_sequence_values(self) -> None:
        self._last.clear()
        self._latest = None

    def set_value(self, sequence: int, value: int, called: bool) -> int:
        self._require_writable("call setval")
        found = self._require_sequence(sequence)
        if not found.minimum <= value <= found.maximum:
            raise InvalidInput(
                "value is out of the sequence's bounds", sqlstate="22003", name=found.name
            )
        self._host.sequences.restart_after(found, value if called else value - found.increment)
        if called:
            self._last[sequence] = value
        return value

    def _require_sequence(self, id_: int) -> Sequence:
        found = self._catalog().get(id_)
        if not isinstance(found, Sequence):
            raise InvalidInput("sequence does not exist", sqlstate="42P01", id=id_)
        return found

    def lock_rows(self, relation: int, keys: list[Row], strength: str, wait: str) -> list[bool]:
        """FOR UPDATE and the like lock the root of each row, as a write of it would. `wait` is
        '', 'nowait' (55P03 for a row that is locked) or 'skip locked' (False for it). Retry when
        another transaction has changed the row since the snapshot."""
        self._require_writable("lock rows")
        transaction = self.transaction
        if transaction is None:
            raise Unsupported("row locks outside of a transaction")
        table = compiled_table(transaction.catalog, relation)
        find = root_finder(transaction.catalog, relation)
        held = []
        for key in keys:
            encoded = table.key.encode(key)
            value = transaction.get(encoded)
            if value is None:
                held.append(False)
                continue
            if wait and not transaction.isolation.snapshot_per_statement:
                transaction.require_unchanged(encoded)  # by the transaction that has locked it
            root = encoded
            if find is not None:
                root = find(encoded, table.decode(value), transaction)
            held.append(_try_lock_row(transaction, LockRequest("root", root), wait))
            if held[-1]:
                transaction.require_unchanged(encoded)
        return held


def _try_lock_row(transaction: Transaction, request: LockRequest, wait: str) -> bool:
    try:
        transaction.acquire_lock(request, 0 if wait else None)
    except (Unavailable, Retry) as error:
        if wait != "skip locked" or error.sqlstate not in ("55P03", "40P01"):
            raise
        return False
    return True
