"""Reads of a change log, on either kind of store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from belvedere.codec.record import LogRecord
from belvedere.errors import InvalidInput
from belvedere.txn.contracts import ChangeLog, PublishedState

if TYPE_CHECKING:
    import pyarrow as pa


def require_in_log(after: int, through: int, first: int) -> None:
    """Refuse a range that begins before the first record of the log."""
    if after < through and after + 1 < first:
        raise InvalidInput(
            "position is no longer in the log",
            sqlstate="22023",
            hint="read the tables at the newest position instead",
            position_wanted=after + 1,
            first=first,
        )


def arrow_batches(batches: Iterable[list[bytes]]) -> Iterator[pa.RecordBatch]:
    """One row a change: position, time, transaction, relation, kind, key, old, new."""
    from belvedere.codec.arrow.records_to_arrow import records_to_arrow  # heavy

    return map(records_to_arrow, batches)


def follow_log(
    log: ChangeLog, published: PublishedState, after: int, timeout_s: float | None
) -> Iterator[LogRecord]:
    """The records after `after`, waiting when there is none yet; ends when no record arrived for
    `timeout_s`."""
    while log.last_position > after or published.wait_past(after, timeout_s):
        through = log.last_position
        yield from log.read(after, through)
        after = through
