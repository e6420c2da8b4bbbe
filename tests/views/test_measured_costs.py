"""What batches take, measured against what is expected."""

from __future__ import annotations

import math

import pytest

from belvedere.views.costs import CHANGES_MIN, FACTOR_MAX, Costs
from belvedere.views.way import Way


def test_nothing_measured_is_as_expected() -> None:
    assert Costs().expected(1, Way.PYTHON, 2.0) == 2.0


def test_what_was_measured_is_expected_of_the_same_view_and_way() -> None:
    costs = Costs()
    costs.note(1, Way.PYTHON, 1.0, 3.0, CHANGES_MIN)
    costs.note(1, Way.DUCKDB, 1.0, 0.5, CHANGES_MIN)
    assert costs.expected(1, Way.PYTHON, 2.0) == 6.0
    assert costs.expected(1, Way.DUCKDB, 2.0) == 1.0


def test_one_way_alone_does_not_change_the_choice() -> None:
    costs = Costs()
    costs.note(1, Way.REFILL, 1.0, 5.0, CHANGES_MIN)
    for view in (1, 2):
        assert {costs.expected(view, way, 1.0) for way in Way} == {5.0}


def test_a_way_of_a_view_never_taken_is_as_that_of_others() -> None:
    costs = Costs()
    costs.note(1, Way.PYTHON, 1.0, 2.0, CHANGES_MIN)
    costs.note(1, Way.REFILL, 1.0, 8.0, CHANGES_MIN)
    assert costs.expected(2, Way.REFILL, 1.0) == 8.0
    assert costs.expected(2, Way.PYTHON, 1.0) == 2.0


def test_a_noisy_batch_is_forgotten_with_the_next_ones() -> None:
    costs = Costs()
    for taken in (1.0, 20.0, *[1.0] * 20):
        costs.note(1, Way.PYTHON, 1.0, taken, CHANGES_MIN)
    assert costs.expected(1, Way.PYTHON, 1.0) == pytest.approx(1.0, abs=0.01)


def test_a_way_that_is_not_taken_is_tried_again_some_time() -> None:
    costs = Costs()
    for view in (2, 3, 4):
        costs.note(view, Way.REFILL, 1.0, 1.0, CHANGES_MIN)
    costs.note(1, Way.REFILL, 1.0, 10.0, CHANGES_MIN)
    for view in (2, 3, 4, 2, 3, 4):
        costs.note(view, Way.REFILL, 1.0, 1.0, CHANGES_MIN)
    assert costs.expected(1, Way.REFILL, 1.0) == 10.0
    for _ in range(200):
        costs.passed_over(1, Way.REFILL)
    assert costs.expected(1, Way.REFILL, 1.0) < 1.5


@pytest.mark.parametrize(
    ("changes", "seconds"), [(CHANGES_MIN - 1, 1.0), (1e6, 0.0), (1e6, math.inf)]
)
def test_what_tells_nothing_is_not_noted(changes: float, seconds: float) -> None:
    costs = Costs()
    costs.note(1, Way.PYTHON, seconds, 7.0, changes)
    assert costs.expected(1, Way.PYTHON, 1.0) == 1.0


def test_a_factor_stays_within_bounds() -> None:
    costs = Costs()
    costs.note(1, Way.PYTHON, 1e-9, 1e9, CHANGES_MIN)
    costs.note(1, Way.REFILL, 1e9, 1e-9, CHANGES_MIN)
    assert costs.expected(1, Way.PYTHON, 1.0) == FACTOR_MAX
    assert costs.expected(1, Way.REFILL, 1.0) == 1 / FACTOR_MAX
