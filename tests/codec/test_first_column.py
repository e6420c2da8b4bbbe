"""Where the first column of a key ends: what a lock on all rows with one value goes by."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from belvedere.codec.keys import KeyCodec, KeyColumn
from belvedere.errors import Corruption
from belvedere.types import BIGINT, BOOLEAN, BYTEA, DATE, DOUBLE, NUMERIC, TEXT, SqlType
from belvedere.types import UUID as UUID_TYPE

PREFIX = b"\x10\x00\x00\x00\x64"
VALUES: list[tuple[SqlType, list[Any]]] = [
    (BOOLEAN, [True, False]),
    (BIGINT, [0, -1, 2**62]),
    (DOUBLE, [0.0, -1.5]),
    (TEXT, ["", "a", "a\x00b", "\x00\x00", "\xff"]),
    (BYTEA, [b"", b"\x00", b"\xff\xff"]),
    (NUMERIC, [Decimal(0), Decimal("-12.5"), Decimal("1e30")]),
    (DATE, [datetime.date(2026, 1, 1)]),
    (UUID_TYPE, [UUID(int=5)]),
]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("type_", "values"), VALUES, ids=lambda each: str(each)[:12])
def test_it_ends_where_the_second_one_begins(
    type_: SqlType, values: list[Any], descending: bool
) -> None:
    codec = KeyCodec((KeyColumn(type_, descending), KeyColumn(BIGINT)), PREFIX)
    for value in (*values, None):
        first = codec.encode_prefix((value,))
        assert codec.first_column_end(codec.encode((value, 7))) == len(first)
        assert codec.first_column_end(first) == len(first)


@pytest.mark.parametrize("bound", [PREFIX, PREFIX + b"\x01", PREFIX + b"\x01\x80\x00", b"other"])
def test_a_bound_without_a_whole_column_has_none(bound: bytes) -> None:
    codec = KeyCodec((KeyColumn(BIGINT), KeyColumn(BIGINT)), PREFIX)
    with pytest.raises(Corruption):
        codec.first_column_end(bound)


@pytest.mark.parametrize("bound", [PREFIX + b"\x01", PREFIX + b"\x01ab", PREFIX + b"\x01a\x00"])
def test_text_that_is_cut_off_is_no_column(bound: bytes) -> None:
    with pytest.raises(Corruption):
        KeyCodec((KeyColumn(TEXT),), PREFIX).first_column_end(bound)
