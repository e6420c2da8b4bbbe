"""The law on the row-atomic commit: the same cases, on a store that makes single rows atomic."""

from __future__ import annotations

import pytest

from belvedere.database import Database
from belvedere.txn.row_atomic.cells import placement
from tests.mutations.registry import mutated
from tests.properties.views.generate.cases import random_case
from tests.properties.views.hunt import breaks, check
from tests.properties.views.law import Counts
from tests.protocols import opener_on_cells

CASES = range(5_000, 5_003)
VIEWS, STEPS = 4, 6


@pytest.fixture(autouse=True)
def _on_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Database, "open", staticmethod(opener_on_cells(Database.open)))


@pytest.mark.parametrize("number", CASES)
def test_views_equal_their_queries_after_every_transaction(number: int, seed: int) -> None:
    counts = Counts()
    check(random_case(1_000 * seed + number, VIEWS, STEPS), counts, postgres=False)
    assert counts.comparisons > 0


def test_views_over_tables_that_are_spread_equal_their_queries(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "count_partitions", lambda table: 3)
    counts = Counts()
    check(random_case(1_000 * seed + CASES[0], VIEWS, STEPS), counts, postgres=False)
    assert counts.comparisons > 0


def test_a_planted_bug_breaks_the_law(seed: int) -> None:
    with mutated("view_delta_twice"):
        cases = (random_case(1_000 * seed + number, VIEWS, STEPS) for number in CASES)
        assert any(breaks(case, postgres=False) for case in cases)
