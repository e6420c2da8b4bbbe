"""Runs SQL Logic Test files on Belvedere in every tier, and on PostgreSQL.

    python -m tests.slt.runner                    the whole corpus, every tier
    python -m tests.slt.runner select1 --tiers direct
    python -m tests.slt.runner --sample 200 --seed 7     at most 200 queries of each file
    python -m tests.slt.runner --exclusions       write exclusions.toml from PostgreSQL's answers
    python -m tests.slt.runner --update           write the expectations of files/*.slt likewise

The corpus lies where the setting BELVEDERE_SLT says, or in ../shared/slt beside the checkout. On a
record that PostgreSQL answers otherwise than its file, exclusions.toml has PostgreSQL's answer and
the reason: there Belvedere is held to that. known_differences.toml lists what Belvedere still gets
wrong; an entry that is no longer needed fails the run, so that the list only shrinks.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.oracle.postgres import server
from tests.slt import records
from tests.slt.engines import TIERS, Engine, opened
from tests.slt.records import Answer, Record

HERE = Path(__file__).parent
OWN = HERE / "files"
EXCLUSIONS = HERE / "exclusions.toml"
KNOWN = HERE / "known_differences.toml"
SETTING = "BELVEDERE_SLT"
SLOW_S = 2.0
SAMPLE_STATEMENTS_MAX = 1500
KNOWN_MOST = 0
"""Known differences, counted by tier; to be lowered with their number."""


def corpus() -> Path | None:
    """Where the corpus lies, or None when it is not here."""
    setting = os.environ.get(SETTING)
    place = Path(setting) if setting else HERE.parents[2] / "shared" / "slt"
    return place if any(place.glob("*.test")) else None


@dataclass(frozen=True, slots=True)
class Difference:
    file: str
    line: int
    tier: str
    sql: str
    expected: str
    got: str
    known: bool

    def __str__(self) -> str:
        known = " (known)" if self.known else ""
        head = (
            f"{self.file}:{self.line} {self.tier}{known}: expected {self.expected}, got {self.got}"
        )
        return f"{head}\n    {self.sql[:400]}"


@dataclass(slots=True)
class Report:
    """What one file did in one tier."""

    file: str
    tier: str
    run: int = 0
    equal: int = 0
    excluded: int = 0
    seconds: float = 0.0
    differences: list[Difference] = field(default_factory=list)
    slow: list[tuple[int, float]] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)

    @property
    def known(self) -> int:
        return sum(one.known for one in self.differences)

    @property
    def ok(self) -> bool:
        return self.known == len(self.differences) and not self.stale

    def __str__(self) -> str:
        return (
            f"{self.file:<40}{self.tier:<9}{self.run:>7}{self.equal:>7}{self.excluded:>6}"
            f"{self.known:>6}{len(self.differences) - self.known:>6}{self.seconds:>8.1f}"
        )


HEADER = f"{'file':<40}{'tier':<9}{'run':>7}{'equal':>7}{'excl':>6}{'known':>6}{'diff':>6}{'s':>8}"


@functools.cache
def exclusions() -> Mapping[tuple[str, int], str]:
    """PostgreSQL's answers to the records it answers otherwise than the file."""
    return {(e["file"], e["line"]): e["answer"] for e in _entries(EXCLUSIONS, "exclusion")}


@functools.cache
def known_differences() -> frozenset[tuple[str, int, str]]:
    """File, line and tier of what Belvedere still gets wrong."""
    return frozenset(
        (entry["file"], entry["line"], tier)
        for entry in _entries(KNOWN, "difference")
        for tier in entry["tiers"]
    )


def _entries(path: Path, kind: str) -> list[dict]:
    entries = tomllib.loads(path.read_text()).get(kind, []) if path.exists() else []
    for entry in entries:
        if not entry["reason"].strip():
            raise ValueError(f"{path.name}: {entry['file']}:{entry['line']} gives no reason")
    return entries


def chosen(path: Path, sample: int | None, seed: int) -> Iterator[Record]:
    """All records, or a seeded sample of the queries with the statements they need."""
    if sample is None:
        return records.read(path)
    found = list(_beginning(records.read(path)))
    queries = [record.line for record in found if record.is_query]
    if sample < len(queries):
        queries = random.Random(f"{seed}/{path.name}").sample(queries, sample)
    wanted = frozenset(queries)
    return (record for record in found if not record.is_query or record.line in wanted)


def _beginning(found: Iterator[Record]) -> Iterator[Record]:
    """The file as far as a sample of it goes: what comes next would need all statements before."""
    statements = 0
    for record in found:
        statements += not record.is_query
        if statements > SAMPLE_STATEMENTS_MAX:
            return
        yield record


def run_file(
    path: Path, engine: Engine, tier: str, sample: int | None = None, seed: int = 1
) -> Report:
    """Run a file on an engine and hold the answers against the file, or PostgreSQL's answers."""
    report = Report(path.stem, tier)
    started = time.perf_counter()
    ran = set()
    for record in chosen(path, sample, seed):
        before = time.perf_counter()
        answer = engine.run(record.sql)
        if time.perf_counter() - before > SLOW_S:
            report.slow.append((record.line, time.perf_counter() - before))
        ran.add((report.file, record.line, tier))
        _judge(report, record, answer)
    differing = {(one.file, one.line, one.tier) for one in report.differences}
    report.stale = [
        f"{file}:{line} {tier}: no longer different; remove it from {KNOWN.name}"
        for file, line, tier in sorted((known_differences() & ran) - differing)
    ]
    report.seconds = time.perf_counter() - started
    return report


def _judge(report: Report, record: Record, answer: Answer) -> None:
    report.run += 1
    other = exclusions().get((report.file, record.line))
    if other is None:
        equal = records.fits(record, answer)
    else:
        report.excluded += 1
        equal = records.summary(record, answer) == other
    if equal:
        report.equal += 1
        return
    wanted = records.expectation(record) if other is None else other
    if other is None and record.is_query and len(record.expected) <= 8:
        wanted = repr(record.expected)
    got = records.summary(record, answer)
    if answer.sqlstate is not None:
        got += f" {answer.message}"
    elif record.is_query and len(answer.rows) <= 4:
        got = repr(answer.rows)
    known = (report.file, record.line, report.tier) in known_differences()
    report.differences.append(
        Difference(report.file, record.line, report.tier, record.sql, wanted, got, known)
    )


def run_task(path: Path, tier: str, sample: int | None, seed: int) -> Report:
    postgres = server() if tier == "postgres" else None
    with opened(tier, postgres) as engine:
        return run_file(path, engine, tier, sample, seed)


def find_exclusions(path: Path) -> list[dict]:
    """The records of a file that PostgreSQL answers otherwise, with its answer as the reason."""
    found = []
    with opened("postgres", server()) as engine:
        for record in records.read(path):
            answer = engine.run(record.sql)
            if records.fits(record, answer) and record.error is None:
                continue
            got = records.summary(record, answer)
            found.append(
                {
                    "file": path.stem,
                    "line": record.line,
                    "answer": got,
                    "reason": _reason(record, answer),
                }
            )
    return found


def _reason(record: Record, answer: Answer) -> str:
    if answer.sqlstate is not None:
        says = answer.message.splitlines()[0]
        if record.error is not None:
            return f"the file expects some error; PostgreSQL's is: {says}"
        return f"PostgreSQL fails: {says}"
    if record.error is not None:
        return "the file expects an error; PostgreSQL has none"
    return f"PostgreSQL answers {', '.join(records.shown(record, answer)[:6])}"


def write_exclusions(paths: Sequence[Path]) -> int:
    lines = [
        "# Records of the corpus whose answer is PostgreSQL's and not the file's. Written by",
        "# `python -m tests.slt.runner --exclusions`; Belvedere is held to `answer`.",
    ]
    count = 0
    for path in paths:
        for entry in find_exclusions(path):
            count += 1
            lines += ["", "[[exclusion]]"]
            lines += [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    EXCLUSIONS.write_text("\n".join(lines) + "\n")
    return count


def update(path: Path) -> None:
    """Write the expectations of one of the project's own files from PostgreSQL's answers."""
    blocks = []
    with opened("postgres", server()) as engine:
        for block in path.read_text().strip().split("\n\n"):
            lines = block.splitlines()
            comments = [line for line in lines if line.startswith("#")]
            for record in records.parse(lines):
                comments += records.written(record, engine.run(record.sql))
            blocks.append("\n".join(comments))
    path.write_text("\n\n".join(blocks) + "\n")


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    if options.update:
        for path in sorted(OWN.glob("*.slt")):
            if not options.files or path.stem in options.files:
                update(path)
        return 0
    place = corpus()
    if place is None:
        print(f"there is no corpus: set {SETTING} to the directory of its files")
        return 2
    paths = sorted([*place.glob("*.test"), *OWN.glob("*.slt")])
    if options.exclusions:
        print(f"{write_exclusions(sorted(place.glob('*.test')))} exclusions")
        return 0
    if options.files:
        paths = [path for path in paths if any(name in path.stem for name in options.files)]
    return _run_all(paths, options)


def _run_all(paths: Sequence[Path], options: argparse.Namespace) -> int:
    print(f"seed: {options.seed}\n{HEADER}")
    tasks = [(path, tier) for tier in options.tiers for path in paths]
    reports = []
    with ProcessPoolExecutor(options.jobs) as pool:
        waiting = [
            pool.submit(run_task, path, tier, options.sample, options.seed) for path, tier in tasks
        ]
        for future in waiting:
            reports.append(future.result())
            _show(reports[-1], options.show)
    known = sum(report.known for report in reports)
    print(
        f"{sum(r.run for r in reports)} run, {sum(r.equal for r in reports)} equal, {known} known"
    )
    return 0 if all(report.ok for report in reports) else 1


def _show(report: Report, most: int) -> None:
    print(report, flush=True)
    new = [one for one in report.differences if not one.known]
    print(*new[:most], *report.stale, sep="\n", end="\n" if new or report.stale else "")
    for line, seconds in report.slow:
        print(f"{report.file}:{line} {report.tier}: took {seconds:.1f} s")


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="slt", description="run SQL Logic Test files")
    parser.add_argument("files", nargs="*", help="parts of file names; all when none is named")
    parser.add_argument("--tiers", nargs="+", default=TIERS, choices=(*TIERS, "postgres"))
    parser.add_argument("--sample", type=int, help="at most this many queries of each file")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--jobs", type=int, default=2, choices=(1, 2))
    parser.add_argument("--show", type=int, default=20, help="differences shown of each file")
    parser.add_argument("--exclusions", action="store_true", help="write exclusions.toml")
    parser.add_argument("--update", action="store_true", help="write files/*.slt")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
