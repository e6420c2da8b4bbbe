"""The long runs are what `make long` says: each names a module that exists, with its options."""

from __future__ import annotations

import importlib.util

import pytest

from tools import long_runs
from tools.long_runs import RUNS, LongRun, build_commands


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_run_names_modules_that_exist_and_options_that_are_used(run: LongRun) -> None:
    for command in build_commands(run, {}):
        assert command[0] == "-m"
        assert importlib.util.find_spec(command[1]) is not None
    for name in run.options:
        assert any(f"{{{name}}}" in command for command in run.commands)


def test_options_come_from_the_environment() -> None:
    laws = next(run for run in RUNS if run.name == "laws")
    first = build_commands(laws, {"SEED": "7", "CASES": ""})[0]
    assert first[first.index("--seed") + 1] == "7"
    assert first[first.index("--cases") + 1] == "50"


def test_unknown_run_is_refused_with_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert long_runs.main(["nothing"]) == 2
    assert "there is no long run 'nothing'" in capsys.readouterr().out


def test_without_a_name_the_runs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert long_runs.main([]) == 0
    printed = capsys.readouterr().out
    assert all(run.name in printed for run in RUNS)
