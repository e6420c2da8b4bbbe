"""The quick profile of the crash proof, goal by goal; `make long RUN=crash` runs it whole, or
larger."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from belvedere import failpoints
from tests.mutations.registry import ENGINE
from tests.simulation.crash.__main__ import GOALS
from tests.simulation.crash.faults import kills
from tests.simulation.crash.oracle import decode_row, encode_row
from tests.simulation.crash.planted import recovery
from tests.simulation.crash.report import Harness, table

REPOSITORY = Path(__file__).resolve().parents[3]


def crash(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: one in which RocksDB has run cannot fork."""
    command = [sys.executable, "-m", "tests.simulation.crash", *arguments]
    return subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=600
    )


@pytest.mark.slow
@pytest.mark.parametrize("goal", list(GOALS))
def test_goal_holds_in_the_quick_profile(goal: str, seed: int) -> None:
    done = crash("--only", goal, "--seed", str(seed))
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 failures" in done.stdout
    assert f"seed {seed}" in done.stdout


@pytest.mark.slow
def test_every_planted_bug_is_caught() -> None:
    done = crash("--only", "planted")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ENGINE:
        assert f"planted {name:<26}caught" in done.stdout


def test_every_planted_bug_has_a_schedule() -> None:
    assert recovery.SCHEDULES.keys() == ENGINE.keys()


def test_every_boundary_is_in_the_engine() -> None:
    assert set(kills.boundaries()) == set(failpoints.BOUNDARIES)


def test_a_failure_is_counted_printed_and_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    harness = Harness("d0", "nothing", 7)
    harness.count("kind", "fine", [])
    harness.count("kind", "bad", ["a row is gone"])
    assert "FAILED d0 seed=7 kind [bad]: a row is gone" in capsys.readouterr().out
    line = table([harness.end()]).splitlines()[1].split()
    assert line[:4] == ["d0", "2", "1", "-"]


def test_the_oracle_reads_the_rows_it_writes(rng: random.Random) -> None:
    kinds = ["bigint", "text", "integer", "text", "boolean"]
    for _ in range(200):
        row = [
            rng.choice([None, rng.randrange(-(2**63), 2**63)]),
            rng.choice([None, "", "abc", "\u00e9\0"]),
            rng.choice([None, rng.randrange(-(2**31), 2**31)]),
            rng.choice([None, "x" * rng.randrange(300)]),
            rng.choice([None, True, False]),
        ]
        assert decode_row(kinds, encode_row(kinds, row)) == row
