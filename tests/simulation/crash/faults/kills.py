"""SIGKILL at every named boundary, at random times, and again during recovery.

A store lives through several kills. After each, a judge (`checks`) opens it in another process and
compares. A run is described by its seed alone.
"""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import belvedere
from belvedere import failpoints
from tests.simulation.crash import checks, workload
from tests.simulation.crash.acks import read_acks
from tests.simulation.crash.processes import Child, ChildFailed, call, killed
from tests.simulation.crash.report import Harness

LIVES = 5
"""How many kills a store lives through before a new one is made."""


def _hits_max(boundary: str) -> int:
    """How many times a boundary is surely passed before long."""
    family = boundary.partition(".")[0]
    rare = {"open": 2, "close": 2, "trim": 1, "checkpoint": 1, "restore": 1, "catalog": 2}
    rare |= {"backup": 1}
    return {**rare, "maintain": 3, "backfill": 3}.get(family, 30)


def boundaries() -> tuple[str, ...]:
    """The named boundaries that the engine passes, as far as its source says."""
    package = Path(belvedere.__path__[0])
    source = "".join(path.read_text() for path in sorted(package.rglob("*.py")))
    passed = set(re.findall(r'failpoints\.hit\(\s*"([a-z_.]+)"', source))
    return tuple(name for name in failpoints.BOUNDARIES if name in passed)


@dataclass(slots=True)
class Life:
    """One store and what is known of it from outside."""

    directory: Path
    rng: random.Random
    mutation: str = ""
    kills: int = 0

    @property
    def store(self) -> Path:
        return self.directory / "store"

    @property
    def acks(self) -> Path:
        return self.directory / "acks"

    @property
    def archive(self) -> Path:
        return self.directory / "archive"

    @property
    def output(self) -> Path:
        return self.directory / "stderr"

    def plan(self, durability: str = "full") -> workload.Plan:
        return workload.Plan(
            self.store,
            self.acks,
            self.rng.randrange(2**32),
            durability=durability,
            threads=self.rng.choice([1, 2, 4]),
            trim_through=len(checks.load_archive(self.archive)),
        )

    def start(self, plan: workload.Plan, points: str = "") -> Child:
        return Child(lambda: workload.run(plan), self.output, points=points, mutation=self.mutation)

    def check(self, durability: str = "full") -> list[str]:
        """What the judge finds; leftovers of interrupted backups are swept away first."""
        for left in self.directory.glob("store.*"):
            shutil.rmtree(left)
        return call(
            lambda: checks.check(self.store, self.acks, self.archive, durability), self.output
        ).problems


def lives(directory: Path, rng: random.Random, mutation: str = "") -> Iterator[Life]:
    """Stores, each with a short quiet past, for as long as somebody asks."""
    number = 0
    while True:
        number += 1
        life = Life(directory / str(number), random.Random(rng.random()), mutation)
        life.directory.mkdir(parents=True)
        status, _ = life.start(replace(life.plan(), rounds=2)).wait()
        if status != 0:
            raise ChildFailed(life.output.read_text())
        problems = life.check()
        if problems and not mutation:
            raise ChildFailed(f"without any fault: {problems}")
        for _ in range(LIVES):
            yield life
        shutil.rmtree(life.directory)


def at_boundaries(
    harness: Harness,
    directory: Path,
    each: int,
    mutation: str = "",
    only: tuple[str, ...] | None = None,
) -> None:
    """D1: `each` kills at every boundary."""
    rng = harness.rng
    wanted = [name for name in only or boundaries() for _ in range(each)]
    rng.shuffle(wanted)
    for name, life in zip(wanted, lives(directory, rng, mutation), strict=False):
        hit = rng.randint(1, _hits_max(name))
        durability = "full" if name.startswith(_ONLY_FULL) else rng.choice(["full", "full", "off"])
        run = f"{name}=kill@{hit} durability={durability}"
        child = life.start(life.plan(durability), points=f"{name}=kill@{hit}")
        problems = _ended(child) or life.check(rng.choice(["full", "off"]))
        harness.count(name, run, problems)


_ONLY_FULL = ("sync.", "anchor.", "publish.")


def _ended(child: Child) -> list[str]:
    """Wait for the kill; a child that was never killed missed its boundary."""
    try:
        status, _ = child.wait()
    except ChildFailed as failed:
        return [str(failed)]
    return [] if killed(status) else [f"ended with status {status}\n{child.errors()}"]


def at_random_times(harness: Harness, directory: Path, runs: int, mutation: str = "") -> None:
    """D2: kill at random times, reopen with random options."""
    rng = harness.rng
    for _, life in zip(range(runs), lives(directory, rng, mutation), strict=False):
        durability = rng.choice(["full", "off"])
        plan = replace(life.plan(durability), threads=4)
        acknowledged = len(read_acks(life.acks).told)
        child = life.start(plan)
        time.sleep(rng.uniform(0.0, 0.6))
        child.kill()
        problems = _ended(child) or life.check(rng.choice(["full", "off"]))
        more = len(read_acks(life.acks).told) - acknowledged
        harness.count("random", f"durability={durability} after {more} transactions", problems)


def in_recovery(harness: Harness, directory: Path, runs: int, mutation: str = "") -> None:
    """D3: kill while writing, then kill the recovery, up to three deep."""
    rng = harness.rng
    opening = [name for name in boundaries() if name.startswith(("open.", "anchor."))]
    for _, life in zip(range(runs), lives(directory, rng, mutation), strict=False):
        first = life.start(life.plan(), points=f"commit.after_write=kill@{rng.randint(1, 20)}")
        problems, chain = _ended(first), []
        for _ in range(rng.randint(1, 3)):
            name, durability = rng.choice(opening), rng.choice(["full", "off"])
            chain.append(f"{name} {durability}")
            again = life.start(life.plan(durability), points=f"{name}=kill@1")
            problems += _ended(again)
        harness.count(f"{len(chain)} deep", ", ".join(chain), problems or life.check())
