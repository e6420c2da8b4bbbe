"""Whole databases under seeded schedules; and what keeps them right is seen to matter."""

from __future__ import annotations

from collections import Counter
from unittest import mock

import pytest

from belvedere.views.registry.row_atomic_locks import LockingViewParticipant
from tests.mutations.registry import mutated
from tests.simulation.row.databases import Schedule

SEEDS, PARTS = 36, 3


@pytest.mark.parametrize("part", range(PARTS))
def test_nodes_that_die_pause_and_lose_requests_keep_everything_right(part: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(part * SEEDS // PARTS, (part + 1) * SEEDS // PARTS):
        schedule = Schedule(seed)
        assert schedule.run() == [], f"seed {seed}"
        counts += schedule.counts
    print(dict(counts))
    for kind in ("done", "killed", "paused", "lost", "reply lost"):
        assert counts[kind] > 0, kind


def test_without_the_locks_of_views_a_view_goes_wrong() -> None:
    with mock.patch.object(LockingViewParticipant, "locks", return_value=()):
        assert any(Schedule(seed).run() for seed in range(80))


def test_a_bug_of_the_protocol_put_back_shows() -> None:
    with mutated("record_under_old_catalog"):
        assert any(Schedule(seed).run() for seed in range(80))
