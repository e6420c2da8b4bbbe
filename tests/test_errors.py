"""The error tree: what a caller can rely on in any error."""

from __future__ import annotations

import pytest

from belvedere.errors import (
    Corruption,
    Error,
    InvalidInput,
    Retry,
    Unavailable,
    Unsupported,
)


@pytest.mark.parametrize(
    ("kind", "sqlstate"),
    [
        (InvalidInput, "22000"),
        (Retry, "40001"),
        (Unsupported, "0A000"),
        (Unavailable, "58000"),
        (Corruption, "XX001"),
    ],
)
def test_each_class_has_a_default_sqlstate_that_can_be_refined(
    kind: type[Error], sqlstate: str
) -> None:
    assert kind("it is so").sqlstate == sqlstate
    assert kind("it is so", sqlstate="42P01").sqlstate == "42P01"


def test_message_stays_constant_and_facts_are_fields() -> None:
    error = InvalidInput("key too long", bytes=70_000, bytes_max=65_536)
    assert error.message == "key too long"
    assert error.facts == {"bytes": 70_000, "bytes_max": 65_536}


def test_text_shows_facts_detail_and_hint() -> None:
    error = Unavailable("store is in use", detail="opened at noon", hint="close it", pid=7)
    assert str(error) == "store is in use (pid=7)\ndetail: opened at noon\nhint: close it"


def test_retry_carries_the_position_it_lost_to() -> None:
    assert Retry("row changed", lost_to=12, table="t").lost_to == 12
    assert Retry("deadlock").lost_to == 0
