"""Lengths of time in options, settings and commands: '250 ms', '1 hour', 'PT5M'.

The parser accepts PostgreSQL's form of a setting (a number with us, ms, s, min, h or d) and its
forms of an INTERVAL: any of its units and their spellings, several of them ('1h30m'), a clock
('01:30'), ISO 8601. A month has 30 days, as in the comparison of intervals. The parser refuses
negative durations, and a number without a unit unless the caller gives one.
"""

from __future__ import annotations

import re
from fractions import Fraction

from belvedere.errors import InvalidInput, Unsupported
from belvedere.values.intervals import parse_interval
from belvedere.values.numbers import INT8_MAX

UNITS_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_ONE_UNIT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d)?\s*")
_BARE = re.compile(r"\s*[-+]?[\d.]+\s*")


def parse_duration_us(text: str, *, bare_unit: str | None = None) -> int | None:
    """A duration in whole microseconds; None for any other text. A number without a unit has the
    unit `bare_unit`, and is refused when that is None."""
    length_us = _read_one_unit(text, bare_unit)
    if length_us is None:
        length_us = _read_interval(text)
    return length_us if length_us is not None and 0 <= length_us <= INT8_MAX else None


def _read_one_unit(text: str, bare_unit: str | None) -> int | None:
    found = _ONE_UNIT.fullmatch(text)
    unit = None if found is None else found[2] or bare_unit
    return None if found is None or unit is None else int(Fraction(found[1]) * UNITS_US[unit])


def _read_interval(text: str) -> int | None:
    if _BARE.fullmatch(text):
        return None
    try:
        return parse_interval(text).span
    except (InvalidInput, Unsupported):
        return None
