"""Conversion of single values to the integers and bytes in keys and rows, and back.

Dates are days, times and timestamps microseconds, both since 1970-01-01 (UTC for TIMESTAMPTZ), as
in Arrow. Functions here are called from compiled code: they raise what Python raises, and the
compiled code turns that into InvalidInput or Corruption (`codec.encoding_errors`).

Long values. A store takes keys of some length only, and a view or an index must not refuse a text
that its table takes. So the keys of relations that say so (`catalog.model.View.digests`) keep of a
text or of bytes, once these are escaped, at most `cut` bytes:

    beginning 00 01 SHA-256 in hexadecimal digits

No exact value has 00 01, as 00 is escaped as 00 FF. Equal values have equal bytes, and others
differ, so look-ups and ranges of equal values need nothing else. Order is exact too, between all
values that differ in their beginning; those that share it are a *run*, whose entries lie together
in the order of their digests. Who reads in order sorts each run (`txn.exact_order`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from hashlib import sha256
from typing import Any
from uuid import UUID, SafeUUID

from belvedere.types import DAYS_PER_MONTH, MICROSECONDS_PER_DAY, Interval, Kind, Row, SqlType

EPOCH = datetime(1970, 1, 1)
EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_ORDINAL = EPOCH.toordinal()

# No operation in this context ever rounds, whatever the caller's own context says.
EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])

_single = struct.Struct("<f")
_interval = struct.Struct("<iiq")
_set_uuid_int = UUID.__dict__["int"].__set__
_set_uuid_safety = UUID.__dict__["is_safe"].__set__


def integer(value: Any) -> int:
    """Subclasses of int pass, bool does not: TRUE is no number in SQL."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return int(value)


def check_float(value: Any) -> float:
    if not isinstance(value, float):
        raise TypeError
    return float(value)


def real(value: Any) -> float:
    """A float that 32 bits hold. Rounding here would make the row differ from its key."""
    number = check_float(value)
    if _single.unpack(_single.pack(number))[0] != number and number == number:
        raise OverflowError
    return number


def boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def days(value: Any) -> int:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise TypeError
    return value.toordinal() - EPOCH_ORDINAL


def time_microseconds(value: Any) -> int:
    if not isinstance(value, time) or value.tzinfo is not None:
        raise TypeError
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1_000_000 + value.microsecond


def timestamp_microseconds(value: Any) -> int:
    # Subtracting an aware datetime, a date or anything else from EPOCH's kind is a TypeError.
    since: timedelta = value - EPOCH
    return since.days * MICROSECONDS_PER_DAY + since.seconds * 1_000_000 + since.microseconds


def timestamptz_microseconds(value: Any) -> int:
    since: timedelta = value - EPOCH_UTC
    return since.days * MICROSECONDS_PER_DAY + since.seconds * 1_000_000 + since.microseconds


def date_of(day: int) -> date:
    return date.fromordinal(day + EPOCH_ORDINAL)


def time_of(microseconds: int) -> time:
    seconds, microsecond = divmod(microseconds, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return time(hour, minute, second, microsecond)


def timestamp_of(microseconds: int) -> datetime:
    return EPOCH + timedelta(0, 0, microseconds)


def timestamptz_of(microseconds: int) -> datetime:
    return EPOCH_UTC + timedelta(0, 0, microseconds)


def uuid_of(data: bytes) -> UUID:
    """UUID(bytes=data), three times as fast: its constructor is Python with five alternatives."""
    value = object.__new__(UUID)
    _set_uuid_int(value, int.from_bytes(data, "big"))
    _set_uuid_safety(value, SafeUUID.unknown)
    return value


def interval_bytes(value: Any) -> bytes:
    if value.__class__ is not Interval:
        raise TypeError
    return _interval.pack(*value)


def interval_of(data: bytes) -> Interval:
    return Interval(*_interval.unpack(data))


def interval_span(value: Any) -> int:
    """The span of an interval whose fields are within their limits."""
    interval_bytes(value)
    return int(value.span)


def interval_of_span(span: int) -> Interval:
    """The canonical interval of this length: as many months as possible, then as many days."""
    month = DAYS_PER_MONTH * MICROSECONDS_PER_DAY
    months = _clamp_32(_divide_towards_zero(span, month))
    rest = span - months * month
    whole_days = _clamp_32(_divide_towards_zero(rest, MICROSECONDS_PER_DAY))
    return Interval(months, whole_days, rest - whole_days * MICROSECONDS_PER_DAY)


def numeric_text(value: Any) -> str:
    """The digits with their display scale, never an exponent: what PostgreSQL would print."""
    if not isinstance(value, Decimal):
        raise TypeError
    text = str(value)
    if text[-1] not in "0123456789" or "N" in text:
        return "NaN" if value.is_nan() else text
    if "E" in text:
        check_numeric_size(value)
        text = format(value, "f")
    elif len(text) > NUMERIC_SCALE_MAX:
        check_numeric_size(value)
    return text.lstrip("-") if not value else text


NUMERIC_DIGITS_MAX = 131_072
NUMERIC_SCALE_MAX = 16_383


def check_numeric_size(value: Decimal) -> None:
    """PostgreSQL's limits, which also keep 1E+999999999 from becoming a gigabyte of digits."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    if value.adjusted() >= NUMERIC_DIGITS_MAX or exponent < -NUMERIC_SCALE_MAX:
        raise OverflowError


def _divide_towards_zero(number: int, divisor: int) -> int:
    return number // divisor if number >= 0 else -(-number // divisor)


def _clamp_32(number: int) -> int:
    return max(-(2**31), min(2**31 - 1, number))


# -- long values in keys ---------------------------------------------------------------------------

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

    def may_be_long(self, entry: bytes) -> bool:
        """Whether an entry may have a long value; escaping adds a byte for each 00."""
        size = len(entry)
        return size > self.entry_bytes and size + entry.count(0) > self.cut


def is_shortened(value: Any, cut: int) -> bool:
    """Whether the bytes of this value are more than `cut`, once they are escaped."""
    if isinstance(value, bytes):
        return len(value) + value.count(0) > cut
    if not isinstance(value, str) or len(value) * 4 + value.count("\0") <= cut:
        return False
    return len(value.encode()) + value.count("\0") > cut


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
