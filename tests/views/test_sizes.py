"""How many rows relations have: counted once, then followed."""

from __future__ import annotations

import pytest

from belvedere.txn.border import RowChange
from belvedere.views.sizes import SHARE, Sizes, Span
from belvedere.views.window import Stretch

TABLE, OTHER, VIEW = 7, 8, 9
CAME = RowChange(b"a", None, b"x")
WENT = RowChange(b"b", b"x", None)
CHANGED = RowChange(b"c", b"x", b"y")


class Counting:
    """Counts how often it is asked; every count takes a second."""

    def __init__(self) -> None:
        self.asked, self.rows, self.now = 0, 100.0, 0.0

    def __call__(self, relation: int) -> float:
        self.asked += 1
        self.now += 1.0
        return self.rows


@pytest.fixture
def count() -> Counting:
    return Counting()


@pytest.fixture
def sizes(count: Counting) -> Sizes:
    made = Sizes(lambda: count.now)
    made.count = count
    return made


def stretch(*changes: RowChange, relation: int = TABLE) -> Stretch:
    return Stretch({relation: {change.key: change for change in changes}}, len(changes))


def test_a_table_is_counted_once_and_then_followed(sizes: Sizes, count: Counting) -> None:
    assert sizes.table(TABLE, Span(0, 5)) == 100.0
    sizes.moved(Span(5, 8), stretch(CAME, CHANGED))
    assert sizes.table(TABLE, Span(8, 9)) == 101.0
    sizes.moved(Span(8, 9), stretch(WENT, CHANGED))
    assert sizes.table(TABLE, Span(9, 9)) == 100.0
    assert count.asked == 1


def test_a_stretch_counts_once_however_many_units_take_it_in(sizes: Sizes) -> None:
    sizes.table(TABLE, Span(0, 5))
    for _ in range(3):
        sizes.moved(Span(5, 8), stretch(CAME))
    assert sizes.table(TABLE, Span(8, 8)) == 101.0


def test_a_table_is_counted_again_when_a_stretch_was_missed(sizes: Sizes, count: Counting) -> None:
    sizes.table(TABLE, Span(0, 5))
    sizes.moved(Span(6, 8), stretch(CAME))
    count.rows = 500.0
    assert sizes.table(TABLE, Span(8, 9)) == 500.0
    assert count.asked == 2


def test_a_stretch_of_other_tables_says_nothing(sizes: Sizes, count: Counting) -> None:
    sizes.table(TABLE, Span(0, 5))
    sizes.moved(Span(5, 8), stretch(CAME, relation=OTHER))
    sizes.table(TABLE, Span(8, 9))
    assert count.asked == 2


def test_who_is_behind_takes_what_is_known_of_later(sizes: Sizes, count: Counting) -> None:
    sizes.table(TABLE, Span(0, 5))
    assert sizes.table(TABLE, Span(2, 9)) == 100.0
    assert count.asked == 1


def test_counting_states_takes_a_small_part_of_all_time(sizes: Sizes, count: Counting) -> None:
    sizes.state(VIEW)
    for _ in range(200):
        count.now += 0.5
        sizes.state(VIEW)
    assert count.asked <= 1 + 100 * SHARE / (1 - SHARE) + 1
    assert count.asked > 1
