"""Runs the tests, part by part, and says how long each part took.

A part is a directory under tests/, run by its own pytest process, at most `--jobs` at once. PARTS
is the one list of them: a directory or a root test file that it does not know fails the run, so
that no test is ever forgotten. What fails the run:

- a failed test, an error, a crash of pytest, a part over its time limit;
- a skipped or expectedly failing test that tests/allowed_skips.toml does not list with a reason;
- a part that ran no test at all.

The last line of the output is `N passed, N failed, N skipped`, summed over the parts.

    python -m tools.run_tests              every part
    python -m tools.run_tests views sql    these parts
    python -m tools.run_tests --fast       what `make check` runs: fast parts, no test marked slow
    python -m tools.run_tests kv -- -x -k name      the rest goes to pytest
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import os
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

REPOSITORY = Path(__file__).resolve().parent.parent
NO_TESTS_COLLECTED = 5
ROOT = "root"
"""The part of the test files that lie directly in tests/, for the root modules."""


@dataclass(frozen=True, slots=True)
class Part:
    """`fast` parts belong to `make check`; tests marked slow are left out there."""

    name: str
    fast: bool = True
    minutes_max: float = 15


PARTS = (
    Part("tidy"),
    Part("examples"),
    Part(ROOT),
    Part("kv"),
    Part("codec"),
    Part("values"),
    Part("catalog"),
    Part("oracle"),
    Part("plan"),
    Part("mutations"),
    Part("sql"),
    Part("txn"),
    Part("execution"),
    Part("views"),
    Part("advisor"),
    Part("session"),
    Part("interfaces"),
    Part("remote"),
    Part("hbase", fast=False),
    Part("pipeline", fast=False, minutes_max=30),
    Part("benchmarks", fast=False),
    Part("slt", fast=False),
    Part("properties", fast=False),
    Part("consistency", fast=False),
    Part("simulation", fast=False, minutes_max=30),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one part did. `complaints` are the reasons why it failed, beside failed tests."""

    part: str
    passed: int
    failed: int
    skipped: int
    seconds: float
    complaints: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.failed and not self.complaints


@dataclass(frozen=True, slots=True)
class AllowedSkip:
    test: str
    reason: str


def main(arguments: Sequence[str], root: Path = REPOSITORY, parts: Sequence[Part] = PARTS) -> int:
    own, more = _split(arguments)
    options = _parse(own)
    known = {part.name: part for part in parts}
    chosen = [known.get(name, Part(name)) for name in options.parts] or [
        part for part in parts if part.fast or not options.fast
    ]
    problems = undeclared(root, parts)
    problems += [f"there is no part {part.name!r}" for part in chosen if part.name not in known]
    problems += [
        f"part {part.name!r} has no tests"
        for part in chosen
        if part.name in known and not _paths(root, part)
    ]
    if problems:
        print(*problems, sep="\n")
        return 2
    if options.fast:
        more = ["-m", "not slow", *more]
    allowed = read_allowed_skips(root / "tests" / "allowed_skips.toml")
    started = time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(lambda part: run_part(root, part, more, allowed), chosen))
    print(summary(outcomes, time.monotonic() - started))
    return 0 if all(outcome.ok for outcome in outcomes) else 1


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    if "--" not in arguments:
        return list(arguments), []
    at = list(arguments).index("--")
    return list(arguments[:at]), list(arguments[at + 1 :])


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run_tests", description="run the tests part by part")
    parser.add_argument("parts", nargs="*", help="parts to run; all of them when none is named")
    parser.add_argument("--fast", action="store_true", help="fast parts only, no slow test")
    parser.add_argument("--jobs", type=int, default=2, choices=(1, 2), help="parts at once")
    return parser.parse_args(arguments)


def undeclared(root: Path, parts: Sequence[Part]) -> list[str]:
    """What lies under tests/ and is in no part."""
    names = {part.name for part in parts}
    problems = []
    for directory in sorted((root / "tests").iterdir()):
        if directory.is_dir() and directory.name not in names and any(directory.rglob("test_*.py")):
            problems.append(f"tests/{directory.name} is not in PARTS of tools/run_tests.py")
    if ROOT not in names and list((root / "tests").glob("test_*.py")):
        problems.append(f"tests/test_*.py need the part {ROOT!r} in PARTS of tools/run_tests.py")
    return problems


def _paths(root: Path, part: Part) -> list[Path]:
    if part.name == ROOT:
        return sorted((root / "tests").glob("test_*.py"))
    directory = root / "tests" / part.name
    return [directory] if directory.is_dir() else []


def read_allowed_skips(path: Path) -> list[AllowedSkip]:
    """The skips that do not fail the run. Each has to say why."""
    if not path.exists():
        return []
    entries = tomllib.loads(path.read_text()).get("skip", [])
    allowed = [AllowedSkip(entry["test"], entry["reason"].strip()) for entry in entries]
    for entry in allowed:
        if not entry.reason:
            raise SystemExit(f"{path.name}: no reason is given for {entry.test}")
    return allowed


def run_part(
    root: Path, part: Part, more: Sequence[str], allowed: Sequence[AllowedSkip]
) -> Outcome:
    """Run one part, print its output when it ends, and judge it."""
    with tempfile.TemporaryDirectory(prefix="belvedere-tests-") as scratch:
        report, output = Path(scratch) / "report.xml", Path(scratch) / "output"
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *more]
        command += [str(path.relative_to(root)) for path in _paths(root, part)]
        print(f"== {part.name}: started", flush=True)
        started = time.monotonic()
        code = _run(command, root, output, part.minutes_max * 60)
        outcome = judge(part.name, report, code, time.monotonic() - started, allowed)
        text = output.read_text(errors="replace")
    verdict = "ok" if outcome.ok else "FAILED"
    print(f"== {part.name}: {verdict} after {outcome.seconds:.1f} s\n{text}", flush=True)
    for complaint in outcome.complaints:
        print(f"== {part.name}: {complaint}", flush=True)
    return outcome


def _run(command: Sequence[str], root: Path, output: Path, seconds_max: float) -> int | None:
    """The exit code; None when it was killed at the time limit.

    Output goes to a file and not to a pipe: a process that a test left behind would keep a pipe
    open. The processes of a part form a session, of which none outlives the part.
    """
    with output.open("wb") as sink:
        process = subprocess.Popen(
            command, cwd=root, stdout=sink, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return process.wait(timeout=seconds_max)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def judge(
    part: str, report: Path, code: int | None, seconds: float, allowed: Sequence[AllowedSkip]
) -> Outcome:
    """Read pytest's report and decide what of it fails the run."""
    passed, failed, skipped = _read_report(report)
    complaints = []
    if code is None:
        complaints.append("was killed at its time limit")
    elif code == NO_TESTS_COLLECTED or (report.exists() and not passed + failed + len(skipped)):
        complaints.append("ran no tests")
    elif not report.exists() or (code != 0 and not failed):
        complaints.append(f"pytest broke off with code {code}")
    # A part that broke as a whole has to show in the count of failures too.
    failed = failed or len(complaints)
    complaints += [
        f"skipped without leave in allowed_skips.toml: {test}"
        for test in skipped
        if not any(fnmatch.fnmatchcase(test, entry.test) for entry in allowed)
    ]
    return Outcome(part, passed, failed, len(skipped), seconds, tuple(complaints))


def _read_report(report: Path) -> tuple[int, int, list[str]]:
    """Passed, failed (errors included), and the names of the skipped."""
    if not report.exists():
        return 0, 0, []
    passed = failed = 0
    skipped = []
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None:
            skipped.append(f"{case.get('classname')}::{case.get('name')}")
        else:
            passed += 1
    return passed, failed, skipped


def summary(outcomes: Sequence[Outcome], seconds: float) -> str:
    """`seconds` is the time of the whole run: less than the sum when two parts run at once."""
    lines = [f"{'part':<14}{'minutes':>8}{'passed':>9}{'failed':>8}{'skipped':>9}"]
    for outcome in outcomes:
        note = "" if outcome.ok else "  FAILED"
        lines.append(
            f"{outcome.part:<14}{outcome.seconds / 60:>8.2f}{outcome.passed:>9}"
            f"{outcome.failed:>8}{outcome.skipped:>9}{note}"
        )
    passed = sum(outcome.passed for outcome in outcomes)
    failed = sum(outcome.failed for outcome in outcomes)
    skipped = sum(outcome.skipped for outcome in outcomes)
    lines.append(f"{'total':<14}{seconds / 60:>8.2f}{passed:>9}{failed:>8}{skipped:>9}")
    lines += [
        f"FAILED {outcome.part}: {complaint}"
        for outcome in outcomes
        for complaint in outcome.complaints
    ]
    lines.append(f"{passed} passed, {failed} failed, {skipped} skipped")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
