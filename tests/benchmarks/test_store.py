"""The store benchmark measures everything it says, at any size; how fast is not for a test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from belvedere.benchmarks import store
from belvedere.benchmarks.report.measurements import Figure


def test_every_figure_is_measured_and_written(tmp_path: Path) -> None:
    report = store.run(2_000, seed=1)
    report.write_json(tmp_path / "store.json")
    written = json.loads((tmp_path / "store.json").read_text())
    assert {figure["name"] for figure in written["figures"]} == {
        "point read at a snapshot",
        "single-row commit, durability off",
        "rows to Arrow, each",
        "log to Arrow, each record",
        "restore from the log",
        "commits/s, durability full, 8 threads",
        "an open idle store",
        "open after kill -9",
    }
    assert all(figure["value"] > 0 for figure in written["figures"])
    assert written["seed"] == 1
    assert "python" in written["hardware"]


@pytest.mark.parametrize(
    ("figure", "met"),
    [
        (Figure("a", 3.0, "us", "<= 2 ratio", 2.0), True),
        (Figure("a", 5.0, "us", "<= 2 ratio", 2.0), False),
        (Figure("a", 5.0, "1/s", ">= 5 value"), True),
        (Figure("a", 4.9, "1/s", ">= 5 value"), False),
        (Figure("a", 4.9, "1/s"), None),
    ],
)
def test_a_goal_is_met_or_missed(figure: Figure, met: bool | None) -> None:
    assert figure.meets_goal is met
