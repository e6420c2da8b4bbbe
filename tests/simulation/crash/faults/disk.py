"""A disk that fills up: in the middle of commits, index builds and backups; then space returns.

The store lies on a file system of a few megabytes of its own (tmpfs, mounted by root). Where that
is not allowed, the process is held to a size of file instead (RLIMIT_FSIZE), which fails in the
same places with another error.
"""

from __future__ import annotations

import random
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from belvedere.database import Database
from belvedere.errors import Error, Unavailable
from tests.simulation.crash import checks, workload
from tests.simulation.crash.acks import AckFile
from tests.simulation.crash.processes import ChildFailed, call
from tests.simulation.crash.report import Harness

KILOBYTES = 2048
STAGES = ("commit", "index", "backup")
FULL = ("53100", "58030")
"""Disk full; and input or output failed, which is what a limit of file size looks like."""


@contextmanager
def small_disk(directory: Path, kilobytes: int) -> Iterator[bool]:
    """Mount a small file system at `directory`; False when that is not allowed."""
    directory.mkdir(parents=True)
    options = f"size={kilobytes}k"
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(directory)]
    mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(directory)], check=True)


def fill_up(harness: Harness, directory: Path, runs: int, mutation: str = "") -> None:
    """D7: fill the disk `runs` times, at every stage in turn."""
    ways = set()
    for number in range(runs):
        stage = STAGES[number % len(STAGES)]
        seed = harness.rng.randrange(2**32)
        home = directory / str(number)
        with small_disk(home, KILOBYTES) as mounted:
            ways.add("sized tmpfs" if mounted else "RLIMIT_FSIZE")
            # A backup starts a new log each time, which then never reaches a size.
            stage = stage if mounted or stage != "backup" else "commit"
            harness.count(stage, f"seed={seed}", _run(home, mounted, stage, seed, mutation))
        shutil.rmtree(home)
    harness.note(f"disk full by {', '.join(sorted(ways))}")


def _run(home: Path, mounted: bool, stage: str, seed: int, mutation: str) -> list[str]:
    beside = home.with_name(home.name + ".notes")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    plan = workload.Plan(home / "store", beside / "acks", seed, threads=1, rounds=1)
    output = beside / "stderr"
    try:
        call(lambda: workload.run(plan) or True, output)
        problems = call(
            lambda: _write_until_full(plan, stage, mounted, home), output, mutation=mutation
        )
        # Space returns: the ballast goes.
        (home / "ballast").unlink(missing_ok=True)
        for left in home.glob("store.*"):
            shutil.rmtree(left)
        archive = beside / "archive"
        problems += call(lambda: checks.check(plan.directory, plan.acks, archive), output).problems
        more = replace(plan, seed=seed + 1)
        call(lambda: workload.run(more) or True, output)
        problems += call(lambda: checks.check(plan.directory, plan.acks, archive), output).problems
    except ChildFailed as failed:
        return [str(failed)]
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return problems


def _write_until_full(plan: workload.Plan, stage: str, mounted: bool, home: Path) -> list[str]:
    acks = AckFile(plan.acks)
    database = workload.open_store(plan, acks)
    writer = workload.Writer(plan, database, acks, random.Random(plan.seed))
    _take_space(home, mounted, writer.rng)
    try:
        failure = _act_until_failure(writer, stage)
        problems = _judge_failure(failure)
        problems += _read_on(database)
    finally:
        if not mounted:
            _limit(None)
    acks.note("closing")
    try:
        database.close()
        acks.note("close")
    except Unavailable as error:
        # It could not note where it ended; opening finds out.
        if error.sqlstate not in FULL:
            problems.append(f"close: {error}")
    return problems


def _take_space(home: Path, mounted: bool, rng: random.Random) -> None:
    """Leave some room, more or less."""
    if not mounted:
        _limit(rng.randrange(64, 512) * 1024)
        return
    free = shutil.disk_usage(home).free
    (home / "ballast").write_bytes(bytes(max(free - rng.randrange(64, 256) * 1024, 0)))


def _limit(size: int | None) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (most if size is None else size, most))


def _act_until_failure(writer: workload.Writer, stage: str) -> Error | None:
    for number in range(2000):
        try:
            writer.commit(writer.buy)
            if stage == "index" and number % 5 == 4:
                writer.toggle_index()
            if stage == "backup" and number % 5 == 4:
                writer.back_up()
        except Error as error:
            return error
    return None


def _judge_failure(failure: Error | None) -> list[str]:
    if failure is None:
        return ["the disk never filled up"]
    if failure.sqlstate not in (*FULL, "08007", "25006"):
        return [f"failed as {failure.sqlstate}: {failure}"]
    return []


def _read_on(database: Database) -> list[str]:
    with database.open_newest_reader() as reader:
        table = database.get_compiled_table("customer")
        found = [row for batch in reader.scan(table.start, table.end) for row in batch]
    return [] if found else ["reads do not go on"]
