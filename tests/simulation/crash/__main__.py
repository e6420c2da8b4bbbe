"""Runs the proof of recovery and prints what it found.

    python -m tests.simulation.crash                        the quick profile
    python -m tests.simulation.crash --profile ci           the counts of a release candidate
    python -m tests.simulation.crash --only d1 --seed 7     one goal, from another seed

Every goal has two controls: a run that must find something and a run that must not. A control that
comes out wrong is a failure of the harness, and counted as one.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from belvedere import failpoints
from tests.mutations.registry import ENGINE
from tests.simulation.crash.controls import CONTROLS
from tests.simulation.crash.faults import damage, disk, injected, kills, power_cut
from tests.simulation.crash.planted import recovery
from tests.simulation.crash.processes import ChildFailed, call
from tests.simulation.crash.report import Harness, table

ROOM_BYTES = 1 << 30

Run = Callable[[Harness, Path], None]


@dataclass(frozen=True, slots=True)
class Profile:
    """How much of everything."""

    kills_each: int
    random_kills: int
    recovery_kills: int
    power_machines: int
    fault_stride: int
    fault_runs: int
    disks: int
    damage_each: int
    log_records: int
    log_boundaries: int | None
    log_offsets: int


PROFILES = {
    "quick": Profile(1, 10, 5, 5, 7, 25, 3, 1, 60, 12, 12),
    "ci": Profile(7, 150, 30, 20, 1, 300, 20, 10, 300, None, 200),
}

GOALS: dict[str, str] = {
    "d1": "SIGKILL at every named boundary",
    "d2": "SIGKILL at random times, random durability at reopen",
    "d3": "SIGKILL during recovery, up to 3 deep",
    "d4": "power cut, simulated: what was not synced is gone",
    "d5": "every call of the store fails once, before or after its effect",
    "d7": "disk full in commits, index builds and backups; then space returns",
    "d8": "damaged files of every class",
    "d9": "RocksDB's log cut, deleted, exchanged",
}


def runs_of(profile: Profile) -> dict[str, Run]:
    return {
        "d1": lambda h, d: kills.at_boundaries(h, d, profile.kills_each),
        "d2": lambda h, d: kills.at_random_times(h, d, profile.random_kills),
        "d3": lambda h, d: kills.in_recovery(h, d, profile.recovery_kills),
        "d4": lambda h, d: _in_child(h, d, profile.power_machines),
        "d5": lambda h, d: injected.sweep(h, d / "sweep", profile.fault_stride, profile.fault_runs),
        "d7": lambda h, d: disk.fill_up(h, d, profile.disks),
        "d8": lambda h, d: damage.file_damage(
            h, damage.make_specimen(d / "made", 60, h.seed), profile.damage_each
        ),
        "d9": lambda h, d: damage.log_cuts(
            h,
            damage.make_specimen(d / "made", profile.log_records, h.seed),
            profile.log_boundaries,
            profile.log_offsets,
        ),
    }


def _in_child(harness: Harness, directory: Path, machines: int) -> None:
    """Power cuts need no process to die, but threads: not in a process that forks."""

    def run() -> Harness:
        power_cut.cuts(harness, directory, machines)
        return harness

    done = call(run, directory / "stderr")
    harness.runs, harness.failures = done.runs, done.failures


def main() -> int:
    parser = argparse.ArgumentParser(prog="crash", description="prove that recovery works")
    parser.add_argument("--profile", choices=PROFILES, default="quick")
    parser.add_argument("--only", action="append", choices=[*GOALS, "planted"], default=[])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chosen = options.only or [*GOALS, "planted"]
    print(f"crash: profile {options.profile}, seed {options.seed}", flush=True)
    runs = runs_of(PROFILES[options.profile])
    harnesses = [run_goal(name, runs[name], options.seed) for name in GOALS if name in chosen]
    bugs = run_planted() if "planted" in chosen else {}
    print(table(harnesses))
    for name, verdict in bugs.items():
        print(f"planted {name:<26}{verdict}")
    missed = [name for name, verdict in bugs.items() if not verdict.startswith("caught")]
    failures = sum(len(harness.failures) for harness in harnesses)
    total = sum(harness.total for harness in harnesses)
    caught = len(bugs) - len(missed)
    print(f"{total} runs, {failures} failures; {caught} of {len(bugs)} planted bugs caught")
    return 1 if failures or missed else 0


def run_goal(name: str, run: Run, seed: int) -> Harness:
    """One harness with its controls."""
    harness = Harness(name, GOALS[name], seed)
    home = scratch(name)
    try:
        must_fail, must_pass = CONTROLS[name]
        for control, wanted in ((must_fail, True), (must_pass, False)):
            (home / str(wanted)).mkdir()
            found = control(home / str(wanted), seed)
            if bool(found) is not wanted:
                harness.failures.append(f"{name}: control {control.__name__} found {found}")
                print(f"FAILED {harness.failures[-1]}", flush=True)
        harness.note("controls: one fails and one passes, as they must")
        (home / "runs").mkdir()
        run(harness, home / "runs")
    except ChildFailed as failed:
        harness.failures.append(f"{name}: {failed}")
        print(f"FAILED {harness.failures[-1]}", flush=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    if name == "d1":
        harness.note(_coverage(harness))
    return harness.end()


def scratch(name: str) -> Path:
    """A directory for stores: in memory where there is enough, since a killed process loses nothing
    of a file system in any case, and a sync costs nothing there."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > ROOM_BYTES
    parent = memory if roomy else None
    return Path(tempfile.mkdtemp(prefix=f"belvedere-{name}-", dir=parent))


def _coverage(harness: Harness) -> str:
    passed = kills.boundaries()
    least = min((harness.runs[name] for name in passed), default=0)
    never = sorted(set(failpoints.BOUNDARIES) - set(passed))
    text = f"{len(passed)} boundaries, each hit at least {least} times"
    return text + (f"; not in the engine: {', '.join(never)}" if never else "")


def run_planted() -> dict[str, str]:
    """Each planted bug, with what became of it."""
    verdicts: dict[str, str] = {}
    home = scratch("planted")
    try:
        for name in ENGINE:
            started = time.monotonic()
            if name not in recovery.SCHEDULES:
                verdicts[name] = "has no schedule"
                continue
            try:
                found = recovery.caught(name, home / name)
            except (AssertionError, ChildFailed) as error:
                verdicts[name] = f"FAILED {error}"
                continue
            seconds = time.monotonic() - started
            verdicts[name] = f"caught in {seconds:.1f} s" if found else "NOT CAUGHT"
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return verdicts


if __name__ == "__main__":
    sys.exit(main())
