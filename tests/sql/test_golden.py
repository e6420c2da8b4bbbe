from __future__ import annotations

from pathlib import Path

import pytest

from tests.sql.golden import DIRECTORY, bound, check, optimized

BOUND = sorted((DIRECTORY / "bound").glob("*.txt"))
OPTIMIZED = sorted((DIRECTORY / "optimized").glob("*.txt"))


def _name(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", BOUND, ids=_name)
def test_statement_binds_as_the_golden_file_says(path: Path, update_golden: bool) -> None:
    check(path, bound, update_golden)


@pytest.mark.parametrize("path", OPTIMIZED, ids=_name)
def test_plan_is_optimized_as_the_golden_file_says(path: Path, update_golden: bool) -> None:
    check(path, optimized, update_golden)


def test_there_are_golden_files_of_both_kinds() -> None:
    assert len(BOUND) >= 8
    assert len(OPTIMIZED) >= 8
