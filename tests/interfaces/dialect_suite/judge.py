"""Judges runs of the dialect suite: what PostgreSQL passes has to pass here, or to be explained."""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

from tests.interfaces.dialect_suite.runs import HERE, PASSED

SHARE_MIN = 0.95


@dataclass(frozen=True, slots=True)
class Explanation:
    """`door` is None where the tests fail at both doors."""

    tests: tuple[str, ...]
    reason: str
    door: str | None = None

    def covers(self, test: str, door: str) -> bool:
        fits = any(fnmatch.fnmatchcase(test, pattern) for pattern in self.tests)
        return fits and self.door in (None, door)


def read_explanations() -> list[Explanation]:
    entries = tomllib.loads((HERE / "failures.toml").read_text())["failure"]
    return [Explanation(tuple(one["tests"]), one["reason"], one.get("door")) for one in entries]


def list_unexplained(failed: list[str], door: str) -> list[str]:
    known = read_explanations()
    return [test for test in failed if not any(one.covers(test, door) for one in known)]


def list_missed(expected: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Tests that PostgreSQL passes and this run does not: failed, skipped or never set up."""
    wanted = [test for test, outcome in expected.items() if outcome == PASSED]
    return [test for test in wanted if found.get(test) != PASSED]


def list_stale(missed: list[str], door: str) -> list[str]:
    """Reasons that explain nothing any more."""
    relevant = [one for one in read_explanations() if one.door in (None, door)]
    return [one.reason for one in relevant if not any(one.covers(test, door) for test in missed)]
