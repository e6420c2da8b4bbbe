"""Patches of stored rows: the same bytes as encoding the changed row."""

from __future__ import annotations

import random
from typing import Any

import pytest

from belvedere.codec.rows import RowLayout, Slot
from belvedere.types import BIGINT, DOUBLE, INTEGER, SMALLINT, TEXT, SqlType

KINDS: tuple[SqlType, ...] = (INTEGER, TEXT, BIGINT, SMALLINT, DOUBLE, TEXT)


def draw_value(rng: random.Random, type_: SqlType) -> Any:
    if rng.random() < 0.2:
        return None
    if type_ == TEXT:
        return "x" * rng.randint(0, 5)
    return rng.random() if type_ == DOUBLE else rng.randint(-30_000, 30_000)


@pytest.mark.parametrize("seed", range(40))
def test_a_patched_row_is_the_encoded_row(seed: int) -> None:
    rng = random.Random(seed)
    types = [rng.choice(KINDS) for _ in range(rng.randint(1, 20))]
    layout = RowLayout(tuple(Slot(type_) for type_ in types))
    numbers = [at for at, type_ in enumerate(types) if type_ != TEXT]
    for _ in range(20):
        row = tuple(draw_value(rng, type_) for type_ in types)
        slots = tuple(rng.sample(numbers, rng.randint(min(1, len(numbers)), len(numbers))))
        patch = layout.patcher(slots)
        assert (patch is None) == (not slots)
        if patch is None:
            continue
        values = [draw_value(rng, types[slot]) for slot in slots]
        changed = list(row)
        for slot, value in zip(slots, values, strict=True):
            changed[slot] = value
        found = patch(layout.encode(row), *values)
        assert found == (None if None in values else layout.encode(tuple(changed)))


def test_what_does_not_fit_is_left_to_the_encoder() -> None:
    layout = RowLayout((Slot(SMALLINT), Slot(DOUBLE)))
    row = layout.encode((1, 2.0))
    patch = layout.patcher((0, 1))
    assert patch is not None
    assert patch(row, 40_000, 1.0) is None
    assert patch(row, True, 1.0) is None
    assert patch(row, 1, 1) is None


def test_an_older_row_and_a_text_have_no_patch() -> None:
    older, layout = RowLayout((Slot(INTEGER),)), RowLayout((Slot(INTEGER), Slot(TEXT)))
    patch = layout.patcher((0,))
    assert patch is not None
    assert patch(older.encode((1,)), 2) is None
    assert layout.patcher((0, 1)) is None


def test_required_slots_are_refused_when_null() -> None:
    layout = RowLayout((Slot(INTEGER), Slot(TEXT)))
    encode = layout.required_encoder((1,))
    assert encode((None, "a")) == layout.encode((None, "a"))
    assert encode((1, None)) is None


def test_rows_agree_in_slots_by_value() -> None:
    layout = RowLayout((Slot(INTEGER), Slot(TEXT), Slot(INTEGER)))
    one, other = layout.encode((1, "a", 5)), layout.encode((1, "b", 6))
    assert layout.equality_test((0,))(one, other)
    assert not layout.equality_test((1,))(one, other)
    assert not layout.equality_test((0, 2))(one, other)
    later = layout.encode((1, None, 5))
    assert layout.equality_test((0, 2))(one, later)
