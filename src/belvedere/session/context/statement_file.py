"""The statement statistics of a store, kept in a file from one opening to the next.

The file has the statements that took most time, a bounded number of them. It is written when the
store is closed and now and then in between, whole or not at all; a crash loses the counts since
then, and nothing else. A file that cannot be read is left alone and replaced at the next writing.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

import msgspec

from belvedere.kv.files import replace_file
from belvedere.session.context.statement_statistics import StatementRecord, StatementStatistics

FILE = "statements"
STORED_MAX = 1_000
SAVE_EVERY_S = 60.0
_LOG = logging.getLogger("belvedere.store")


class StatementFile:
    """Loads the statistics of a store, and saves them."""

    def __init__(self, directory: Path, statistics: StatementStatistics) -> None:
        self._path = directory / FILE
        self._statistics = statistics
        self._saved_at = time.monotonic()
        statistics.when_added = self._save_if_due

    def load(self) -> None:
        try:
            found = msgspec.msgpack.decode(self._path.read_bytes(), type=list[StatementRecord])
        except FileNotFoundError:
            return
        except (OSError, msgspec.DecodeError):
            return  # counts of statements are no reason to refuse a store
        self._statistics.add_records(found)

    def save(self) -> None:
        records = sorted(self._statistics.list_records(), key=lambda one: -one.total_us)
        data = msgspec.msgpack.encode(records[:STORED_MAX])
        try:
            replace_file(self._path, data)
        except OSError as error:  # counts of statements are no reason to fail
            _LOG.warning("statistics of statements are not kept: %s", error)
        self._saved_at = time.monotonic()

    def _save_if_due(self) -> None:
        if time.monotonic() - self._saved_at > SAVE_EVERY_S:
            self.save()
