"""View state encoded by columns has the bytes that are encoded row by row."""

from __future__ import annotations

import datetime
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from belvedere import types
from belvedere.codec import accumulator
from belvedere.codec.arrow.arrow_to_rows import arrow_to_row_array, split_binary
from belvedere.codec.arrow.arrow_to_state import (
    arrow_to_keys,
    encode_state_values,
    split_into_pairs,
)
from belvedere.codec.arrow.rows_to_arrow import arrow_type
from belvedere.codec.keys import KeyCodec, KeyColumn
from belvedere.codec.rows import RowLayout, Slot
from belvedere.types import SqlType

VALUES: dict[SqlType, list[Any]] = {
    types.SMALLINT: [-(2**15), -1, 0, 1, 2**15 - 1],
    types.INTEGER: [-(2**31), -1, 0, 7, 2**31 - 1],
    types.BIGINT: [-(2**63), -1, 0, 256, 2**63 - 1],
    types.DATE: [datetime.date(1, 1, 1), datetime.date(1970, 1, 1), datetime.date(9999, 12, 31)],
    types.TIMESTAMP: [datetime.datetime(1, 1, 1), datetime.datetime(2026, 1, 2, 3, 4, 5, 6)],
    types.TIMESTAMPTZ: [datetime.datetime(1969, 12, 31, 23, tzinfo=datetime.UTC)],
    types.TEXT: ["", "a", "a ", "\x01", "é", "ab", "\U0001f600"],
}


def make_columns(rng: random.Random, chosen: list[SqlType], rows: int, *, nulls: bool) -> Any:
    values = [
        [None if nulls and rng.random() < 0.3 else rng.choice(VALUES[one]) for _ in range(rows)]
        for one in chosen
    ]
    arrays = [pa.array(some, arrow_type(one)) for some, one in zip(values, chosen, strict=True)]
    return list(zip(*values, strict=True)), arrays


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("descending", [False, True])
def test_keys_and_values_are_those_of_rows(
    rng: random.Random, nulls: bool, descending: bool
) -> None:
    for _ in range(40):
        known = [one for one in VALUES if not descending or one is not types.TEXT]
        chosen = [rng.choice(known) for _ in range(rng.randint(1, 4))]
        rows, arrays = make_columns(rng, chosen, 30, nulls=nulls)
        first = rng.choice([None, True, False])
        codec = KeyCodec(tuple(KeyColumn(one, descending, first) for one in chosen), b"pre")
        keys = arrow_to_keys(codec, arrays)
        assert keys is not None
        assert split_binary(keys) == [codec.encode(row) for row in rows]
        layout = RowLayout(tuple(Slot(one, None) for one in chosen))
        batch = pa.record_batch(arrays, [str(at) for at in range(len(arrays))])
        amounts = np.array([[rng.randint(1, 9), rng.randint(-(2**62), 2**62)] for _ in rows])
        states = encode_state_values(arrow_to_row_array(layout, batch), amounts)
        expected = [
            accumulator.encode(layout.encode(row), (int(some[0]), int(some[1])))
            for row, some in zip(rows, amounts, strict=True)
        ]
        assert split_binary(states) == expected
        cut = [pair for some in split_into_pairs(keys, states, 7) for pair in some]
        assert cut == list(zip(split_binary(keys), expected, strict=True))


def test_what_has_no_form_by_columns_is_left_to_rows() -> None:
    text, number = pa.array(["a\0b"]), pa.array([1.5])
    assert arrow_to_keys(KeyCodec((KeyColumn(types.TEXT),)), [text]) is None
    assert arrow_to_keys(KeyCodec((KeyColumn(types.TEXT, True),)), [pa.array(["a"])]) is None
    assert arrow_to_keys(KeyCodec((KeyColumn(types.DOUBLE),)), [number]) is None
    assert arrow_to_keys(KeyCodec(()), []) is None
