"""Text to DATE, TIME, TIMESTAMP and TIMESTAMPTZ: PostgreSQL's input rules, DateStyle ISO, MDY.

ISO 8601 text has a fast path. Any other text is split into tokens (date, clock, zone offset, word,
number) that are applied one after the other, as PostgreSQL does: 22007 for text that is no date,
22008 for fields out of range. Words that mean the present (now, today) and infinities are
`Unsupported`, because a constant must not change its meaning.
"""

from __future__ import annotations

import calendar
import datetime
import re
from dataclasses import dataclass

from belvedere.errors import InvalidInput, Unsupported
from belvedere.types import MICROSECONDS_PER_DAY
from belvedere.values.datetimes import (
    UTC,
    YEAR_MAX_PG,
    abbreviated_zone,
    add_microseconds,
    find_zone,
    session_zone,
    to_utc,
    unsupported_year,
)
from belvedere.values.failures import bad_datetime, datetime_out_of_range
from belvedere.values.intervals import HOUR, MINUTE, SECOND, TEXT_MAX
from belvedere.values.numbers import SPACE

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?"
    r"(Z|[-+]\d\d(?::?\d\d)?)?)?"
)
_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_MONTHS |= {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
_MONTHS["sept"] = 9
_DAYS = {name.lower() for name in (*calendar.day_name, *calendar.day_abbr)}
_DAYS |= {"tues", "thur", "thurs", "weds", "wednes"}
_JULIAN_OF_YEAR_ONE = 1_721_425
_ORDINAL_MAX = datetime.date.max.toordinal()
_PRESENT = {"now", "today", "tomorrow", "yesterday"}

_FIELD = re.compile(
    r"(?P<clock>\d+:\d*(?::\d*)?(?:\.\d*)?)"
    r"|(?P<date>\d+[-/.](?:[a-zA-Z]+|\d+)[-/.]\d+|\d{4}-\d{2}(?!\d)|[a-zA-Z]{3,9}[-/.]\d+[-/.]\d+)"
    r"|(?P<julian>[jJ]\d+(?:\.\d*)?)"
    r"|(?P<number>\d+(?:\.\d*)?)"
    r"|(?P<offset>[-+]\d{1,4}(?::\d{2}(?::\d{2})?)?|[-+]\d{6})"
    r"|(?P<word>[a-zA-Z][a-zA-Z_]*(?:/[a-zA-Z0-9_+/-]+)?)"
    r"|(?P<skip>[\s,;]+)"
)


@dataclass(slots=True)
class _DateTimeFields:
    """The fields that the tokens read so far have set."""

    text: str
    kind: str
    year: int | None = None
    month: int | None = None
    day: int | None = None
    year_digits: int = 0
    clock: int | None = None  # microseconds since midnight
    am_pm: str = ""
    zone: datetime.tzinfo | None = None
    before_christ: bool = False
    named_month: bool = False

    def syntax_error(self) -> InvalidInput:
        return bad_datetime(self.kind, self.text)


def parse_date(text: str) -> datetime.date:
    match = _ISO.fullmatch(text)
    if match is not None and match[4] is None:
        return _build_date(int(match[1]), int(match[2]), int(match[3]), "date")
    fields = _read_fields(text, "date")
    return _finish_date(fields)


def parse_timestamp(text: str) -> datetime.datetime:
    match = _ISO.fullmatch(text)
    if match is not None and match[8] is None:
        return _iso_timestamp(match, "timestamp")
    fields = _read_fields(text, "timestamp")
    return _add_clock(_finish_date(fields), fields.clock or 0)


def parse_timestamptz(text: str) -> datetime.datetime:
    fields = _read_fields(text, "timestamp with time zone")
    local = _add_clock(_finish_date(fields), fields.clock or 0)
    return to_utc(local, fields.zone or session_zone())


def parse_time(text: str) -> datetime.time:
    fields = _read_fields(text, "time")
    if fields.clock is None:
        raise fields.syntax_error()
    if fields.year is not None or fields.month is not None:
        _finish_date(fields)
    if fields.clock >= MICROSECONDS_PER_DAY:
        raise Unsupported("the time 24:00:00 is not supported", hint="use 00:00:00 of the next day")
    return time_from_microseconds(fields.clock)


def time_from_microseconds(microseconds: int) -> datetime.time:
    """The TIME so many microseconds after midnight; less than a day."""
    seconds, fraction = divmod(microseconds, SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return datetime.time(hour, minute, second, fraction)


def _iso_timestamp(match: re.Match[str], kind: str) -> datetime.datetime:
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    date = _build_date(year, month, day, kind)
    if hour < 24 and minute < 60 and second < 60:
        fraction = int((match[7] or "").ljust(6, "0"))
        return datetime.datetime(date.year, date.month, date.day, hour, minute, second, fraction)
    return _add_clock(
        date, _parse_clock(f"{hour}:{minute}:{second}.{match[7] or 0}", kind, match[0])
    )


def _add_clock(date: datetime.date, clock: int) -> datetime.datetime:
    return add_microseconds(datetime.datetime(date.year, date.month, date.day), clock)


def _build_date(year: int, month: int, day: int, kind: str) -> datetime.date:
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        raise datetime_out_of_range(kind)
    if not 1 <= year <= 9999:
        if year == 0 or day > _month_days(year, month):
            raise datetime_out_of_range(kind)
        raise unsupported_year(year, kind)
    try:
        return datetime.date(year, month, day)
    except ValueError:
        raise datetime_out_of_range(kind) from None


def _month_days(year: int, month: int) -> int:
    # Years before Christ count without a year zero.
    return calendar.monthrange((year if year > 0 else year + 1) % 400 + 400, month)[1]


def _parse_clock(text: str, kind: str, original: str) -> int:
    """Microseconds of HH:MM[:SS[.f]]; 24:00:00 and second 60 are allowed, as in PostgreSQL."""
    whole, _, fraction = text.partition(".")
    parts = whole.split(":")
    if len(parts) == 2 and fraction:
        raise bad_datetime(kind, original)
    if not all(parts[:2]):
        raise bad_datetime(kind, original)
    hour, minute = int(parts[0]), int(parts[1])
    second = int(parts[2] or 0) if len(parts) > 2 else 0
    micro = round(float("0." + fraction) * SECOND) if fraction else 0
    if minute > 59 or second > 60 or hour > 24 or (hour == 24 and (minute or second or micro)):
        raise datetime_out_of_range(kind)
    return hour * HOUR + minute * MINUTE + second * SECOND + micro


def _read_fields(text: str, kind: str) -> _DateTimeFields:
    fields = _DateTimeFields(text, kind)
    word = text.strip(SPACE)
    # The T of ISO 8601 is a separator, not a word.
    word = re.sub(r"(?<=\d)[Tt](?=\d\d?:?\d\d)", " ", word)
    if not word or len(word) > TEXT_MAX:
        raise fields.syntax_error()
    position = 0
    while position < len(word):
        match = _FIELD.match(word, position)
        if match is None:
            raise fields.syntax_error()
        position = match.end()
        _apply_token(fields, match.lastgroup or "", match[0])
    _apply_am_pm(fields)
    return fields


def _apply_token(fields: _DateTimeFields, group: str, token: str) -> None:
    if group == "clock":
        if fields.clock is not None:
            raise fields.syntax_error()
        fields.clock = _parse_clock(token, fields.kind, fields.text)
    elif group == "date":
        _apply_date(fields, token)
    elif group == "offset":
        _apply_offset(fields, token)
    elif group == "word":
        _apply_word(fields, token)
    elif group == "julian":
        number = int(token[1:].partition(".")[0]) - _JULIAN_OF_YEAR_ONE
        if "." in token or not 1 <= number <= _ORDINAL_MAX:
            raise Unsupported("this julian date is not supported", text=fields.text)
        _set_date(fields, datetime.date.fromordinal(number))
    elif group == "number":
        _apply_number(fields, token)


def _apply_date(fields: _DateTimeFields, token: str) -> None:
    if fields.year is not None or fields.month is not None:
        raise fields.syntax_error()
    parts = re.split("[-/.]", token)
    if len(parts) == 2:
        raise fields.syntax_error()
    names = [i for i, part in enumerate(parts) if not part.isdigit()]
    if names:
        fields.month = _month_number(fields, parts[names[0]])
        first, last = (part for i, part in enumerate(parts) if i != names[0])
        if len(first) > 2:
            first, last = last, first
        fields.day = int(first)
        _set_year(fields, last)
    elif len(parts[0]) > 2:
        _set_year(fields, parts[0])
        fields.month, fields.day = int(parts[1]), int(parts[2])
    else:
        fields.month, fields.day = int(parts[0]), int(parts[1])
        _set_year(fields, parts[2])


def _set_year(fields: _DateTimeFields, digits: str) -> None:
    fields.year, fields.year_digits = int(digits), len(digits)


def _month_number(fields: _DateTimeFields, word: str) -> int:
    number = _MONTHS.get(word.lower())
    if number is None:
        raise fields.syntax_error()
    return number


def _apply_offset(fields: _DateTimeFields, token: str) -> None:
    if fields.zone is not None or (fields.clock is None and fields.kind != "date"):
        raise fields.syntax_error()
    sign, digits = token[0], token[1:]
    if ":" in digits:
        parts = [int(part) for part in digits.split(":")]
    elif len(digits) > 2:
        padded = digits.zfill(len(digits) + len(digits) % 2)
        parts = [int(padded[i : i + 2]) for i in range(0, len(padded), 2)]
    else:
        parts = [int(digits)]
    hours, minutes, seconds = (*parts, 0, 0)[:3]
    if hours > 15 or minutes > 59 or seconds > 59:
        raise InvalidInput(
            "time zone displacement out of range", sqlstate="22009", text=fields.text
        )
    offset = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
    fields.zone = datetime.timezone(-offset if sign == "-" else offset)


def _apply_word(fields: _DateTimeFields, token: str) -> None:
    word = token.lower()
    if word in _MONTHS and not fields.named_month:
        # A number before the name was read as the month; it is the day.
        if fields.month is not None and fields.day is None:
            fields.day = fields.month
        elif fields.month is not None:
            raise fields.syntax_error()
        fields.month, fields.named_month = _MONTHS[word], True
    elif word in ("am", "pm"):
        fields.am_pm = word
    elif word in ("bc", "ad"):
        fields.before_christ = word == "bc"
    elif word in _DAYS or word == "at" or word == "on" or word == "t":
        return
    elif word == "epoch" and fields.year is None:
        fields.year, fields.month, fields.day, fields.clock = 1970, 1, 1, 0
        fields.year_digits = 4
    elif word == "allballs":
        fields.clock, fields.zone = 0, UTC
    elif word in _PRESENT:
        raise Unsupported(
            "date and time input relative to the present is not supported",
            hint="use current_date or current_timestamp",
            word=word,
        )
    elif word in ("infinity", "inf"):
        raise Unsupported("infinite dates are not supported")
    else:
        _apply_zone(fields, token)


def _apply_zone(fields: _DateTimeFields, token: str) -> None:
    if fields.zone is not None:
        raise fields.syntax_error()
    fields.zone = abbreviated_zone(token)
    if fields.zone is not None:
        return
    dated = None not in (fields.year, fields.month, fields.day)
    if "/" not in token or not (dated or fields.kind == "time"):
        raise fields.syntax_error()
    fields.zone = find_zone(token)


def _apply_number(fields: _DateTimeFields, token: str) -> None:
    digits, point, rest = token.partition(".")
    if point:
        if len(digits) < 4 or len(rest) != 3 or fields.year is not None or fields.month is not None:
            raise fields.syntax_error()
        _apply_day_of_year(fields, int(digits), int(rest))
        return
    dated = fields.year is not None and fields.month is not None
    if len(digits) == 8 and not dated and fields.month is None:
        fields.year, fields.month, fields.day = int(digits[:4]), int(digits[4:6]), int(digits[6:])
        fields.year_digits = 4
    elif len(digits) == 6 and not dated and fields.month is None and fields.kind != "time":
        fields.year, fields.month, fields.day = int(digits[:2]), int(digits[2:4]), int(digits[4:])
        fields.year_digits = 2
    elif len(digits) in (4, 6) and fields.clock is None and (dated or fields.kind == "time"):
        padded = digits.ljust(6, "0")
        fields.clock = _parse_clock(
            f"{padded[:2]}:{padded[2:4]}:{padded[4:]}", fields.kind, fields.text
        )
    else:
        _apply_bare_number(fields, digits)


def _apply_day_of_year(fields: _DateTimeFields, year: int, day: int) -> None:
    if not 1 <= day <= 365 + calendar.isleap(year):
        raise datetime_out_of_range(fields.kind)
    if not 1 <= year <= 9999:
        raise unsupported_year(year, fields.kind)
    _set_date(fields, datetime.date(year, 1, 1) + datetime.timedelta(days=day - 1))


def _set_date(fields: _DateTimeFields, day: datetime.date) -> None:
    fields.year, fields.month, fields.day, fields.year_digits = day.year, day.month, day.day, 4


def _apply_bare_number(fields: _DateTimeFields, digits: str) -> None:
    """One bare number of a date, in the order month, day, year unless it starts with the year."""
    if len(digits) > 2 and fields.year is None:
        _set_year(fields, digits)
    elif fields.month is None:
        fields.month = int(digits)
    elif fields.day is None:
        fields.day = int(digits)
    elif fields.year is None:
        _set_year(fields, digits)
    else:
        raise fields.syntax_error()


def _apply_am_pm(fields: _DateTimeFields) -> None:
    if not fields.am_pm:
        return
    if fields.clock is None:
        raise fields.syntax_error()
    hours = fields.clock // HOUR
    if hours > 12:
        raise datetime_out_of_range(fields.kind)
    if fields.am_pm == "pm" and hours != 12:
        fields.clock += 12 * HOUR
    elif fields.am_pm == "am" and hours == 12:
        fields.clock -= 12 * HOUR


def _finish_date(fields: _DateTimeFields) -> datetime.date:
    if fields.year is None or fields.month is None or fields.day is None:
        raise fields.syntax_error()
    year = fields.year
    if fields.before_christ:
        if year <= 0:
            raise datetime_out_of_range(fields.kind)
        year = -year
    elif fields.year_digits <= 2:
        year += 2000 if year < 70 else 1900
    elif year > YEAR_MAX_PG and fields.kind != "date":
        raise datetime_out_of_range(fields.kind)
    return _build_date(year, fields.month, fields.day, fields.kind)
