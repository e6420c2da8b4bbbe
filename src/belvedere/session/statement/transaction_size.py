"""How large the changes of one transaction of many statements may become in memory.

One statement reserves what it changes (`execution.memory_limit`); a transaction of small ones has
no such sum. It is measured when its writes have grown by a share, so that a statement compares two
numbers, and refused before the process is out of memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from belvedere.errors import Unavailable
from belvedere.execution import memory_limit
from belvedere.txn.contracts import TransactionSavepoint
from belvedere.txn.transaction.transaction import Transaction

if TYPE_CHECKING:
    from belvedere.session.session import Session


def require_room_for_changes(
    session: Session, transaction: Transaction, savepoint: TransactionSavepoint
) -> None:
    """Called when a savepoint has reached `measure_size_at` writes. 53200: the changes of the
    transaction take more memory than it may use."""
    state, writes = session.transactions, savepoint.journal
    size = sum(
        memory_limit.CHANGE_BYTES + memory_limit.ROW_COPIES * (len(old or b"") + len(new or b""))
        for _, old, new, _ in transaction.changes
    )
    limit = max(session.shared.memory_limit_bytes, memory_limit.CHANGES_BYTES_MAX)
    if size > limit:
        state.fail()
        raise Unavailable(
            "transaction is too large",
            sqlstate="53200",
            hint="change fewer rows in one transaction",
            size_mb=-(-size // 2**20),
            size_mb_max=limit // 2**20,
        )
    growth = min(2.0, limit / size) if size else 2.0
    state.measure_size_at = max(int(writes * growth), writes + state.MEASURED_WRITES_MIN // 10)
