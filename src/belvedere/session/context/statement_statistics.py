"""Statement statistics: how often each statement ran, for how long, with how many rows.

Statements that differ only in their constants share a record (sql.parse.normalize)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from belvedere.sql.parse.normalize import normalize_statement

STATEMENTS_MAX = 5_000
STATEMENT_CHARACTERS_MAX = 4_000
"""Only the beginning of a longer statement is stored: those that share it share a record."""


@dataclass(slots=True)
class StatementRecord:
    """`before`: calls and total_us when a view was created, by the view's id."""

    text: str
    calls: int = 0
    rows: int = 0
    total_us: float = 0.0
    max_us: float = 0.0
    errors: int = 0
    tier: str = ""
    before: dict[int, tuple[int, float]] = field(default_factory=dict)


class StatementStatistics:
    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._records: dict[str, StatementRecord] = {}
        self.when_added: Callable[[], None] | None = None
        """Called when a new statement is recorded, which is rare once an application runs."""

    def get_or_add_record(self, text: str) -> StatementRecord:
        """The record of a statement, for the caller to update; evicts the oldest record when there
        are too many."""
        text = normalize_statement(text)[:STATEMENT_CHARACTERS_MAX]
        with self._mutex:
            found = self._records.get(text)
            if found is None:
                if len(self._records) >= STATEMENTS_MAX:
                    self._records.pop(next(iter(self._records)))
                found = self._records[text] = StatementRecord(text)
                added = self.when_added
            else:
                added = None
        if added is not None:
            added()
        return found

    def add_records(self, records: Iterable[StatementRecord]) -> None:
        """Take over records of an earlier time."""
        with self._mutex:
            for record in records:
                if len(self._records) < STATEMENTS_MAX:
                    self._records.setdefault(record.text, record)

    def note_created_view(self, view: int, existing: Collection[int]) -> None:
        """Remember how often each statement has run before the view was there; forget that of views
        that are gone."""
        for record in self.list_records():
            before = {one: counts for one, counts in record.before.items() if one in existing}
            if record.calls:
                before[view] = (record.calls, record.total_us)
            record.before = before

    def list_records(self) -> list[StatementRecord]:
        with self._mutex:
            return list(self._records.values())
