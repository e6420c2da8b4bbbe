"""A sample of SQLAlchemy's dialect suite at both doors; `make long RUN=dialect` runs all of it."""

from __future__ import annotations

import pytest

from tests.interfaces.dialect_suite import judge, runs

SAMPLE = "SimpleUpdateDeleteTest or CTETest or InsertBehaviorTest or SequenceTest or TimeTZTest"
COUNT_MIN = 40


@pytest.mark.slow
@pytest.mark.parametrize("door", ["wire", "embedded"])
def test_sample_passes_or_is_explained(door: str) -> None:
    with runs.DOORS[door]() as url:
        found = runs.run_suite(url, ["-k", SAMPLE], seconds_max=600)
    failed = [test for test, outcome in found.items() if outcome == runs.FAILED]
    assert judge.list_unexplained(failed, door) == []
    # The run shows what fails: a type that is missing.
    assert any(test.startswith("TimeTZTest.") for test in failed)
    assert len(found) - len(failed) >= COUNT_MIN


def test_page_has_every_reason() -> None:
    page = (runs.REPOSITORY / "docs" / "clients.md").read_text()
    assert [one.reason for one in judge.read_explanations() if one.reason not in page] == []


def test_failure_without_a_reason_is_found() -> None:
    expected = {"A.one": runs.PASSED, "A.two": runs.PASSED, "A.three": runs.SKIPPED}
    found = {"A.one": runs.PASSED, "A.two": runs.FAILED}
    missed = judge.list_missed(expected, found)
    assert missed == ["A.two"]
    assert judge.list_unexplained(missed, "wire") == ["A.two"]
    assert judge.list_missed(expected, {}) == ["A.one", "A.two"]
    here = [one for one in judge.read_explanations() if one.door != "wire"]
    assert judge.list_stale([], "embedded") == [one.reason for one in here]
