"""Seeded schedules of four nodes under faults: no violation, and nothing stays stuck when faults
stop."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.mutations.registry import mutated
from tests.simulation.row.history import violations
from tests.simulation.row.schedules import run_seed
from tests.simulation.row.workload import Transaction

SEEDS, PARTS = 500, 10


@pytest.mark.parametrize("part", range(PARTS))
def test_schedules_lose_double_and_halve_nothing_and_end_with_everything_free(part: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(part * SEEDS // PARTS, (part + 1) * SEEDS // PARTS):
        result = run_seed(seed)
        assert not result.wrong, f"seed {seed}: {result.wrong[:5]}"
        counts += result.counts
    print(dict(counts))
    kinds = ("committed", "aborted", "machines paused", "machines killed", "indexes checked")
    for kind in (*kinds, "outcomes forgotten"):
        assert counts[kind] > 0, kind


@pytest.mark.parametrize(
    ("bug", "seed"),
    [("primary_not_first", 1), ("record_under_old_catalog", 7)],
)
def test_a_bug_put_back_shows_in_the_history(bug: str, seed: int) -> None:
    seeds = [seed, *range(20)]
    with mutated(bug):
        assert any(run_seed(each).wrong for each in seeds)


def committed(name: str, position: int, snapshot: int, **more: object) -> Transaction:
    return Transaction(name, "append", snapshot, outcome="committed", position=position, **more)  # type: ignore[arg-type]


def test_the_checker_accepts_a_right_history() -> None:
    first = committed("a", 1, 0, reads={"l0": None}, writes={"l0": "a"})
    second = committed("b", 2, 1, reads={"l0": "a"}, writes={"l0": "ab"})
    assert violations([first, second], {}, {"l0": "ab"}) == []


@pytest.mark.parametrize(
    ("second", "outcomes", "final", "expected"),
    [
        ({"reads": {"l0": None}, "writes": {"l0": "b"}, "snapshot": 0}, {}, "b", "unseen"),
        ({"reads": {"l0": None}, "writes": {}, "snapshot": 1}, {}, "a", "read l0"),
        ({"reads": {"l0": "a"}, "writes": {"l0": "ab"}, "snapshot": 1}, {}, "a", "final l0"),
        (
            {"reads": {"l0": "a"}, "writes": {"l0": "ab"}, "snapshot": 1},
            {"b": 7},
            "ab",
            "two outcomes",
        ),
        ({"reads": {}, "writes": {"a0": "90"}, "snapshot": 0}, {}, "a", "total is"),
        ({"reads": {}, "writes": {"cp0/1": "b"}, "snapshot": 0}, {}, "a", "without parent"),
        ({"reads": {}, "writes": {}, "snapshot": 0, "token": 1}, {}, "a", "below its own"),
    ],
)
def test_the_checker_names_what_is_wrong(
    second: dict[str, object], outcomes: dict[str, int], final: str, expected: str
) -> None:
    first = committed("a", 1, 0, reads={"l0": None}, writes={"l0": "a"})
    found = violations([first, committed("b", 2, **second)], outcomes, {"l0": final})  # type: ignore[arg-type]
    assert any(expected in each for each in found), found


def test_the_checker_finds_an_aborted_transaction_that_is_there() -> None:
    aborted = Transaction("a", "append", 0, outcome="aborted", writes={"l0": "a"})
    assert violations([aborted], {"a": 1}, {"l0": "a"}) != []
