"""The fast decoder of a record of one change agrees with the general one."""

from __future__ import annotations

import random

import pytest

from belvedere.codec.record import PlainChange, decode_record, encode_record
from belvedere.codec.single_change_record import single_change

CHANGES: list[PlainChange] = [
    (100, b"key", None, b"new"),
    (101, b"", b"old", None),
    (102, b"k" * 300, b"", b""),
    (2**32 - 1, b"key", b"old row", b"new row"),
]


def record(*changes: PlainChange) -> bytes:
    return encode_record(7, 1, 2, 3, b"t" * 16, changes)


@pytest.mark.parametrize("change", CHANGES)
def test_both_ways_say_the_same(change: PlainChange) -> None:
    data = record(change)
    assert single_change(data) == (7, *next(decode_record(data).changes()))


def test_a_record_of_several_changes_is_left_to_the_long_way() -> None:
    assert single_change(record(*CHANGES)) is None
    assert single_change(record()) is None


def test_damage_is_left_to_the_long_way(rng: random.Random) -> None:
    data = record(CHANGES[3])
    for cut in (0, 10, 64, 83, len(data) - 1):
        assert single_change(data[:cut]) is None
    for _ in range(200):
        at = rng.randrange(len(data))
        damaged = bytearray(data)
        damaged[at] ^= 1 << rng.randrange(8)
        assert single_change(bytes(damaged)) is None
