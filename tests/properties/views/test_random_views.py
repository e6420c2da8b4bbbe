"""The law over random schemas, definitions and transactions: a seeded part of `make laws`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from belvedere import failpoints
from tests.properties.views.cases import REGRESSIONS, load, random_case
from tests.properties.views.hunt import check
from tests.properties.views.law import Broken, Counts

CASES = int(os.environ.get("BELVEDERE_LAW_CASES", "10"))
VIEWS, STEPS = 6, 12


@pytest.mark.parametrize("number", range(CASES))
def test_views_equal_their_queries_after_every_transaction(number: int, seed: int) -> None:
    check(random_case(1_000 * seed + number, VIEWS, STEPS), Counts())


@pytest.mark.parametrize("path", sorted(REGRESSIONS.glob("*.json")), ids=lambda path: path.stem)
def test_what_once_broke_the_law_holds(path: Path) -> None:
    check(load(path), Counts())


def test_few_definitions_are_refused(seed: int) -> None:
    """Of what the generator makes, nothing lacks a delta."""
    counts = Counts()
    for number in range(3):
        check(random_case(1_000 * seed + 500 + number, VIEWS, 1), counts, postgres=False)
    assert not counts.refused


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
    failpoints.plant(bug)
    try:
        with pytest.raises(Broken):
            for number in range(40):
                check(random_case(1_000 * seed + number, VIEWS, 8), Counts(), postgres=False)
    finally:
        failpoints.disarm()
