from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from belvedere.codec import keyspace
from belvedere.errors import Corruption, InvalidInput

RELATIONS = st.sampled_from((0, 1, 99, 100, 255, 2**24, 2**32 - 2, 2**32 - 1)) | st.integers(
    0, 2**32 - 1
)


@given(st.text())
def test_a_meta_key_parses_back(name: str) -> None:
    assert keyspace.parse_key(keyspace.meta_key(name)) == keyspace.MetaKey(name)


@given(st.integers(0, keyspace.POSITION_MAX))
def test_a_log_key_parses_back(position: int) -> None:
    assert keyspace.parse_key(keyspace.log_key(position)) == keyspace.LogKey(position)


@given(RELATIONS)
def test_a_watermark_key_parses_back(group: int) -> None:
    assert keyspace.parse_key(keyspace.watermark_key(group)) == keyspace.WatermarkKey(group)


@given(RELATIONS, st.binary())
def test_a_row_key_parses_back_and_lies_in_its_relation_alone(relation: int, key: bytes) -> None:
    whole = keyspace.row_prefix(relation) + key
    assert keyspace.parse_key(whole) == keyspace.RowKey(relation, key)
    for other in (max(relation - 1, 0), relation, min(relation + 1, 2**32 - 1)):
        start, end = keyspace.relation_range(other)
        assert (start <= whole < end) == (other == relation)


@given(st.lists(st.integers(0, keyspace.POSITION_MAX), min_size=2, max_size=2))
def test_log_keys_sort_by_position(positions: list[int]) -> None:
    low, high = sorted(positions)
    assert (keyspace.log_key(low) < keyspace.log_key(high)) == (low < high)


@given(*[st.integers(0, 300) | st.integers(0, keyspace.POSITION_MAX)] * 3)
def test_a_log_range_holds_what_is_after_from_and_not_after_to(
    position: int, after: int, to: int
) -> None:
    start, end = keyspace.log_range(after, to)
    assert start <= end
    assert (start <= keyspace.log_key(position) < end) == (after < position <= to)


@given(st.binary(max_size=4), st.binary(max_size=4))
@example(b"\xff", b"")
@example(b"\x00\xff", b"\xff\xff")
def test_next_prefix_is_the_smallest_above_every_key_with_the_prefix(
    prefix: bytes, other: bytes
) -> None:
    end = keyspace.next_prefix(prefix)
    if end is None:
        assert prefix == b"\xff" * len(prefix)
        return
    assert prefix + other < end
    if not other.startswith(prefix) and other > prefix:
        assert other >= end


def test_families_do_not_overlap() -> None:
    ranges = [
        keyspace.meta_range(),
        (keyspace.log_key(0), keyspace.log_range(0, keyspace.POSITION_MAX)[1]),
        keyspace.watermark_range(),
        (keyspace.row_prefix(0), keyspace.relation_range(keyspace.RELATION_MAX)[1]),
    ]
    for (_, end), (start, _) in itertools.pairwise(ranges):
        assert end <= start


@pytest.mark.parametrize(
    "key",
    [b"", b"\x00", b"\x04", b"\xff", b"\x02\x00", b"\x02" + bytes(9), b"\x03\x00", b"\x10\x00",
     b"\x01\xff"],
)  # fmt: skip
def test_a_key_of_no_family_is_corruption(key: bytes) -> None:
    with pytest.raises(Corruption):
        keyspace.parse_key(key)


@pytest.mark.parametrize("number", [-1, 2**32])
def test_an_id_out_of_range_is_refused(number: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        keyspace.row_prefix(number)
    assert caught.value.sqlstate == "22003"


@pytest.mark.parametrize("position", [-1, 2**63])
def test_a_position_out_of_range_is_refused(position: int) -> None:
    with pytest.raises(InvalidInput):
        keyspace.log_key(position)
    with pytest.raises(InvalidInput):
        keyspace.log_range(0, position)
