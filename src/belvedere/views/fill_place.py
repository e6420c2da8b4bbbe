"""How far the fill of a view is: written in the batch that adds what was walked.

    no watermark            not begun
    a watermark, a place    begun at that position; what comes before the place is in the view
    a watermark alone       filled as of that position; it has to catch up from the log

The place names the way the view is filled, since it has a meaning on that way alone. Keys of
partitions that a fill has found are kept beside it, in numbered lists, until it is over.
"""

from __future__ import annotations

import msgspec

from belvedere.codec import keyspace
from belvedere.kv.batch import Write
from belvedere.txn.border import Reader
from belvedere.views.watermarks import place_key

_encode = msgspec.msgpack.Encoder().encode


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Phases before `phase` are over; of that one, all before `after`."""

    way: str
    phase: int = 0
    after: bytes = b""

    @property
    def is_start(self) -> bool:
        """Whether nothing was saved yet."""
        return not self.phase and not self.after


_decode = msgspec.msgpack.Decoder(Place).decode


def place_of(reader: Reader, view: int) -> Place | None:
    """None: its fill was not begun, or is over."""
    value = reader.get(place_key(view))
    return None if value is None else _decode(value)


def place_write(view: int, place: Place | None) -> Write:
    return place_key(view), None if place is None else _encode(place)


def listed_key(view: int, number: int, key: bytes) -> bytes:
    """Where a key of a list is kept. Names are text, so it is written in hexadecimal digits, which
    are in the order of the bytes."""
    return keyspace.meta_key(f"backfill/{view}/{number}/{key.hex()}")


def listed_range(view: int, number: int | None = None) -> tuple[bytes, bytes]:
    """All keys of one list, or of all lists of a view."""
    one = "" if number is None else f"{number}/"
    start = keyspace.meta_key(f"backfill/{view}/{one}")
    end = keyspace.next_prefix(start)
    assert end is not None
    return start, end
