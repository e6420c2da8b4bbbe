"""Linear view state read as rows: the payload's columns by slot, followed by the amounts.

The value format is `codec.accumulator`'s. With this layout a scan treats the state of a view like
the rows of a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from belvedere.codec import accumulator
from belvedere.codec.compile import compile_function
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
        """Only these slots, in this order. Straight-line code for states as they mostly are, with
        amounts of eight bytes; `decode` has the others, and says what is wrong with bytes that are
        no state."""
        columns = [index for index in indexes if index < self._columns]
        values = {index: f"v{place}" for place, index in enumerate(columns)}
        values |= {self._columns + place: f"a{place}" for place in range(self.amounts)}
        decode = self.decode

        def project_any(value: bytes) -> Row:
            row = decode(value)
            return tuple([row[index] for index in indexes])

        form = accumulator.short_form(self.amounts)
        given = "".join(f", a{place}" for place in range(self.amounts))
        plain = f"form or count != {self.amounts} or len(value) != {form.size} + length"
        body = [
            f"if len(value) < {form.size}: return project_any(value)",
            f"form, count, length{given} = unpack(value)",
            f"if {plain}: return project_any(value)",
        ]
        if columns:
            names = "".join(f"{values[index]}, " for index in columns)
            body.append(f"{names}= project(value[{form.size}:])")
        body.append(f"return ({''.join(f'{values[index]}, ' for index in indexes)})")
        constants = {
            "unpack": form.unpack_from,
            "project": self._payload.projector(tuple(columns)),
            "project_any": project_any,
        }
        made: Callable[[bytes], Row] = compile_function("project_state", "value", body, constants)
        return made
