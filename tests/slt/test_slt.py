"""SQL Logic Test: the project's own files whole, and a seeded sample of the corpus, in every tier.

The whole corpus is run by `make long RUN=slt`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.postgres import Postgres, postgres  # noqa: F401  a fixture
from tests.slt import records, runner
from tests.slt.engines import TIERS, opened

OWN = sorted(runner.OWN.glob("*.slt"))
CORPUS = sorted((runner.corpus() or Path("nowhere")).glob("*.test"))
SAMPLE = 100
CORPUS_FILES = 21
"""Files of the corpus that hold records."""


def name(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", OWN, ids=name)
def test_own_files_say_what_postgresql_answers(postgres: Postgres, path: Path) -> None:  # noqa: F811
    with opened("postgres", postgres) as engine:
        report = runner.run_file(path, engine, "postgres")
    assert report.ok, wrong(report)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("path", OWN, ids=name)
def test_own_files(path: Path, tier: str) -> None:
    report = runner.run_task(path, tier, None, 1)
    assert report.ok, wrong(report)


def test_the_corpus_is_here() -> None:
    if not CORPUS:
        pytest.skip(f"there is no corpus: set {runner.SETTING} to the directory of its files")
    assert len(CORPUS) == CORPUS_FILES


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("path", CORPUS, ids=name)
def test_sample_of_the_corpus(path: Path, tier: str, seed: int) -> None:
    report = runner.run_task(path, tier, SAMPLE, seed)
    assert report.run
    assert report.ok, wrong(report)


def test_every_exclusion_and_known_difference_names_a_record() -> None:
    by_file = {path.stem: path for path in [*OWN, *CORPUS]}
    named = [(file, line) for file, line, _ in runner.known_differences()]
    if CORPUS:
        named += list(runner.exclusions())
    lines = {
        file: {record.line for record in records.read(by_file[file])}
        for file in {file for file, _ in named}
        if file in by_file
    }
    assert not [(file, line) for file, line in named if file in lines and line not in lines[file]]


def test_known_differences_only_shrink() -> None:
    assert len(runner.known_differences()) <= runner.KNOWN_MOST


def wrong(report: runner.Report) -> str:
    new = [str(one) for one in report.differences if not one.known]
    return "\n".join([str(report), *new[:20], *report.stale])
