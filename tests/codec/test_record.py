from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from belvedere.codec.arrow.records_to_arrow import SCHEMA, records_to_arrow
from belvedere.codec.record import (
    DELETE,
    HEADER_BYTES,
    INSERT,
    UPDATE,
    Change,
    decode_record,
    encode_record,
    encode_record_with_hash,
)
from belvedere.errors import Corruption, InvalidInput
from tests.codec.values import examples

TRANSACTION = bytes(range(16))
ROWS = st.sampled_from((b"", b"\0", b"x")) | st.binary(max_size=40)


def changes() -> st.SearchStrategy[Change]:
    relation = st.integers(0, 2**32 - 1)
    return (
        st.builds(Change, relation, ROWS, st.none(), ROWS)
        | st.builds(Change, relation, ROWS, ROWS, ROWS)
        | st.builds(Change, relation, ROWS, ROWS, st.none())
    )


def record_arguments() -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(
        st.integers(0, 2**63 - 1),
        st.integers(0, 2**64 - 1),
        st.integers(0, 2**64 - 1),
        st.integers(-(2**63), 2**63 - 1),
        st.binary(min_size=16, max_size=16),
        st.lists(changes(), max_size=5),
    )


@settings(max_examples=examples(200))
@given(record_arguments())
def test_a_record_comes_back_as_it_was(arguments: tuple[Any, ...]) -> None:
    data = encode_record(*arguments)
    record = decode_record(data, arguments[0])
    position, previous_hash, catalog_version, time, transaction, wanted = arguments
    assert record.position == position
    assert record.previous_hash == previous_hash
    assert record.catalog_version == catalog_version
    assert record.time == time
    assert record.transaction == transaction
    assert record.change_count == len(wanted)
    assert list(record.changes()) == wanted
    assert record.hash == encode_record_with_hash(*arguments)[1] == xxh3_64_intdigest(data[8:])


def test_an_empty_row_and_no_row_stay_apart() -> None:
    wanted = [Change(1, b"", None, b""), Change(1, b"", b"", None), Change(1, b"", b"", b"")]
    for made in ([wanted[0]], [wanted[1]], [wanted[2]], wanted):
        record = decode_record(encode_record(1, 0, 0, 0, TRANSACTION, made))
        assert list(record.changes()) == made


def test_every_flipped_bit_and_every_cut_is_noticed() -> None:
    made = [Change(7, b"key", None, b"new"), Change(8, b"k", b"old", None)]
    data = encode_record(42, 7, 3, 5, TRANSACTION, made)
    for index in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[index] ^= 1 << bit
            with pytest.raises(Corruption) as caught:
                decode_record(bytes(damaged), 42)
            assert caught.value.facts["log_position"] == 42
            with pytest.raises(Corruption):
                records_to_arrow([data, bytes(damaged)])
    for cut in range(len(data)):
        with pytest.raises(Corruption):
            decode_record(data[:cut], 42)
        with pytest.raises(Corruption):
            records_to_arrow([data[:cut]])
    with pytest.raises(Corruption):
        decode_record(data + b"\0", 42)


def test_a_record_under_another_position_is_corruption() -> None:
    data = encode_record(42, 0, 0, 0, TRANSACTION, [])
    with pytest.raises(Corruption) as caught:
        decode_record(data, 43)
    assert caught.value.facts == {"log_position": 43, "found": 42}


def with_right_hash(data: bytes) -> bytes:
    return xxh3_64_intdigest(data[8:]).to_bytes(8, "little") + data[8:]


@pytest.mark.parametrize(
    ("offset", "patch"),
    [
        (HEADER_BYTES + 4, b"\x00"),
        (HEADER_BYTES + 4, b"\x04"),
        (HEADER_BYTES + 8, b"\xff"),
        (HEADER_BYTES + 12, b"\x00"),
        (HEADER_BYTES + 16, b"\xff"),
        (HEADER_BYTES - 4, b"\xff"),
    ],
)
def test_a_broken_directory_is_corruption_even_under_a_right_hash(
    offset: int, patch: bytes
) -> None:
    data = encode_record(42, 0, 0, 0, TRANSACTION, [Change(7, b"key", b"old", b"new")])
    broken = with_right_hash(data[:offset] + patch + data[offset + 1 :])
    with pytest.raises(Corruption):
        list(decode_record(broken).changes())
    with pytest.raises(Corruption):
        records_to_arrow([broken])


@pytest.mark.parametrize(
    "arguments",
    [
        (-1, 0, 0, 0, TRANSACTION, []),
        (1, 2**64, 0, 0, TRANSACTION, []),
        (1, 0, 0, "now", TRANSACTION, []),
        (1, 0, 0, 0, b"short", []),
        (1, 0, 0, 0, bytes(17), []),
        (1, 0, 0, 0, TRANSACTION, [Change(1, b"k", None, None)]),
        (1, 0, 0, 0, TRANSACTION, [Change(1, b"k", None, None)] * 2),
        (1, 0, 0, 0, TRANSACTION, [Change(2**32, b"k", None, b"")]),
        (1, 0, 0, 0, TRANSACTION, [Change(1, "k", None, b"")]),  # type: ignore[arg-type]
        (1, 0, 0, 0, TRANSACTION, [Change(1, b"k", None, 5)] * 2),  # type: ignore[arg-type]
    ],
)
def test_a_record_that_cannot_be_right_is_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidInput):
        encode_record(*arguments)


@settings(max_examples=examples(100))
@given(st.lists(record_arguments(), max_size=6))
def test_arrow_holds_every_change_in_order(records: list[tuple[Any, ...]]) -> None:
    batch = records_to_arrow([encode_record(*arguments) for arguments in records])
    batch.validate(full=True)
    assert batch.schema == SCHEMA
    expected = []
    for position, _, _, time, transaction, made in records:
        for change in made:
            kind = UPDATE
            kind = INSERT if change.old is None else kind
            kind = DELETE if change.new is None else kind
            expected.append((position, time, transaction, change.relation, kind, *change[1:]))
    columns = [batch.column(name) for name in SCHEMA.names]
    columns[1] = columns[1].cast("int64")
    assert list(zip(*(column.to_pylist() for column in columns))) == expected
