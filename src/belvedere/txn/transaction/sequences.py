"""Sequences and hidden row ids: numbers from logged ranges.

A range is reserved by a small transaction of its own, so that a number once handed out is never
handed out again, also after a crash; what is left of a range then is a gap, which is allowed.
Inside a range a number costs no more than an addition. A clean close gives back what is left, so
that sequences go on where they were.

Stored under relation SEQUENCE: key = id of the sequence (of the table, for row ids), value = the
last number reserved.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from belvedere.catalog.model import SEQUENCE_RELATION, Sequence
from belvedere.codec.keys import KeyCodec, KeyColumn
from belvedere.codec.keyspace import row_prefix
from belvedere.codec.rows import RowLayout, Slot
from belvedere.errors import InvalidInput, Retry, Unavailable
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import BIGINT

T = TypeVar("T")
Run = Callable[[Callable[[Transaction], T]], T]

_KEY = KeyCodec((KeyColumn(BIGINT),), row_prefix(SEQUENCE_RELATION))
_ROW = RowLayout((Slot(BIGINT, None),))
ROW_IDS_RESERVED = 1024


class Sequences:
    def __init__(self, run: Callable[[Callable[[Transaction], range]], range]) -> None:
        """`run` runs a function in a transaction of its own, again when it loses a race."""
        self._run = run
        self._mutex = threading.Lock()
        self._left: dict[int, range] = {}
        self._last: dict[int, int] = {}

    def next_value(self, sequence: Sequence) -> int:
        """The next number of a sequence; 2200H when it has run out."""
        with self._mutex:
            return self._take_number(sequence.id, lambda: self._reserve_range(sequence))

    def next_row_id(self, table: int) -> int:
        with self._mutex:
            return self._take_number(table, lambda: self._reserve_row_ids(table))

    def last_value(self, sequence: Sequence) -> int | None:
        """The number this process handed out last."""
        return self._last.get(sequence.id)

    def stored_value(self, sequence: Sequence) -> int | None:
        """The number handed out last, or after a restart the last one reserved; None before the
        first."""
        if sequence.id in self._last:
            return self._last[sequence.id]
        found = self._run(lambda txn: _as_range(_read_last(txn, sequence.id)))
        return found[0] if found else None

    def restart_after(self, sequence: Sequence, value: int) -> None:
        """As `set_value`, but `value` may lie one step outside of the bounds: to restart the
        sequence."""
        with self._mutex:
            self._left.pop(sequence.id, None)
            self._last.pop(sequence.id, None)
            self._run(lambda txn: _write_last(txn, sequence.id, value, range(0)))

    def set_value(self, sequence: Sequence, value: int) -> None:
        """Continue after `value`; numbers reserved before are discarded."""
        if not sequence.minimum <= value <= sequence.maximum:
            raise InvalidInput("value is out of the sequence's bounds", sqlstate="22003")
        with self._mutex:
            self._left.pop(sequence.id, None)
            self._run(lambda txn: _write_last(txn, sequence.id, value, range(0)))

    def discard_reserved(self) -> None:
        """Drop what was reserved: after the stored state was changed from outside."""
        with self._mutex:
            self._left.clear()

    def return_reserved(self) -> None:
        """Give back the numbers that were reserved and not handed out. Where the store cannot be
        written they are a gap, as after a crash."""
        with self._mutex:
            left, self._left = self._left, {}
            unused = {id_: numbers for id_, numbers in left.items() if numbers}
            with suppress(Unavailable, Retry):
                if unused:
                    self._run(lambda txn: _return_ranges(txn, unused))

    def _take_number(self, id_: int, reserve: Callable[[], range]) -> int:
        left = self._left.get(id_)
        if not left:
            left = reserve()
        self._left[id_] = left[1:]
        self._last[id_] = left[0]
        return left[0]

    def _reserve_range(self, sequence: Sequence) -> range:
        def reserve_range(txn: Transaction) -> range:
            step = sequence.increment
            last = _read_last(txn, sequence.id)
            first = sequence.start if last is None else last + step
            if not sequence.minimum <= first <= sequence.maximum:
                if not sequence.cycle:
                    raise InvalidInput(
                        "sequence has reached its limit", sqlstate="2200H", name=sequence.name
                    )
                first = sequence.minimum if step > 0 else sequence.maximum
            numbers = range(first, first + step * sequence.cache, step)
            numbers = range(
                first,
                min(numbers.stop, sequence.maximum + 1)
                if step > 0
                else max(numbers.stop, sequence.minimum - 1),
                step,
            )
            return _write_last(txn, sequence.id, numbers[-1], numbers)

        return self._run(reserve_range)

    def _reserve_row_ids(self, table: int) -> range:
        def reserve_range(txn: Transaction) -> range:
            first = (_read_last(txn, table) or 0) + 1
            numbers = range(first, first + ROW_IDS_RESERVED)
            return _write_last(txn, table, numbers[-1], numbers)

        return self._run(reserve_range)


def store_last(txn: Transaction, id_: int, last: int) -> None:
    """As if a new sequence had handed out all numbers up to `last`, if the transaction commits."""
    _write_last(txn, id_, last, range(0))


def _return_ranges(txn: Transaction, unused: dict[int, range]) -> range:
    """Only where nobody has reserved more since: another node may have."""
    for id_, numbers in unused.items():
        if _read_last(txn, id_) == numbers[-1]:
            _write_last(txn, id_, numbers[0] - numbers.step, range(0))
    return range(0)


def _as_range(value: int | None) -> range:
    return range(0) if value is None else range(value, value + 1)


def _read_last(txn: Transaction, id_: int) -> int | None:
    value = txn.get(_KEY.encode((id_,)))
    return None if value is None else int(_ROW.decode(value)[0])


def _write_last(txn: Transaction, id_: int, last: int, numbers: range) -> range:
    key = _KEY.encode((id_,))
    txn.write(key, txn.get(key), _ROW.encode((last,)))
    return numbers
