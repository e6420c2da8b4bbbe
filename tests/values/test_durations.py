"""One grammar for lengths of time, wherever one is written."""

from __future__ import annotations

import pytest

from belvedere.values.durations import parse_duration_us

SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR

TAKEN = {
    "250 ms": 250_000,
    "250ms": 250_000,
    " 1.5 s ": 1_500_000,
    "1.001 s": 1_001_000,
    "0.9 us": 0,
    "2 min": 120 * SECOND,
    "3 h": 3 * HOUR,
    "1 d": DAY,
    "1 hour": HOUR,
    "2 HOURS": 2 * HOUR,
    "5 minutes": 300 * SECOND,
    "1h30m": HOUR + HOUR // 2,
    "1 day 2 hours": DAY + 2 * HOUR,
    "01:30": HOUR + HOUR // 2,
    "1 12:00:00": DAY + DAY // 2,
    "@ 1 minute": 60 * SECOND,
    "1 month": 30 * DAY,
    "PT5M": 300 * SECOND,
    "P1DT12H": DAY + DAY // 2,
    "00:00": 0,
}
REFUSED = [
    *("", "soon", "5", "1.5", "-1 s", "1 hour ago", "-PT5M", "1 s 2 s", "infinity", "P", "5 moons"),
    "9" * 40 + " s",
    "1000000000 d",
]


@pytest.mark.parametrize("text", TAKEN)
def test_what_postgresql_takes_as_a_setting_or_as_an_interval_is_taken(text: str) -> None:
    assert parse_duration_us(text) == TAKEN[text]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    assert parse_duration_us(text) is None


def test_a_number_has_the_unit_of_its_place() -> None:
    assert parse_duration_us("1500", bare_unit="ms") == 1_500_000
    assert parse_duration_us("1500 s", bare_unit="ms") == 1500 * SECOND
    assert parse_duration_us("-5", bare_unit="ms") is None
