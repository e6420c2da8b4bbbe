"""Interrupts at lines of commits, backfills and DDL; `make long RUN=interrupts` makes 5,000."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.interrupts.__main__ import STORES

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("store", STORES)
def test_an_interrupt_at_any_line_leaves_a_store_that_works(store: str, seed: int) -> None:
    module = "tests.simulation.interrupts"
    command = [
        sys.executable,
        "-m",
        module,
        "--store",
        store,
        "--count",
        "100",
        "--seed",
        str(seed),
    ]
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every store works" in done.stdout
