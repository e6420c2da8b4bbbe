"""Whether an entry may have a value that keys keep by a digest, told without reading it."""

from __future__ import annotations

import pytest

from belvedere.codec.keys import KeyCodec, KeyColumn
from belvedere.codec.scalars import LongValues, is_shortened
from belvedere.txn.exact_order import sort_runs
from belvedere.types import BYTEA, TEXT, Row

CUT = 100


def _refuse_to_read(entry: bytes) -> Row:
    raise AssertionError("an entry without long values was read")


@pytest.mark.parametrize(
    "value",
    [
        *("a" * CUT, "a" * (CUT + 1), "é" * (CUT // 2), "é" * (CUT // 2 + 1), "", None),
        *(b"\0" * (CUT // 2), b"\0" * (CUT // 2 + 1), b"a" * CUT, b"a" * (CUT + 1)),
    ],
)
def test_a_value_is_shortened_where_its_key_is(value: str | bytes | None) -> None:
    long = LongValues(CUT, _refuse_to_read)
    type_ = BYTEA if isinstance(value, bytes) else TEXT
    key = KeyCodec((KeyColumn(type_),), long=long)
    differs = key.encode((value,)) != key.exact.encode((value,))
    assert is_shortened(value, CUT) == differs


@pytest.mark.parametrize("reverse", [False, True])
def test_wide_entries_of_short_values_are_passed_on_as_they_are(reverse: bool) -> None:
    codec = KeyCodec((KeyColumn(TEXT), KeyColumn(TEXT)), long=LongValues(CUT, _refuse_to_read))
    batches = [[b"x" * CUT, b"y" * (CUT // 2 + 10)], [b"\0" * (CUT // 2)]]
    assert list(sort_runs(codec, batches, reverse=reverse)) == batches


def test_an_entry_that_may_have_a_long_value_is_read() -> None:
    codec = KeyCodec((KeyColumn(TEXT),), long=LongValues(CUT, _refuse_to_read))
    with pytest.raises(AssertionError, match="was read"):
        list(sort_runs(codec, [[b"\0" * (CUT // 2 + 1)]], reverse=False))
