"""Records of many changes: the bytes that encoding them one by one gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belvedere.codec import bulk_record
from belvedere.codec.bulk_record import encode_many_changes
from belvedere.codec.keyspace import ROW_PREFIX_BYTES, row_prefix
from belvedere.codec.record import Change, encode_record_with_hash, encode_stored_changes
from belvedere.errors import InvalidInput, Unavailable
from tests.codec.test_record import TRANSACTION, changes
from tests.codec.values import examples

HEADER = (7, 2**64 - 1, 3, -5, TRANSACTION)


def stored_keys(made: Sequence[Change]) -> list[bytes]:
    return [row_prefix(1)[:1] + one.relation.to_bytes(4) + one.key for one in made]


def encode_one_by_one(made: Sequence[Change]) -> tuple[bytes, int]:
    stored = [(key, one.old, one.new, 0) for key, one in zip(stored_keys(made), made, strict=True)]
    return encode_stored_changes(*HEADER, stored)


def encode_by_columns(made: Sequence[Change]) -> tuple[bytes, int]:
    keys = stored_keys(made)
    assert all(len(key) >= ROW_PREFIX_BYTES for key in keys)
    return encode_many_changes(*HEADER, keys, [one.old for one in made], [one.new for one in made])


@settings(max_examples=examples(200))
@given(st.lists(changes(), min_size=1, max_size=20))
def test_columns_give_the_same_record(made: list[Change]) -> None:
    expected = encode_record_with_hash(*HEADER, made)
    assert encode_by_columns(made) == expected
    assert encode_one_by_one(made) == expected


@pytest.mark.parametrize("encode", [encode_by_columns, encode_one_by_one])
def test_a_change_needs_an_old_or_a_new_row(
    encode: Callable[[Sequence[Change]], tuple[bytes, int]],
) -> None:
    with pytest.raises(InvalidInput, match="old or a new row"):
        encode([Change(1, b"a", b"x", None), Change(1, b"b", None, None)])


def test_a_record_that_is_too_large_is_refused_with_its_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bulk_record, "RECORD_BYTES_MAX", 2**20)
    made = [Change(1, bytes([at]), None, bytes(2**18)) for at in range(5)]
    with pytest.raises(Unavailable, match="transaction is too large") as caught:
        encode_by_columns(made)
    assert caught.value.sqlstate == "53200"
    assert caught.value.facts["size_mb"] == caught.value.facts["size_mb_max"] == 1
