"""Which isolation levels a row-atomic store has."""

from __future__ import annotations

from belvedere.errors import Unsupported
from belvedere.txn.contracts import SERIALIZABLE, Isolation


def require_supported_isolation(isolation: Isolation) -> None:
    """SERIALIZABLE is refused by name until it is modelled; and so is what needs a range to stay as
    it was read."""
    if not isolation.validates_reads:
        return
    if isolation.name != SERIALIZABLE.name:
        raise Unsupported(
            "a statement that writes every row of a table on a row-atomic store",
            hint="make a new table, and copy the rows",
        )
    raise Unsupported(
        "serializable isolation is not supported on a row-atomic store",
        hint="use repeatable read",
        isolation=isolation.name,
    )
