"""State of views as rows: any slots, in any order, give what all of them give."""

from __future__ import annotations

import itertools

import pytest

from belvedere.codec import accumulator
from belvedere.codec.rows import RowLayout, Slot
from belvedere.codec.view_state import StateLayout
from belvedere.errors import Corruption
from belvedere.types import INTEGER, TEXT

PAYLOAD = RowLayout((Slot(INTEGER), Slot(TEXT), Slot(INTEGER)))
LAYOUT = StateLayout(PAYLOAD, 2)
STATES = {
    "amounts of eight bytes": (3, -7),
    "amounts of any length": (1, 2**90),
    "other than two amounts": (5, 6, 7),
}


@pytest.mark.parametrize("name", STATES)
def test_slots_in_any_order(name: str) -> None:
    row = (4, "four", None)
    state = accumulator.encode(PAYLOAD.encode(row), STATES[name])
    whole = LAYOUT.decode(state)
    assert whole == (*row, *STATES[name])
    for count in range(4):
        for slots in itertools.product(range(5), repeat=count):
            assert LAYOUT.projector(slots)(state) == tuple(whole[slot] for slot in slots)


def test_bytes_that_are_no_state() -> None:
    state = accumulator.encode(PAYLOAD.encode((1, "x", 2)), (1, 1))
    for broken in (b"", state[:5], state[:20], state[:-1], state + b"x", b"\x09" + state[1:]):
        with pytest.raises(Corruption):
            LAYOUT.projector((0, 3))(broken)


def test_no_columns_at_all() -> None:
    layout = StateLayout(RowLayout(()), 1)
    state = accumulator.encode(RowLayout(()).encode(()), (2,))
    assert layout.projector((0,))(state) == (2,)
