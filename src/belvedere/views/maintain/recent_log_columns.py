"""The log range that was last decoded as columns, for views that follow the log by themselves and
are refreshed one after the other: the second takes in what the first has decoded.

What is written in a log range never changes, so that what is kept is right for as long as the store
is open. Threads that decode at once each keep theirs; the last one stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from belvedere.views.maintain.log_window import RecordLookahead
    from belvedere.views.maintain.logged_columns import LoggedColumns

KEPT_BYTES_MAX = 64 * 2**20
"""Columns of more bytes are not kept."""


class _KeptRange(NamedTuple):
    start: int
    through: int
    logged: LoggedColumns


class RecentLogColumns:
    """Decodes log ranges, and keeps the last one."""

    def __init__(self) -> None:
        self._kept: _KeptRange | None = None

    def count_changes_if_kept(self, start: int, through: int) -> int | None:
        """How many changes there are at start < position <= through; None where they have to be
        counted."""
        kept = self._kept
        if kept is None or kept[:2] != (start, through):
            return None
        return kept.logged.count_changes(kept.logged.relations)

    def try_decode_range(
        self, records: RecordLookahead, start: int, through: int
    ) -> LoggedColumns | None:
        """The changes at start < position <= through, which are among the records; None where
        these are more than is read ahead."""
        from belvedere.views.maintain.logged_columns import LoggedColumns  # heavy

        kept = self._kept
        if kept is not None and kept[:2] == (start, through):
            return kept.logged
        if not records.try_buffer_until(through):
            return None
        logged = LoggedColumns(records.read_batches_until(through), start, through)
        small = logged.size_bytes <= KEPT_BYTES_MAX
        self._kept = _KeptRange(start, through, logged) if small else None
        return logged
