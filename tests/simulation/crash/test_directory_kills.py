"""A few seeded kills of every scenario; `make long RUN=directories` kills at every line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.crash.directory_kills import SCENARIOS

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("name", [one.name for one in SCENARIOS])
def test_what_a_kill_leaves_is_whole_or_says_that_it_is_not(name: str, seed: int) -> None:
    module = "tests.simulation.crash.directory_kills"
    command = [sys.executable, "-m", module, "--only", name, "--kills", "4", "--seed", str(seed)]
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout
