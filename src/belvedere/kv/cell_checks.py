"""Checks of requests before a row-atomic store sees them, the same for every engine."""

from __future__ import annotations

from belvedere.errors import InvalidInput
from belvedere.kv.cell import CELL_BYTES_MAX, TIMESTAMP_MAX, Change, Put


def check_changes(changes: tuple[Change, ...]) -> None:
    """Refuse what HBase would refuse, or take for something else than was meant."""
    for change in changes:
        if not 0 <= change.timestamp < TIMESTAMP_MAX:
            raise InvalidInput("timestamp out of range", found=change.timestamp)
        if isinstance(change, Put):
            if not change.value:
                raise InvalidInput("a cell value must not be empty", column=change.column)
            if len(change.value) > CELL_BYTES_MAX:
                raise InvalidInput("cell value too large", found=len(change.value))


def check_expected(expected: bytes | None) -> None:
    if expected is not None and not expected:
        raise InvalidInput("an empty value cannot be compared with", hint="None means absent")
