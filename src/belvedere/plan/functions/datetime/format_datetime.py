"""to_char of dates and times, and to_date and to_timestamp, by PostgreSQL's template patterns.

A template is split once into fields and literal text. A field that is not listed here raises
`Unsupported`, never a guess.
"""

from __future__ import annotations

import calendar
import datetime
import functools
import re
from dataclasses import dataclass
from typing import Any

from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan.functions.core.function import UDF, Function, stable
from belvedere.types import Interval
from belvedere.values.datetimes import (
    add_microseconds,
    format_offset,
    offset_of,
    session_instant,
    session_local,
    session_zone,
    unsupported_year,
)
from belvedere.values.failures import datetime_out_of_range, require_template_length
from belvedere.values.intervals import HOUR, MINUTE, SECOND

# Longest first, so that HH24 is not read as HH and 24.
_FIELDS = (
    "SSSSS SSSS Y,YYY MONTH Month month HH24 HH12 YYYY IYYY IDDD TZH TZM A.M. P.M. a.m. p.m. "
    "A.D. B.C. a.d. b.c. FF1 FF2 FF3 FF4 FF5 FF6 DDD DAY Day day MON Mon mon YYY IYY HH MI SS MS "
    "US AM PM am pm AD BC ad bc YY IY DD DY Dy dy ID WW IW CC MM RM rm OF TZ tz D I J Q W Y"
).split()
_ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
_SPELLED = {"MONTH", "Month", "month", "MON", "Mon", "mon", "DAY", "Day", "day", "DY", "Dy", "dy"}
_SPELLED |= {
    "RM",
    "rm",
    "AM",
    "PM",
    "am",
    "pm",
    "A.M.",
    "P.M.",
    "a.m.",
    "p.m.",
    "AD",
    "BC",
    "ad",
    "bc",
}
_SPELLED |= {"A.D.", "B.C.", "a.d.", "b.c.", "TZ", "tz"}


@dataclass(frozen=True, slots=True)
class _TemplatePart:
    """One part of a template: a field with its modifiers, or literal text."""

    field: str
    text: str = ""
    fill: bool = True
    ordinal: str = ""


@functools.cache
def _token_pattern() -> re.Pattern[str]:
    """The pattern of template tokens, compiled on first use: most programs never need it."""
    return re.compile(
        r'(?P<quoted>"(?:\\.|[^"\\])*"?)|(?P<prefix>FM|fm|TM|FX|fx)|(?P<field>'
        + "|".join(re.escape(field) for field in _FIELDS)
        + "|"
        + "|".join(re.escape(field.lower()) for field in _FIELDS)
        + r")(?P<ordinal>TH|th)?|(?P<escaped>\\.)|(?P<literal>.)",
        re.DOTALL,
    )


@functools.lru_cache(maxsize=512)
def _split_template(template: str) -> tuple[_TemplatePart, ...]:
    require_template_length(template)
    parts: list[_TemplatePart] = []
    fill = True
    for match in _token_pattern().finditer(template):
        if match["prefix"]:
            if match["prefix"].upper() != "FM":
                raise Unsupported("the TM and FX template modifiers are not supported")
            fill = False
            continue
        if match["quoted"]:
            parts.append(_TemplatePart("", re.sub(r"\\(.)", r"\1", match["quoted"].strip('"'))))
        elif match["escaped"]:
            parts.append(
                _TemplatePart(
                    "", match["escaped"][1] if match["escaped"][1] == '"' else match["escaped"]
                )
            )
        elif match["literal"]:
            parts.append(_TemplatePart("", match["literal"]))
        else:
            field = match["field"]
            name = field if field in _SPELLED else field.upper()
            parts.append(_TemplatePart(name, field, fill, match["ordinal"] or ""))
        fill = True
    return tuple(parts)


def _add_ordinal(number: str, kind: str) -> str:
    if not kind:
        return number
    last = number[-1]
    teen = len(number) > 1 and number[-2] == "1"
    suffix = "th" if teen else {"1": "st", "2": "nd", "3": "rd"}.get(last, "th")
    return number + (suffix.upper() if kind == "TH" else suffix)


@dataclass(frozen=True, slots=True)
class _Moment:
    """The parts of a date, time or interval that fields are taken from."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    micro: int
    date: datetime.date | None
    zone: str = ""
    offset: int = 0


def _numeric_fields(moment: _Moment) -> dict[str, tuple[int, int]]:
    """Field -> (number, width it is padded to)."""
    hour12 = moment.hour % 12 or 12
    numbers = {
        "HH": (hour12, 2), "HH12": (hour12, 2), "HH24": (moment.hour, 2), "MI": (moment.minute, 2),
        "SS": (moment.second, 2), "MS": (moment.micro // 1000, 3), "US": (moment.micro, 6),
        "SSSS": ((moment.hour * 60 + moment.minute) * 60 + moment.second, 0),
        "SSSSS": ((moment.hour * 60 + moment.minute) * 60 + moment.second, 0),
        "YYYY": (moment.year, 4), "YYY": (moment.year % 1000, 3), "YY": (moment.year % 100, 2),
        "Y": (moment.year % 10, 1), "MM": (moment.month, 2), "DD": (moment.day, 2),
        "W": ((moment.day - 1) // 7 + 1, 1),
    }  # fmt: skip
    for digits in range(1, 7):
        numbers[f"FF{digits}"] = (moment.micro // 10 ** (6 - digits), digits)
    if moment.date is not None:
        numbers |= _calendar_fields(moment.date)
    return numbers


def _calendar_fields(date: datetime.date) -> dict[str, tuple[int, int]]:
    iso_year, iso_week, iso_day = date.isocalendar()
    yearday = date.timetuple().tm_yday
    first_iso = datetime.date.fromisocalendar(iso_year, 1, 1)
    return {
        "DDD": (yearday, 3), "D": (date.isoweekday() % 7 + 1, 1), "ID": (iso_day, 1),
        "IDDD": ((date - first_iso).days + 1, 3), "IW": (iso_week, 2),
        "WW": ((yearday - 1) // 7 + 1, 2),
        "IYYY": (iso_year, 4), "IYY": (iso_year % 1000, 3), "IY": (iso_year % 100, 2),
        "I": (iso_year % 10, 1), "CC": ((date.year + 99) // 100, 2),
        "J": (date.toordinal() + 1_721_425, 0), "Q": ((date.month + 2) // 3, 1),
    }  # fmt: skip


def _match_case(text: str, like: str) -> str:
    if like.isupper():
        return text.upper()
    return text.lower() if like.islower() else text


def _zone_words(moment: _Moment) -> dict[str, str]:
    sign, seconds = "-" if moment.offset < 0 else "+", abs(moment.offset)
    hours, minutes = f"{sign}{seconds // 3600:02}", f"{seconds // 60 % 60:02}"
    short = hours if minutes == "00" else f"{hours}:{minutes}"
    return {"TZ": moment.zone, "OF": short, "TZH": hours, "TZM": minutes}


def _spelled_field(part: _TemplatePart, moment: _Moment) -> str | None:
    """The text of a field that is spelled in words."""
    field = part.field
    upper = field.upper()
    if upper in ("AM", "PM", "A.M.", "P.M."):
        half = "pm" if moment.hour % 24 >= 12 else "am"
        half = f"{half[0]}.m." if "." in field else half
        return half.upper() if field.isupper() else half
    if upper in ("AD", "BC", "A.D.", "B.C."):
        return _match_case("A.D." if "." in field else "AD", field)
    if upper in ("TZ", "OF", "TZH", "TZM"):
        zone = _zone_words(moment)[upper]
        return zone.lower() if field == "tz" else zone
    if upper == "RM":
        roman = _ROMAN[moment.month - 1] if moment.month else ""
        return _match_case(roman.ljust(4) if part.fill else roman, field)
    if moment.date is None or upper not in ("MONTH", "MON", "DAY", "DY"):
        return None
    long = (
        calendar.month_name[moment.month]
        if upper[0] == "M"
        else calendar.day_name[moment.date.weekday()]
    )
    if upper in ("MON", "DY"):
        return _match_case(long[:3], field)
    return _match_case(long.ljust(9) if part.fill else long, field)


def _format_moment(moment: _Moment, template: str) -> str:
    numbers = _numeric_fields(moment)
    out: list[str] = []
    for part in _split_template(template):
        if not part.field:
            out.append(part.text)
            continue
        words = _spelled_field(part, moment)
        if words is not None:
            out.append(words)
        elif part.field == "Y,YYY":
            thousands, rest = divmod(moment.year, 1000)
            out.append(_add_ordinal(f"{thousands},{rest:03d}", part.ordinal))
        elif part.field in numbers:
            number, width = numbers[part.field]
            fraction = part.field in ("MS", "US") or part.field.startswith("FF")
            padded = f"{number:0{width}d}" if width and (part.fill or fraction) else str(number)
            out.append(_add_ordinal(padded, part.ordinal))
        else:
            raise Unsupported("this template pattern is not supported", pattern=part.text)
    return "".join(out)


def format_timestamp(value: datetime.datetime, template: str) -> str | None:
    if not template:
        return None
    zone, offset = "", 0
    if value.tzinfo is not None:
        there = value.astimezone(session_zone())
        zone, offset = there.tzname() or "", offset_of(value, session_zone())
        if zone.startswith("UTC") and zone != "UTC":
            zone = format_offset(offset)
        value = session_local(value)
    return _format_moment(
        _Moment(
            value.year, value.month, value.day, value.hour, value.minute, value.second,
            value.microsecond, value.date(), zone, offset,
        ),
        template,
    )  # fmt: skip


_INTERVAL_FIELDS = {
    "YYYY",
    "MM",
    "DD",
    "HH24",
    "HH12",
    "HH",
    "MI",
    "SS",
    "MS",
    "US",
    "AM",
    "am",
    "PM",
    "pm",
}


def format_interval(value: Interval, template: str) -> str | None:
    if not template:
        return None
    if value.months < 0 or value.days < 0 or value.microseconds < 0:
        raise Unsupported("to_char of a negative interval is not supported")
    if any(part.field not in _INTERVAL_FIELDS for part in _split_template(template) if part.field):
        raise Unsupported("this template pattern is not supported for intervals")
    years, months = divmod(value.months, 12)
    hours, rest = divmod(value.microseconds, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    seconds, micro = divmod(rest, SECOND)
    return _format_moment(
        _Moment(years, months, value.days, hours, minutes, seconds, micro, None), template
    )


_WIDTHS = {
    "YYYY": 4,
    "YYY": 3,
    "YY": 2,
    "Y": 1,
    "MM": 2,
    "DD": 2,
    "DDD": 3,
    "HH": 2,
    "HH12": 2,
    "HH24": 2,
}
_WIDTHS |= {"MI": 2, "SS": 2, "MS": 3, "US": 6, "J": 7, "SSSS": 5, "SSSSS": 5}
_WIDTHS |= {f"FF{digits}": digits for digits in range(1, 7)}


class _TemplateReader:
    """A reader of a text by the fields of a template."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.found: dict[str, int] = {}
        self.half = ""

    def read_parts(self, parts: tuple[_TemplatePart, ...]) -> None:
        for i, part in enumerate(parts):
            if part.field:
                self.skip_space()
            # A text that ends early leaves the rest at its default; a longer one is cut.
            if self.at >= len(self.text):
                return
            if part.field:
                self.read_field(part, i + 1 < len(parts) and parts[i + 1].field in _WIDTHS)
            else:
                self.skip_literal(part)

    def skip_space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def skip_literal(self, part: _TemplatePart) -> None:
        if part.text.isspace() or not part.text.isalnum():
            # A separator in the template matches any one separator in the text, or none.
            self.skip_space()
            here = self.text[self.at : self.at + 1]
            if here and not here.isalnum() and (here not in "+-" or part.text in "-/.,: "):
                self.at += 1
            return
        self.at += len(part.text)

    def read_field(self, part: _TemplatePart, digits_follow: bool) -> None:
        upper = part.field.upper()
        if upper in _WIDTHS:
            self.read_number(upper, _WIDTHS[upper], digits_follow)
        elif upper in ("MON", "MONTH"):
            self.read_name("MM", calendar.month_abbr if upper == "MON" else calendar.month_name)
        elif upper in ("DY", "DAY"):
            self.read_name("", calendar.day_abbr if upper == "DY" else calendar.day_name)
        elif upper in ("AM", "PM", "A.M.", "P.M."):
            self.read_half_day()
        else:
            raise Unsupported("this template pattern is not supported", pattern=part.text)

    def read_number(self, field: str, width: int, fixed: bool) -> None:
        # Only numbers directly after each other are separated by their width.
        fraction = field in ("MS", "US") or field.startswith("FF")
        longest = width if fixed or fraction else 9
        match = re.compile(rf"\d{{1,{longest}}}").match(self.text, self.at)
        if match is None:
            if self.text[self.at] in "+-":
                raise Unsupported("a sign inside a date is not supported", text=self.text)
            raise InvalidInput(
                "invalid value for template pattern", sqlstate="22007", pattern=field
            )
        value = int(match[0])
        if fraction:
            scale = 6 if field == "US" else 3 if field == "MS" else int(field[2:])
            self.found["micro"] = round(int(match[0].ljust(scale, "0")) * 10 ** (6 - scale))
        elif field in ("YYY", "YY", "Y") and len(match[0]) < 4:
            self.found["YYYY"] = _near_year(value, len(match[0]))
        else:
            self.found[field] = value
        self.at = match.end()

    def read_name(self, field: str, names: Any) -> None:
        for number, word in enumerate(names):
            if word and self.text[self.at : self.at + len(word)].lower() == word.lower():
                if field:
                    self.found[field] = number
                self.at += len(word)
                return
        raise InvalidInput("invalid value for template pattern", sqlstate="22007", pattern="name")

    def read_half_day(self) -> None:
        match = re.compile(r"[ap]\.?m\.?", re.IGNORECASE).match(self.text, self.at)
        if match is None:
            raise InvalidInput("invalid value for template pattern", sqlstate="22007", pattern="AM")
        self.half = match[0][0].lower()
        self.at = match.end()


def _near_year(value: int, digits: int) -> int:
    """A short year is the one nearest to 2020."""
    if digits <= 2:
        return value + (2000 if value < 70 else 1900)
    return value + (2000 if value < 520 else 1000)


def _date_of(found: dict[str, int]) -> datetime.date:
    if "J" in found:
        return datetime.date.fromordinal(found["J"] - 1_721_425)
    # Without a year it is the year before the first, which Python does not have.
    year = found.get("YYYY", 0)
    if not 1 <= year <= 9999:
        raise unsupported_year(year, "date")
    if "DDD" in found and "MM" not in found:
        if not 1 <= found["DDD"] <= 365 + calendar.isleap(year):
            raise datetime_out_of_range("date")
        return datetime.date(year, 1, 1) + datetime.timedelta(days=found["DDD"] - 1)
    try:
        return datetime.date(year, found.get("MM") or 1, found.get("DD") or 1)
    except ValueError:
        raise datetime_out_of_range("date") from None


def _clock_of(reading: _TemplateReader) -> int:
    found = reading.found
    if "SSSS" in found or "SSSSS" in found:
        return (found.get("SSSS") or found.get("SSSSS", 0)) * SECOND + found.get("micro", 0)
    hour = found.get("HH24", found.get("HH12", found.get("HH", 0)))
    if "HH12" in found or "HH" in found or reading.half:
        if not 1 <= hour <= 12:
            raise InvalidInput("hour is invalid for the 12-hour clock", sqlstate="22007")
        hour = hour % 12 + (12 if reading.half == "p" else 0)
    minute, second = found.get("MI", 0), found.get("SS", 0)
    if hour > 23 or minute > 59 or second > 59:
        raise datetime_out_of_range("timestamp")
    return hour * HOUR + minute * MINUTE + second * SECOND + found.get("micro", 0)


def _read_text(text: str, template: str) -> _TemplateReader:
    reading = _TemplateReader(text)
    reading.read_parts(_split_template(template))
    return reading


def to_date(text: str, template: str) -> datetime.date:
    reading = _read_text(text, template)
    _clock_of(reading)
    return _date_of(reading.found)


def to_timestamp(text: str, template: str) -> datetime.datetime:
    reading = _read_text(text, template)
    date = _date_of(reading.found)
    return session_instant(
        add_microseconds(datetime.datetime(date.year, date.month, date.day), _clock_of(reading))
    )


FUNCTIONS: tuple[Function, ...] = (
    stable("to_char(timestamp,text) text", format_timestamp, UDF),
    stable("to_char(timestamptz,text) text", format_timestamp, UDF),
    stable("to_char(interval,text) text", format_interval, UDF),
    stable("to_date(text,text) date", to_date, UDF),
    stable("to_timestamp(text,text) timestamptz", to_timestamp, UDF),
)
