"""Linear view state read as rows: the payload's columns by slot, followed by the amounts.

The value format is `codec.accumulator`'s. With this layout a scan treats the state of a view like
the rows of a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from belvedere.codec import accumulator
from belvedere.codec.rows import RowLayout
from belvedere.types import Row


class StateLayout:
    """Slots 0 .. n-1 are the payload's columns, slots n and up the amounts."""

    def __init__(self, payload: RowLayout, amounts: int) -> None:
        self._payload = payload
        self._columns = len(payload.slots)
        self.amounts = amounts

    def decode(self, value: bytes) -> Row:
        payload, amounts = accumulator.decode(value)
        row: Row = self._payload.decode(payload)
        return row + amounts

    def getter(self, index: int) -> Callable[[bytes], Any]:
        return lambda value: self.decode(value)[index]

    def projector(self, indexes: tuple[int, ...]) -> Callable[[bytes], Row]:
        if max(indexes, default=0) < self._columns:
            project = self._payload.projector(indexes)
            return lambda value: project(accumulator.decode(value)[0])
        decode = self.decode

        def project_all(value: bytes) -> Row:
            row = decode(value)
            return tuple([row[index] for index in indexes])

        return project_all
