"""Errors of the store underneath: every call of every operation fails once, before or after its
effect, and so does every step of making a commit durable.

Each case is one operation on a copy of one store in which the nth call of one kind fails; n grows
until the operation is through without a failure. Afterwards nothing more is acknowledged when a
write or a sync has failed, reads go on, and the store, opened again, passes the judge.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from belvedere import failpoints
from belvedere.catalog.definitions import IndexDefinition, KeyPartDefinition
from belvedere.config import Config
from belvedere.database import Database
from belvedere.errors import Error, Unavailable
from belvedere.kv.doubles.faults import FaultTiming, FaultyStore
from belvedere.txn.batch_atomic.recovery import open_directory
from tests.simulation.crash import checks, workload
from tests.simulation.crash.acks import AckFile
from tests.simulation.crash.processes import ChildFailed, call
from tests.simulation.crash.report import Harness

CALLS = ("write", "sync", "get", "multi_get", "scan", "scan_values", "delete_range", "checkpoint")
STEPS = ("commit.before_write", "sync.before", "sync.after", "anchor.before_write",
         "anchor.after_write", "anchor.after_sync", "publish.before")  # fmt: skip
NTH_MAX = 400
FATAL = ("write", "sync")
"""After one of these fails nothing may be written any more."""

Operation = Callable[[workload.Writer], object]

OPERATIONS: dict[str, Operation] = {
    "insert": lambda w: w.commit(w.log_event),
    "buy": lambda w: w.commit(w.buy),
    "change": lambda w: w.commit(w.change_email),
    "swap": lambda w: w.commit(w.swap_emails),
    "cancel": lambda w: w.commit(w.cancel),
    "catalog": lambda w: w.change_catalog(),
    "index": lambda w: w.database.change_schema(
        lambda edit: edit.create_index(
            IndexDefinition("item", (KeyPartDefinition("sku"),), "item_sku")
        )
    ),
    "maintain": lambda w: workload.maintain_counts(w.database),
    "trim": lambda w: w.database.trim(w.plan.trim_through),
    "backup": lambda w: w.back_up(),
    "close": lambda w: w.database.close(),
}


@dataclass(frozen=True, slots=True)
class Case:
    operation: str
    call: str
    when: str
    nth: int
    seed: int


def sweep(harness: Harness, directory: Path, stride: int, runs_max: int) -> None:
    """D5: every `stride`-th call of every kind in every operation, once before and once after."""
    plan = prepare(directory, harness.seed)
    places = [(operation, *way) for operation in OPERATIONS for way in ways()]
    harness.rng.shuffle(places)
    for operation, kind, when in places:
        for nth in range(harness.rng.randint(1, stride), NTH_MAX, stride):
            if harness.total >= runs_max:
                return
            case = Case(operation, kind, when, nth, harness.rng.randrange(2**32))
            struck, problems = run_case(directory, plan, case)
            if not struck and not problems:
                break
            harness.count(f"{kind} {when}", str(case), problems)


def ways() -> list[tuple[str, str]]:
    """What can fail, and when."""
    return [(kind, when) for kind in CALLS for when in ("before", "after")] + [
        (step, "raise") for step in STEPS
    ]


def prepare(directory: Path, seed: int) -> workload.Plan:
    """A store with a past, for copies of it to fail."""
    directory.mkdir(parents=True)
    plan = workload.Plan(directory / "store", directory / "acks", seed, rounds=2)
    output = directory / "stderr"
    call(lambda: workload.run(plan) or True, output)
    call(lambda: checks.check(plan.directory, plan.acks, directory / "archive"), output)
    return plan


def run_case(
    directory: Path, plan: workload.Plan, case: Case, mutation: str = ""
) -> tuple[bool, list[str]]:
    """Whether the fault struck, and what was wrong then."""
    trial = directory / "trial"
    shutil.rmtree(trial, ignore_errors=True)
    trial.mkdir()
    shutil.copytree(plan.directory, trial / "store")
    for name in ("acks", "archive"):
        shutil.copyfile(directory / name, trial / name)
    trimmable = len(checks.load_archive(trial / "archive"))
    mine = replace(plan, directory=trial / "store", acks=trial / "acks", trim_through=trimmable)
    output = trial / "stderr"
    points = f"{case.call}=raise@{case.nth}" if case.when == "raise" else ""
    try:
        struck, problems = call(lambda: _act(mine, case), output, points=points, mutation=mutation)
        if struck and not problems:
            for left in trial.glob("store.*"):
                shutil.rmtree(left)
            findings = call(
                lambda: checks.check(mine.directory, mine.acks, trial / "archive"), output
            )
            problems = findings.problems
    except ChildFailed as failed:
        return True, [str(failed)]
    return struck, problems


def _act(plan: workload.Plan, case: Case) -> tuple[bool, list[str]]:
    """Open, do the operation with the fault waiting, look around, close."""
    acks = AckFile(plan.acks)
    acks.note("opening", durability="full")
    # The failpoint is for the operation: opening passes some of the same steps.
    points, failpoints.armed = failpoints.armed, False
    opened = open_directory(plan.directory, Config(), random.Random(case.seed).randbytes)
    faulty = FaultyStore(opened.store)
    opened.store = faulty
    database = Database(opened, Config(lock_wait_ms_max=1000))
    acks.note("open", incarnation=database.incarnation, position=database.position)
    failpoints.armed = points
    if case.when != "raise":
        faulty.add_fault(case.call, FaultTiming(case.when), nth_from_now=case.nth)
    writer = workload.Writer(plan, database, acks, random.Random(case.seed))
    problems = _operate(writer, case)
    struck = bool(faulty.struck) or (points and failpoints.hits[case.call] >= case.nth)
    failpoints.disarm_all()
    if struck and case.operation != "close":
        problems += _look_around(writer, case)
    acks.note("closing")
    strikes = len(faulty.struck)
    try:
        database.close()
        acks.note("close")
    except Error as error:
        if len(faulty.struck) == strikes and case.operation != "close":
            problems.append(f"close failed: {error}")
    return bool(struck or faulty.struck), problems


def _operate(writer: workload.Writer, case: Case) -> list[str]:
    """Whatever an operation raises must be one of ours."""
    try:
        OPERATIONS[case.operation](writer)
    except Error:
        return []
    except Exception as error:  # noqa: BLE001 that is what is looked for
        return [f"a bare {type(error).__name__}: {error}"]
    return []


def _look_around(writer: workload.Writer, case: Case) -> list[str]:
    """Reads go on; after a failed write or sync no commit is acknowledged."""
    problems, database = [], writer.database
    with database.open_newest_reader() as reader:
        table = database.get_compiled_table("customer")
        found = [row for batch in reader.scan(table.start, table.end) for row in batch]
        if reader.position != database.position or not found:
            problems.append("reads do not go on at the published position")
    acknowledged = False
    try:
        acknowledged = writer.commit(writer.log_event)
    except Unavailable as error:
        if error.sqlstate not in ("25006", "08007"):
            problems.append(f"refused as {error.sqlstate}: {error}")
    fatal = case.call in FATAL or case.when == "raise"
    if acknowledged and fatal and _reaches_commit(case.operation):
        problems.append("a commit was acknowledged after a failed write or sync")
    return problems


def _reaches_commit(operation: str) -> bool:
    """Whether every write and sync of the operation is part of a commit. The others write notes of
    their own, whose failure they report, and go on."""
    return operation in ("insert", "buy", "change", "swap", "cancel", "catalog")
