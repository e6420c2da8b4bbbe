"""Histories of many sessions are right, at every level, step by step, in threads and with kills.

No store on disk is opened in this process, so that it may fork: see the drivers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from belvedere import failpoints
from belvedere.config import Durability
from tests.simulation.history import hermitage
from tests.simulation.history.checker import Anomaly, check
from tests.simulation.history.drivers import (
    ALL,
    Outcome,
    crashed,
    interleaved,
    threaded,
    threaded_on_disk,
)
from tests.simulation.history.events import LEVELS, SERIALIZABLE, SNAPSHOT, Txn
from tests.simulation.history.exhaustive import WORDS, Exhaustive, interleavings
from tests.simulation.history.planted import CATCHERS, SECONDS_MAX, catch
from tests.simulation.history.workload import SWAP

GOLDEN = Path(__file__).parent / "hermitage.txt"


def require_right(outcome: Outcome, committed: int) -> None:
    """Nothing is wrong, and enough happened for that to mean something."""
    told = "\n".join(str(problem)[:500] for problem in outcome.problems[:5])
    assert not outcome.problems, f"{outcome.run}\n{told}"
    assert outcome.committed >= committed, outcome.run


@pytest.mark.parametrize("level", LEVELS)
def test_interleaved_statements_make_right_histories(level: str, seed: int) -> None:
    for number in range(12):
        outcome = interleaved(level, f"{seed}/{number}", in_commit=number % 2 == 1)
        require_right(outcome, 35)


def test_an_interleaved_run_is_the_same_again() -> None:
    def told(seed: int) -> list[Txn]:
        return interleaved(SNAPSHOT, seed, transactions=40).history

    assert told(5) == told(5)
    assert told(5) != told(6)


@pytest.mark.parametrize("level", LEVELS)
def test_threads_make_right_histories(level: str, seed: int) -> None:
    require_right(threaded(level, seed, threads=8, transactions=400), 150)


@pytest.mark.parametrize("durability", list(Durability))
@pytest.mark.parametrize("level", LEVELS)
def test_threads_on_disk_make_right_histories(
    level: str, durability: Durability, seed: int, tmp_path: Path
) -> None:
    require_right(threaded_on_disk(level, seed, tmp_path, durability=durability), 80)


@pytest.mark.parametrize("level", LEVELS)
def test_swaps_beside_transactions_make_right_histories(
    level: str, seed: int, tmp_path: Path
) -> None:
    kinds = (*ALL, *[SWAP] * 6)
    for number in range(4):
        outcome = interleaved(level, f"{seed}/{number}", in_commit=number % 2 == 1, kinds=kinds)
        require_right(outcome, 30)
        assert any(
            len(txn.ops) == 2 and txn.snapshot + 1 == txn.position for txn in outcome.history
        )
    require_right(threaded_on_disk(level, seed, tmp_path / "threads", kinds=kinds), 80)
    require_right(crashed(level, seed, tmp_path / "crash", rounds=3, kinds=kinds), 10)


@pytest.mark.parametrize("level", LEVELS)
def test_a_killed_process_leaves_a_right_history(level: str, seed: int, tmp_path: Path) -> None:
    outcome = crashed(level, seed, tmp_path, rounds=4)
    require_right(outcome, 20)
    assert "(killed)" in outcome.run


def test_a_serializable_history_has_no_write_skew_and_a_snapshot_one_may(seed: int) -> None:
    """What a level allows does happen, so that what another forbids is worth forbidding."""
    for number in range(10):
        outcome = interleaved(SERIALIZABLE, f"{seed}/{number}", kinds=("skew", "on_call"))
        require_right(outcome, 15)
    kinds = Counter(
        problem.kind
        for number in range(10)
        for problem in _judged_as_serializable(f"{seed}/{number}")
    )
    assert kinds["write skew"] > 0


def _judged_as_serializable(seed: str) -> list[Anomaly]:
    history = interleaved(SNAPSHOT, seed, kinds=("skew", "on_call")).history
    return check(history, SERIALIZABLE)


@pytest.mark.parametrize("level", LEVELS)
def test_every_interleaving_of_two_small_transactions_is_right(level: str) -> None:
    exhaustive = Exhaustive(level)
    exhaustive.run_all(WORDS, 2)
    assert exhaustive.problems == []
    assert exhaustive.runs >= 2_000


def test_all_interleavings_are_made() -> None:
    assert sorted(interleavings([2, 1])) == [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    assert len(list(interleavings([4, 4]))) == 70


def test_the_named_anomalies_at_every_level(update_golden: bool) -> None:
    found = hermitage.report()
    if update_golden:
        GOLDEN.write_text(found)
    assert found == GOLDEN.read_text()


@pytest.mark.parametrize("bug", CATCHERS)
def test_a_planted_bug_is_caught_by_a_history(bug: str, tmp_path: Path) -> None:
    caught = catch(bug, tmp_path)
    assert caught, f"{bug} was not caught in {SECONDS_MAX} s"
    print(f"{bug}: {caught}")
    assert not failpoints.armed
