"""The law over random schemas, definitions and transactions: a seeded part of `make long
RUN=laws`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.mutations.registry import mutated
from tests.properties.views.generate.cases import REGRESSIONS, load, random_case
from tests.properties.views.hunt import breaks, check
from tests.properties.views.law import STORES, Counts

CASES = int(os.environ.get("BELVEDERE_LAW_CASES", "10"))
CASES_WIDE, STEPS_WIDE = 12, 10
VIEWS, STEPS = 6, 12
"""With those on cells, a tenth of the 300 views and 50 transactions each of `make long
RUN=laws`."""


@pytest.mark.parametrize("number", range(CASES))
def test_views_equal_their_queries_after_every_transaction(number: int, seed: int) -> None:
    counts = Counts()
    check(random_case(1_000 * seed + number, VIEWS, STEPS), counts)
    assert not counts.refused  # nothing that the generator makes lacks a delta


@pytest.mark.parametrize("number", range(CASES_WIDE))
def test_the_law_holds_for_every_shape_on_every_store(number: int, seed: int) -> None:
    """Long joins, towers and diamonds of views, sub-queries anywhere; one store after the other."""
    counts = Counts()
    case = random_case(10_000 * seed + number, VIEWS, STEPS_WIDE, wide=True)
    check(case, counts, store=STORES[number % len(STORES)])
    assert not counts.refused
    assert counts.states > 0


@pytest.mark.parametrize("path", sorted(REGRESSIONS.glob("*.json")), ids=lambda path: path.stem)
def test_what_once_broke_the_law_holds(path: Path) -> None:
    check(load(path), Counts())


@pytest.mark.parametrize(
    "bug",
    [
        "view_delta_twice",
        "view_join_after",
        "view_padding_kept",
        "view_deletes_ignored",
        "view_null_group_dropped",
    ],
)
def test_a_planted_bug_breaks_the_law(bug: str, seed: int) -> None:
    with mutated(bug):
        assert any(
            breaks(random_case(1_000 * seed + n, VIEWS, 8), postgres=False) for n in range(40)
        )
