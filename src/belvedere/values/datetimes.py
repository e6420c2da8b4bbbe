"""DATE, TIME, TIMESTAMP and TIMESTAMPTZ values: formatting, ranges, time zones.

Python's datetime covers the years 1 to 9999. PostgreSQL reaches further and has infinities; a value
beyond Python's range is `Unsupported`, beyond PostgreSQL's own it is 22008.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import re
import threading
import zoneinfo
from collections.abc import Iterator

from belvedere.errors import InvalidInput, Unsupported
from belvedere.values.failures import datetime_out_of_range

UTC = datetime.UTC
EPOCH = datetime.datetime(1970, 1, 1)
EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = datetime.timedelta(microseconds=1)
YEAR_MIN_PG, YEAR_MAX_PG = -4713, 294276

# The abbreviations of PostgreSQL's default set that are in common use, in seconds east of UTC.
_ABBREVIATIONS_MINUTES = {
    "acdt": 630, "acst": 570, "adt": -180, "aedt": 660, "aest": 600, "akdt": -480, "akst": -540,
    "ast": -240, "awst": 480, "bst": 60, "cdt": -300, "cest": 120, "cet": 60, "cst": -360,
    "edt": -240, "eest": 180, "eet": 120, "est": -300, "gmt": 0, "hst": -600, "idt": 180,
    "ist": 120, "jst": 540, "kst": 540, "mdt": -360, "msk": 180, "mst": -420, "ndt": -150,
    "nst": -210, "nzdt": 780, "nzst": 720, "pdt": -420, "pkt": 300, "pst": -480, "sast": 120,
    "sgt": 480, "ut": 0, "utc": 0, "wast": 120, "wat": 60, "wet": 0, "west": 60, "z": 0, "zulu": 0,
}  # fmt: skip


def format_date(value: datetime.date) -> str:
    return value.isoformat()


def format_time(value: datetime.time) -> str:
    text = value.isoformat()
    return text.rstrip("0") if "." in text else text


def format_timestamp(value: datetime.datetime) -> str:
    text = value.isoformat(" ")
    return text.rstrip("0") if "." in text else text


def format_timestamptz(value: datetime.datetime) -> str:
    zone = _session.zone
    if zone is UTC:
        return format_timestamp(value.astimezone(UTC).replace(tzinfo=None)) + "+00"
    return format_timestamp(to_local(value, zone)) + format_offset(offset_of(value, zone))


def offset_of(value: datetime.datetime, zone: datetime.tzinfo) -> int:
    """The seconds that clocks in the zone are ahead of UTC at the instant."""
    found = value.astimezone(zone).utcoffset()
    assert found is not None
    return round(found.total_seconds())


def format_offset(seconds: int) -> str:
    """+02, +05:30, -00:44:30."""
    sign, rest = ("-", -seconds) if seconds < 0 else ("+", seconds)
    parts = [rest // 3600, rest // 60 % 60, rest % 60]
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return sign + ":".join(f"{part:02}" for part in parts)


# -- the session's zone ----------------------------------------------------------------------------


class _SessionZone(threading.local):
    zone: datetime.tzinfo = UTC


_session = _SessionZone()


def session_zone() -> datetime.tzinfo:
    """The zone that the running function was bound under: UTC except inside of `in_zone`."""
    return _session.zone


@contextlib.contextmanager
def in_zone(zone: datetime.tzinfo) -> Iterator[None]:
    before, _session.zone = _session.zone, zone
    try:
        yield
    finally:
        _session.zone = before


def session_local(value: datetime.datetime) -> datetime.datetime:
    """A TIMESTAMPTZ as clocks of the session's zone show it; its tzinfo remains UTC."""
    zone = _session.zone
    return value if zone is UTC else to_local(value, zone).replace(tzinfo=UTC)


def session_instant(value: datetime.datetime) -> datetime.datetime:
    """The instant at which clocks of the session's zone show a TIMESTAMP."""
    zone = _session.zone
    return value.replace(tzinfo=UTC) if zone is UTC else to_utc(value, zone)


def unsupported_year(year: int, kind: str) -> Exception:
    """The error for a date whose year Python's datetime cannot hold."""
    if YEAR_MIN_PG <= year <= YEAR_MAX_PG or (kind == "date" and year <= 5874897):
        return Unsupported("dates outside the years 1 to 9999 are not supported", year=year)
    return datetime_out_of_range(kind)


def from_microseconds(microseconds: int, kind: str = "timestamp") -> datetime.datetime:
    """The TIMESTAMP so many microseconds after 1970."""
    try:
        return EPOCH + datetime.timedelta(microseconds=microseconds)
    except OverflowError:
        raise unsupported_year(1970 + microseconds // 31_556_952_000_000, kind) from None


def microseconds_of(value: datetime.datetime) -> int:
    """Microseconds since 1970; a TIMESTAMPTZ counts from 1970 in UTC."""
    return (value - (EPOCH if value.tzinfo is None else EPOCH_UTC)) // MICROSECOND


def add_microseconds(value: datetime.datetime, microseconds: int) -> datetime.datetime:
    """`value` moved by so many microseconds."""
    try:
        return value + datetime.timedelta(microseconds=microseconds)
    except OverflowError:
        year = value.year + microseconds // 31_556_952_000_000
        raise unsupported_year(year, "timestamp") from None


def to_utc(value: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime:
    """The instant that a clock in `zone` showed as `value`.

    A time that a spring-forward skips is read with the offset before it, one that a fall-back
    repeats with the offset after it: in both cases the smaller offset.
    """
    first = value.replace(tzinfo=zone).utcoffset()
    second = value.replace(tzinfo=zone, fold=1).utcoffset()
    assert first is not None
    assert second is not None
    try:
        return (value - min(first, second)).replace(tzinfo=UTC)
    except OverflowError:
        raise unsupported_year(0 if value.year == 1 else 10000, "timestamp") from None


def to_local(value: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime:
    """What a clock in `zone` shows at the instant `value`."""
    try:
        return value.astimezone(zone).replace(tzinfo=None, fold=0)
    except OverflowError:
        raise unsupported_year(0 if value.year == 1 else 10000, "timestamp") from None


_POSIX = re.compile(r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]+>)([-+]?)(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?")
_OFFSET = re.compile(r"([-+]?)(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")


_ZONE_LENGTH_MAX = 255
"""Of a name, in characters, as in PostgreSQL. A longer one would be searched for, and kept."""


def find_zone(name: str) -> datetime.tzinfo:
    """The zone of a name, abbreviation or offset, as AT TIME ZONE takes it; 22023 when unknown."""
    if len(name) > _ZONE_LENGTH_MAX:
        raise _unknown_zone(name)
    return _find_short_zone(name)


def _unknown_zone(name: str) -> InvalidInput:
    return InvalidInput("time zone not recognized", sqlstate="22023", zone=name[:_ZONE_LENGTH_MAX])


@functools.lru_cache(maxsize=1024)
def _find_short_zone(name: str) -> datetime.tzinfo:
    abbreviation = abbreviated_zone(name)
    if abbreviation is not None:
        return abbreviation
    try:
        if name and not name.startswith(("/", ".")) and name[0].isalpha():
            return zoneinfo.ZoneInfo(_zone_spellings().get(name.lower(), name))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        pass
    match = _POSIX.fullmatch(name) or _OFFSET.fullmatch(name)
    if match is None:
        raise _unknown_zone(name)
    sign, hours, minutes, seconds = match.groups()
    offset = datetime.timedelta(
        hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0)
    )
    # POSIX counts west of Greenwich as positive, and so does PostgreSQL here.
    return datetime.timezone(offset if sign == "-" else -offset)


def find_session_zone(name: str) -> datetime.tzinfo:
    """The zone of a name as SET TIME ZONE takes it: a zone with rules before an abbreviation."""
    if "/" not in name and name.lower() not in _zone_spellings():
        return find_zone(name)
    try:
        return zoneinfo.ZoneInfo(_zone_spellings()[name.lower()])
    except (KeyError, zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise _unknown_zone(name) from None


def zone_spelling(name: str) -> str:
    """The name of a zone in its usual spelling."""
    return _zone_spellings().get(name.lower(), name)


def abbreviated_zone(name: str) -> datetime.tzinfo | None:
    minutes = _ABBREVIATIONS_MINUTES.get(name.lower())
    if minutes is None:
        return None
    return datetime.timezone(datetime.timedelta(minutes=minutes)) if minutes else UTC


@functools.cache
def _zone_spellings() -> dict[str, str]:
    return {name.lower(): name for name in zoneinfo.available_timezones()}
