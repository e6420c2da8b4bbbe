"""The rows that participants derive from the changes of a commit, until they are written."""

from __future__ import annotations

from belvedere.codec import accumulator
from belvedere.kv.batch import Write
from belvedere.txn.contracts import Reader, Rows


class DerivedRows:
    """The Writer of a commit: derived rows, later ones winning, sums added to what is stored.
    `shared_results` holds intermediate results that participants share."""

    __slots__ = ("_reader", "rows", "shared_results")

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.rows: Rows = {}
        self.shared_results: dict[object, object] = {}

    def put(self, key: bytes, value: bytes) -> None:
        self.rows[key] = value

    def delete(self, key: bytes) -> None:
        self.rows[key] = None

    def add(self, key: bytes, payload: bytes, amounts: tuple[int, ...]) -> None:
        rows = self.rows
        stored = rows[key] if key in rows else self._reader.get(key)
        rows[key] = accumulator.add(stored, payload, amounts)

    def writes(self) -> list[Write]:
        return list(self.rows.items())
