"""The change log of a batch-atomic store: every commit, in one order, with old and new rows.

Records live in the store itself, under the key family `log`, and are written in the same batch as
the rows they describe. The log is read from a position, as records or as Arrow batches; a reader
that has caught up waits for more without polling.

Trimming never passes a consumer. A consumer is a name with the position it has applied (a stream, a
backup); one that would retain more than the cap allows is cut off and
listed in `lost_consumers`, so that its owner can rebuild.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

from belvedere import failpoints
from belvedere.codec import keyspace
from belvedere.codec.record import LogRecord, decode_record
from belvedere.errors import InvalidInput, Unavailable
from belvedere.kv.batch import BatchStore
from belvedere.txn.batch_atomic.log_chunks import assemble_batches, delete_log_range
from belvedere.txn.batch_atomic.visibility import Visibility
from belvedere.txn.history.log_reads import arrow_batches, follow_log, require_in_log

if TYPE_CHECKING:
    import pyarrow as pa

_CONSUMER = "consumer/"
_POSITION = struct.Struct(">Q")


class BatchChangeLog:
    additions = None
    """Records hold only changes of tables; views keep their own."""

    def __init__(self, store: BatchStore, visibility: Visibility, retention_max: int) -> None:
        self._store = store
        self._visibility = visibility
        self._retention_max = retention_max
        self._mutex = threading.Lock()
        self._pins: dict[int, int] = {}
        self._pin_number = 0
        self.consumers = dict(_load_consumers(store))
        first = self.first_position
        self.lost_consumers = {name for name, at in self.consumers.items() if at + 1 < first}

    @property
    def last_position(self) -> int:
        """The newest published position."""
        return self._visibility.published_snapshot.position

    @property
    def first_position(self) -> int:
        """The oldest position still in the log; last + 1 when the log is empty."""
        start, end = keyspace.log_range(0, keyspace.POSITION_MAX)
        for batch in self._store.scan(start, end, limit=1):
            key = keyspace.parse_key(batch[0][0])
            assert isinstance(key, keyspace.LogKey)
            return key.position
        return self.last_position + 1

    # -- reading ------------------------------------------------------------------------------

    def read_bytes(
        self, after: int, through: int | None = None, *, batch_rows: int = 1024
    ) -> Iterator[list[bytes]]:
        """Encoded records with after < position <= through (None: what is published now)."""
        through = self.last_position if through is None else min(through, self.last_position)
        start, end = keyspace.log_range(after, through)
        batches = self._store.scan_values(start, end, batch_rows=batch_rows)
        begun = list(islice(batches, 1))  # from here on the scan misses nothing that is trimmed
        self._require_available(after, through)
        return assemble_batches(self._store, chain(begun, batches))

    def read_written(self, after: int, through: int) -> Iterator[LogRecord]:
        """Like `read`, but also what is written and not published yet: inside the commit section
        only."""
        self._require_available(after, through)
        start, end = keyspace.log_range(after, through)
        for batch in assemble_batches(self._store, self._store.scan_values(start, end)):
            for data in batch:
                yield decode_record(data)

    def read(self, after: int, through: int | None = None) -> Iterator[LogRecord]:
        """The records themselves; each is verified."""
        for batch in self.read_bytes(after, through):
            for data in batch:
                yield decode_record(data)

    def read_arrow(
        self, after: int, through: int | None = None, *, batch_rows: int = 4096
    ) -> Iterator[pa.RecordBatch]:
        """One row a change: position, time, transaction, relation, kind, key, old, new."""
        return arrow_batches(self.read_bytes(after, through, batch_rows=batch_rows))

    def tail(self, after: int, timeout_s: float | None = None) -> Iterator[LogRecord]:
        """The records after `after`, waiting for one when there is none yet; ends when nothing came
        for `timeout_s`."""
        return follow_log(self, self._visibility, after, timeout_s)

    def _require_available(self, after: int, through: int) -> None:
        require_in_log(after, through, self.first_position)

    # -- consumers and trimming ---------------------------------------------------------------

    def advance_consumer(self, name: str, position: int) -> None:
        """Remember that consumer `name` has applied everything up to `position`."""
        with self._mutex:
            known = self.consumers.get(name, 0)
            if position < known:
                raise InvalidInput("a consumer cannot go back", name=name, at=known)
            place = keyspace.meta_key(_CONSUMER + name)
            self._store.write([(place, _POSITION.pack(position))], sync=True)
            self.consumers[name] = position

    def remove_consumer(self, name: str) -> None:
        with self._mutex:
            self._store.write([(keyspace.meta_key(_CONSUMER + name), None)], sync=True)
            self.consumers.pop(name, None)
            self.lost_consumers.discard(name)

    def pin(self, position: int) -> int:
        """Keep everything after `position` while this process lives; give back with `unpin`."""
        with self._mutex:
            if position + 1 < self.first_position:
                raise InvalidInput("position is no longer in the log", sqlstate="22023")
            self._pin_number += 1
            self._pins[self._pin_number] = position
            return self._pin_number

    def unpin(self, pin: int) -> None:
        with self._mutex:
            self._pins.pop(pin)

    def trim(self, through: int) -> int:
        """Forget records up to `through`, but nothing a consumer or pin still needs and never the
        newest record; returns the position trimmed through."""
        with self._mutex:
            if failpoints.armed:
                failpoints.hit("trim.before")
            floor = min(
                [
                    through,
                    self.last_position - 1,
                    *self._pins.values(),
                    *self._retained_positions(through),
                ]
            )
            if floor < self.first_position:
                return self.first_position - 1
            delete_log_range(self._store, 0, floor)
            if failpoints.armed:
                failpoints.hit("trim.after")
            return floor

    def _retained_positions(self, through: int) -> list[int]:
        """Positions of the consumers that trimming has to wait for."""
        cap = self.last_position - self._retention_max
        self.lost_consumers |= {
            name for name, at in self.consumers.items() if at < min(cap, through)
        }
        held = [at for name, at in self.consumers.items() if name not in self.lost_consumers]
        return held + list(_load_watermarks(self._store))


def _load_consumers(store: BatchStore) -> Iterator[tuple[str, int]]:
    start = keyspace.meta_key(_CONSUMER)
    for batch in store.scan(start, keyspace.next_prefix(start)):
        for key, value in batch:
            if len(value) != _POSITION.size:
                raise Unavailable("consumer entry is damaged", key=key.hex())
            parsed = keyspace.parse_key(key)
            assert isinstance(parsed, keyspace.MetaKey)
            yield parsed.name[len(_CONSUMER) :], _POSITION.unpack(value)[0]


def _load_watermarks(store: BatchStore) -> Iterator[int]:
    """The positions of the maintenance groups: each still needs the log after its own."""
    for batch in store.scan(*keyspace.watermark_range()):
        for _, value in batch:
            yield int(_POSITION.unpack(value)[0])
