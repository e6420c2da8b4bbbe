"""Rows of several texts, which are decoded together where they are ASCII."""

from __future__ import annotations

import pytest

from belvedere.codec.rows import RowLayout, Slot
from belvedere.errors import Corruption
from belvedere.types import BYTEA, INTEGER, TEXT

ROWS = [
    (1, "a", "bc", "", "def"),
    (2, "", "", "", ""),
    (3, "ä", "b", "c", "d"),
    (4, "a", "b", "c", "€"),
    (5, "a" * 300, "b" * 70_000, "c", "d"),
    (6, None, "b", "c", "d"),
    (7, "a", "b", "c", None),
    (None, "a", "b", "c", "d"),
]


def layout_of(*types: object) -> RowLayout:
    return RowLayout(tuple(Slot(one) for one in types))  # type: ignore[arg-type]


@pytest.mark.parametrize("row", ROWS)
def test_rows_and_parts_of_them_come_back(row: tuple[object, ...]) -> None:
    layout = layout_of(INTEGER, TEXT, TEXT, TEXT, TEXT)
    stored = layout.encode(row)
    assert layout.decode(stored) == row
    for slots in ((4, 1, 2), (1, 2, 3), (0, 4), (2,), (3, 3, 3, 0)):
        assert layout.projector(slots)(stored) == tuple(row[slot] for slot in slots)


def test_bytes_beside_texts_are_not_taken_for_text() -> None:
    layout = layout_of(TEXT, BYTEA, TEXT, TEXT)
    row = ("a", b"\xff\x00", "b", "c")
    assert layout.decode(layout.encode(row)) == row


def test_text_that_is_not_utf8_is_damage() -> None:
    layout = layout_of(TEXT, TEXT, TEXT)
    stored = layout.encode(("abc", "def", "ghi"))
    with pytest.raises(Corruption):
        layout.decode(stored[:-1] + b"\xff")
    with pytest.raises(Corruption):
        layout.decode(stored[:-1])
