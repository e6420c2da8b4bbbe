"""What a scan needs of a table's rows, for stores that can leave out the rest before they send it.

A condition is AND and OR of comparisons of a column with a value. It may be weaker than that of the
statement, which checks its own again; it must never leave out a row that the statement wants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from belvedere.txn.contracts import Reader
from belvedere.txn.transaction.transaction import Transaction

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class SlotComparison:
    """slot OPERATOR value, never NULL; `not null` as the operator has no value."""

    slot: int
    operator: str
    value: Any = None


@dataclass(frozen=True, slots=True)
class AllConditions:
    conditions: tuple[RowCondition, ...]


@dataclass(frozen=True, slots=True)
class AnyCondition:
    conditions: tuple[RowCondition, ...]


RowCondition = SlotComparison | AllConditions | AnyCondition


class ScanRequest(NamedTuple):
    """Rows of one table: the slots that are read, and the condition they have to meet."""

    relation: int
    slots: tuple[int, ...]
    condition: RowCondition | None = None


class NarrowReader(Reader, Protocol):
    """A reader for the scans of one request: what was not asked for is left out, as far as the
    store can do that. Slots that were not asked for may have any value."""

    def scan_columns(self, start: bytes, end: bytes) -> Iterator[pa.RecordBatch]:
        """Batches of rows in key order: columns c0, c1.. for the slots of the request; without
        slots a column `nothing`, so that rows can be counted."""


class NarrowingReader:
    """A reader that can make a `NarrowReader`."""

    __slots__ = ()

    def narrow_scans(self, request: ScanRequest) -> NarrowReader | None:
        """None: this relation is always read whole."""
        return None


def narrow_scans(reader: Reader, request: ScanRequest) -> NarrowReader | None:
    """A reader for this request alone; None where all of each row is read, by the reader itself: on
    a store without cells, and in a transaction that has changes of its own or validates its
    reads."""
    under = reader.plain_reader if isinstance(reader, Transaction) else reader
    return under.narrow_scans(request) if isinstance(under, NarrowingReader) else None
