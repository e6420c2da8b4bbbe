"""Long values in keys: a beginning, and a digest of all of it.

A store takes keys of some length only, and a view or an index must not refuse a text that its table
takes. So the keys of relations that say so (`catalog.model.View.digests`) keep of a text or of
bytes, once these are escaped, at most `cut` bytes:

    beginning 00 01 SHA-256 in hexadecimal digits

No exact value has 00 01, as 00 is escaped as 00 FF. Equal values have equal bytes, and others
differ, so look-ups and ranges of equal values need nothing else. Order is exact too, between all
values that differ in their beginning; those that share it are a *run*, whose entries lie together
in the order of their digests. Who reads in order sorts each run (`codec.exact_order`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from belvedere.types import Kind, Row, SqlType

DIGEST_MARK = b"\0\1"
DIGEST_BYTES = len(DIGEST_MARK) + 64

_BYTES_OF_KEY = 24 * 1024
"""What the long values of a key may take together: less than any store refuses."""

_LONG_KINDS = frozenset({Kind.CHAR, Kind.VARCHAR, Kind.TEXT, Kind.BYTEA})


@dataclass(frozen=True, slots=True)
class LongValues:
    """That a relation's keys keep values above `cut` bytes by a digest; `read_columns` gives the
    values of the key's columns from what is stored under a key."""

    cut: int
    read_columns: Callable[[bytes], Row]

    @property
    def entry_bytes(self) -> int:
        """An entry, or a value, that is not longer has no long value: escaping doubles at most."""
        return self.cut // 2


def is_long(value: Any, limit: int) -> bool:
    """Whether a value may have more bytes than this."""
    return isinstance(value, str | bytes) and len(value) * 4 > limit


def choose_cut(types: tuple[SqlType, ...]) -> int | None:
    """From how many bytes on a value of a key of these types is shortened; None: none can be."""
    count = sum(type_.kind in _LONG_KINDS for type_ in types)
    return max(_BYTES_OF_KEY // count, 2 * DIGEST_BYTES) - DIGEST_BYTES if count else None


def shorten_value(escaped: bytes, cut: int) -> bytes:
    """What a key keeps of a value that is longer than `cut`."""
    beginning = escaped[:cut]
    if beginning[-1] == 0:  # half of an escaped 00
        beginning = beginning[:-1]
    return beginning + DIGEST_MARK + sha256(escaped).hexdigest().encode()


def show_shortened(shortened: bytes) -> str:
    """A shortened value for people: the key does not have the rest."""
    beginning, digest = shortened.rsplit(DIGEST_MARK, 1)
    return f"{beginning.decode(errors='replace')}.. (sha256 {digest.decode()})"
