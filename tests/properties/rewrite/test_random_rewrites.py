"""Random queries over random views: rewritten answers are those of the tables and PostgreSQL's."""

from __future__ import annotations

import pytest

from tests.mutations.registry import REWRITE, mutated
from tests.properties.rewrite.hunt import QUERIES, Differs, RewriteCounts, check_cases

CASES, CASES_ON_CELLS = 10, 1
SEEDS_PER_BUG = 60


def test_rewritten_answers_are_those_of_the_tables(seed: int) -> None:
    counts = RewriteCounts()
    check_cases(range(1_000 * seed, 1_000 * seed + CASES), counts)
    assert counts.queries == CASES * QUERIES
    assert counts.rewritten >= counts.queries / 2
    assert counts.with_postgres == counts.comparisons >= counts.queries


def test_rewritten_answers_are_those_of_the_tables_on_cells(seed: int) -> None:
    counts = RewriteCounts()
    first = 2_000 * seed
    check_cases(range(first, first + CASES_ON_CELLS), counts, postgres=False, store="cells")
    assert counts.rewritten


@pytest.mark.parametrize("bug", REWRITE)
def test_a_planted_bug_is_found(bug: str, seed: int) -> None:
    first = 3_000 * seed
    with mutated(bug), pytest.raises(Differs):
        check_cases(range(first, first + SEEDS_PER_BUG), RewriteCounts(), postgres=False)
