"""The progress of a view's backfill, written in the batch that adds the rows walked so far.

    no watermark              not begun, or nothing of it is saved
    watermark and progress    begun at that position; all rows before the progress key are in the
                              view
    watermark only            backfilled as of that position; it has to catch up from the log

The progress names the backfill plan, since it has a meaning for that plan only. Keys of partitions
that a backfill has found are stored in numbered key lists until it ends.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from belvedere.codec import keyspace
from belvedere.kv.batch import Write
from belvedere.txn.contracts import Reader
from belvedere.views.state.watermarks import backfill_progress_key, decode_watermark

_encode = msgspec.msgpack.Encoder().encode


class BackfillProgress(msgspec.Struct, frozen=True, array_like=True):
    """Phases before `phase` are done, and of that phase all keys before `after`."""

    plan_name: str
    phase: int = 0
    after: bytes = b""

    @property
    def is_at_start(self) -> bool:
        """Whether no step was saved yet."""
        return not self.phase and not self.after


_decode = msgspec.msgpack.Decoder(BackfillProgress).decode


def read_backfill_progress(reader: Reader, view: int) -> BackfillProgress | None:
    """The stored progress; None: the backfill was not begun, or has ended."""
    value = reader.get(backfill_progress_key(view))
    return None if value is None else _decode(value)


class BackfillState(NamedTuple):
    """The position at which the backfill of a view has begun, and its progress."""

    position: int | None
    progress: BackfillProgress | None

    @property
    def has_ended(self) -> bool:
        return self.position is not None and self.progress is None


def read_backfill_state(reader: Reader, view: int) -> BackfillState:
    mark, progress = reader.multi_get([keyspace.watermark_key(view), backfill_progress_key(view)])
    return BackfillState(
        None if mark is None else decode_watermark(mark),
        None if progress is None else _decode(progress),
    )


def build_progress_write(view: int, place: BackfillProgress | None) -> Write:
    return backfill_progress_key(view), None if place is None else _encode(place)


def build_key_list_entry_key(view: int, number: int, key: bytes) -> bytes:
    """The store key of an entry of a key list. Names are text, so the entry's key is written in
    hexadecimal digits, which sort as the bytes do."""
    return keyspace.meta_key(f"backfill/{view}/{number}/{key.hex()}")


def key_list_range(view: int, number: int | None = None) -> tuple[bytes, bytes]:
    """The store range of one key list, or of all key lists of a view."""
    one = "" if number is None else f"{number}/"
    start = keyspace.meta_key(f"backfill/{view}/{one}")
    end = keyspace.next_prefix(start)
    assert end is not None
    return start, end
