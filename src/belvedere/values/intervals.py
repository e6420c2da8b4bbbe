"""INTERVAL values: parsing (PostgreSQL, SQL and ISO 8601 notations) and formatting."""

from __future__ import annotations

import re

from belvedere.errors import InvalidInput, Unsupported
from belvedere.types import DAYS_PER_MONTH, MICROSECONDS_PER_DAY, Interval
from belvedere.values.failures import bad_datetime, datetime_out_of_range
from belvedere.values.numbers import INT4_MAX, INT4_MIN, INT8_MAX, INT8_MIN, SPACE

SECOND = 1_000_000
# PostgreSQL reads no longer text as a date, time or interval.
TEXT_MAX = 128
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

_UNITS: dict[str, str] = {}
for _unit, _spellings in {
    "microsecond": "us usec usecs usecond useconds microsecon microsecond microseconds",
    "millisecond": "ms msec msecs msecond mseconds millisecon millisecond milliseconds",
    "second": "s sec secs second seconds",
    "minute": "m min mins minute minutes",
    "hour": "h hr hrs hour hours",
    "day": "d day days",
    "week": "w week weeks",
    "month": "mon mons month months",
    "year": "y yr yrs year years",
    "decade": "dec decs decade decades",
    "century": "c cent century centuries",
    "millennium": "mil mils millennium millennia",
}.items():
    for _word in _spellings.split():
        _UNITS[_word] = _unit

_MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": SECOND,
    "minute": MINUTE,
    "hour": HOUR,
}
_MONTHS = {"month": 1, "year": 12, "decade": 120, "century": 1200, "millennium": 12000}

_TOKEN = re.compile(
    r"(?P<clock>[-+]?\d+:\d*(?::\d*)?(?:\.\d*)?)|(?P<years>[-+]?\d+-\d+)(?![\d-])"
    r"|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+))|(?P<word>[a-zA-Z]+)|(?P<skip>[\s@,]+)"
)
_ISO_PART = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+))([YMWDHS])")


def format_interval(value: Interval) -> str:
    years, months = _divide_toward_zero(value.months, 12)
    parts: list[str] = []
    negative = False
    for amount, name in ((years, "year"), (months, "mon"), (value.days, "day")):
        if amount:
            plus = "+" if negative and amount > 0 else ""
            parts.append(f"{plus}{amount} {name}{'' if amount == 1 else 's'}")
            negative = amount < 0
    if value.microseconds or not parts:
        sign = "-" if value.microseconds < 0 else "+" if negative else ""
        parts.append(sign + format_clock(abs(value.microseconds)))
    return " ".join(parts)


def format_clock(microseconds: int) -> str:
    """HH:MM:SS with as many fraction digits as needed. Not negative."""
    seconds, fraction = divmod(microseconds, SECOND)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours:02d}:{minutes:02d}:{seconds:02d}"
    return text + f".{fraction:06d}".rstrip("0") if fraction else text


def _divide_toward_zero(amount: int, size: int) -> tuple[int, int]:
    """Division toward zero, with a remainder of the same sign."""
    whole = abs(amount) // size
    if amount < 0:
        whole = -whole
    return whole, amount - whole * size


def make_interval(months: int, days: int, microseconds: int) -> Interval:
    """An interval whose fields fit PostgreSQL's, else 22008."""
    if (
        INT4_MIN <= months <= INT4_MAX
        and INT4_MIN <= days <= INT4_MAX
        and INT8_MIN <= microseconds <= INT8_MAX
    ):
        value = Interval(months, days, microseconds)
        if value in (_INFINITY, _MINUS_INFINITY):
            raise datetime_out_of_range("interval")
        return value
    raise datetime_out_of_range("interval")


_INFINITY = Interval(INT4_MAX, INT4_MAX, INT8_MAX)
_MINUS_INFINITY = Interval(INT4_MIN, INT4_MIN, INT8_MIN)


def parse_interval(text: str) -> Interval:
    word = text.strip(SPACE)
    if len(word) > TEXT_MAX:
        raise bad_datetime("interval", text)
    if word.lower() in ("infinity", "-infinity", "+infinity"):
        raise Unsupported("infinite intervals are not supported")
    total = _IntervalSum()
    if word.startswith("P"):
        _parse_iso(word, text, total)
    else:
        _parse_words(word, text, total)
    if not (
        _fits_range(total.months, INT4_MAX)
        and _fits_range(total.days, INT4_MAX)
        and _fits_range(total.microseconds, INT8_MAX)
    ):
        raise _field_overflow()
    return Interval(total.months, total.days, total.microseconds)


def _fits_range(amount: int, high: int) -> bool:
    return -high - 1 <= amount <= high


def _field_overflow() -> InvalidInput:
    return InvalidInput("interval field value out of range", sqlstate="22015")


class _IntervalSum:
    """Fields collected so far; fractions spill into the next smaller field as in PostgreSQL."""

    __slots__ = ("days", "microseconds", "months")

    def __init__(self) -> None:
        self.months = self.days = self.microseconds = 0

    def add_amount(self, amount: str, unit: str) -> None:
        whole, fraction = _split_number(amount)
        if unit in _MICROSECONDS:
            size = _MICROSECONDS[unit]
            self.microseconds += whole * size + round(fraction * size)
        elif unit in _MONTHS:
            size = _MONTHS[unit]
            self.months += whole * size
            if unit == "month":
                self._add_fraction_days(fraction, DAYS_PER_MONTH)
            else:
                self.months += round(fraction * size)
        elif unit == "week":
            self.days += whole * 7
            self._add_fraction_days(fraction, 7)
        else:
            self.days += whole
            self.microseconds += round(fraction * MICROSECONDS_PER_DAY)

    def _add_fraction_days(self, fraction: float, size: int) -> None:
        days = fraction * size
        self.days += int(days)
        self.microseconds += round((days - int(days)) * MICROSECONDS_PER_DAY)

    def negate(self) -> None:
        self.months, self.days = -self.months, -self.days
        self.microseconds = -self.microseconds


def _split_number(text: str) -> tuple[int, float]:
    sign = -1 if text.startswith("-") else 1
    whole, _, fraction = text.lstrip("+-").partition(".")
    return sign * int(whole or "0"), sign * float("0." + (fraction or "0"))


def _parse_clock(text: str, original: str) -> int:
    sign = -1 if text.startswith("-") else 1
    parts = text.lstrip("+-").split(":")
    if len(parts) == 2 and "." in parts[1]:
        parts = ["0", *parts]
    if len(parts) == 2:
        parts.append("0")
    hours, minutes = int(parts[0] or "0"), int(parts[1] or "0")
    whole, fraction = _split_number(parts[2] or "0")
    if minutes > 59 or whole > 60:
        raise _field_overflow()
    if not parts[1]:
        raise bad_datetime("interval", original)
    return sign * (hours * HOUR + minutes * MINUTE + whole * SECOND + round(fraction * SECOND))


def _parse_words(word: str, text: str, total: _IntervalSum) -> None:
    """PostgreSQL's own notation: numbers with units, a clock, years-months, `ago`."""
    pending: str | None = None
    seen: set[str] = set()
    position = 0
    used = False
    while position < len(word):
        match = _TOKEN.match(word, position)
        if match is None:
            raise bad_datetime("interval", text)
        position = match.end()
        kind, token = match.lastgroup, match[0]
        if kind == "skip":
            continue
        if kind == "word":
            if token.lower() == "ago" and used and pending is None:
                if word[position:].strip(SPACE):
                    raise bad_datetime("interval", text)
                total.negate()
                continue
            unit = _UNITS.get(token.lower())
            if unit is None or pending is None or unit in seen:
                raise bad_datetime("interval", text)
            seen.add(unit)
            total.add_amount(pending, unit)
            pending, used = None, True
            continue
        if kind == "clock":
            # A bare number before a clock is days: '1 12:59:10'.
            if pending is not None:
                total.add_amount(pending, "day")
                pending = None
            total.microseconds += _parse_clock(token, text)
            used = True
            continue
        if pending is not None:
            raise bad_datetime("interval", text)
        if kind == "years":
            _parse_years_months(token, total)
            used = True
        else:
            pending = token
    if pending is not None:
        total.add_amount(pending, "second")
        used = True
    if not used:
        raise bad_datetime("interval", text)


def _parse_years_months(token: str, total: _IntervalSum) -> None:
    sign = -1 if token.startswith("-") else 1
    years, months = token.lstrip("+-").split("-")
    if int(months) >= 12:
        raise _field_overflow()
    total.months += sign * (int(years) * 12 + int(months))


def _parse_iso(word: str, text: str, total: _IntervalSum) -> None:
    """ISO 8601: P1Y2M3DT4H5M6S."""
    body = word[1:]
    date, _, clock = body.partition("T")
    if not body or (("T" in body) and not clock):
        raise bad_datetime("interval", text)
    written = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)(?:T(\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?", body)
    if written is not None:
        total.months = int(written[1]) * 12 + int(written[2])
        total.days = int(written[3])
        total.microseconds = _parse_clock(written[4] or "00:00", text)
        date = clock = ""
    for part, units in (
        (date, {"Y": "year", "M": "month", "W": "week", "D": "day"}),
        (clock, {"H": "hour", "M": "minute", "S": "second"}),
    ):
        position = 0
        while position < len(part):
            match = _ISO_PART.match(part, position)
            if match is None or match[2] not in units:
                raise bad_datetime("interval", text)
            total.add_amount(match[1], units[match[2]])
            position = match.end()
