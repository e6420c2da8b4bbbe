"""How many rows relations have: counted once, then followed."""

from __future__ import annotations

import pytest

from belvedere.txn.contracts import RowChange
from belvedere.views.cost.row_counts import SHARE, PositionSpan, RowCounts
from belvedere.views.maintain.log_window import LogRange

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
def sizes(count: Counting) -> RowCounts:
    made = RowCounts(lambda: count.now)
    made.count_rows = count
    return made


def log_range(*changes: RowChange, relation: int = TABLE) -> LogRange:
    return LogRange({relation: {change.key: change for change in changes}}, len(changes))


def test_a_table_is_counted_once_and_then_followed(sizes: RowCounts, count: Counting) -> None:
    assert sizes.estimate_table_rows(TABLE, PositionSpan(0, 5)) == 100.0
    sizes.add_changes_to_table_counts(PositionSpan(5, 8), log_range(CAME, CHANGED))
    assert sizes.estimate_table_rows(TABLE, PositionSpan(8, 9)) == 101.0
    sizes.add_changes_to_table_counts(PositionSpan(8, 9), log_range(WENT, CHANGED))
    assert sizes.estimate_table_rows(TABLE, PositionSpan(9, 9)) == 100.0
    assert count.asked == 1


def test_a_stretch_counts_once_however_many_units_take_it_in(sizes: RowCounts) -> None:
    sizes.estimate_table_rows(TABLE, PositionSpan(0, 5))
    for _ in range(3):
        sizes.add_changes_to_table_counts(PositionSpan(5, 8), log_range(CAME))
    assert sizes.estimate_table_rows(TABLE, PositionSpan(8, 8)) == 101.0


def test_a_table_is_counted_again_when_a_stretch_was_missed(
    sizes: RowCounts, count: Counting
) -> None:
    sizes.estimate_table_rows(TABLE, PositionSpan(0, 5))
    sizes.add_changes_to_table_counts(PositionSpan(6, 8), log_range(CAME))
    count.rows = 500.0
    assert sizes.estimate_table_rows(TABLE, PositionSpan(8, 9)) == 500.0
    assert count.asked == 2


def test_a_stretch_of_other_tables_says_nothing(sizes: RowCounts, count: Counting) -> None:
    sizes.estimate_table_rows(TABLE, PositionSpan(0, 5))
    sizes.add_changes_to_table_counts(PositionSpan(5, 8), log_range(CAME, relation=OTHER))
    sizes.estimate_table_rows(TABLE, PositionSpan(8, 9))
    assert count.asked == 2


def test_who_is_behind_takes_what_is_known_of_later(sizes: RowCounts, count: Counting) -> None:
    sizes.estimate_table_rows(TABLE, PositionSpan(0, 5))
    assert sizes.estimate_table_rows(TABLE, PositionSpan(2, 9)) == 100.0
    assert count.asked == 1


def test_counting_states_takes_a_small_part_of_all_time(sizes: RowCounts, count: Counting) -> None:
    sizes.estimate_state_entries(VIEW)
    steps = int(10 / SHARE)
    for _ in range(steps):
        count.now += 0.5
        sizes.estimate_state_entries(VIEW)
    assert count.asked <= 1 + steps * 0.5 * SHARE / (1 - SHARE) + 1
    assert count.asked > 1
