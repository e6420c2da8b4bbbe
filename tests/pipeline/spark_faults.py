"""Kills of the driver, of its Python workers and of the store's owner, at named points.

After each kill the job goes on: with another driver, another worker, another owner. It must come to
the end of the log, and every view must hold exactly the rows of its query: nothing lost, nothing
twice.

    python -m tests.pipeline.spark_faults --kills 30 --seed 1

    driver    killed when it has claimed, computed or applied a log range
    worker    killed in a task that computes, or in one that adds up
    owner     killed before and after it wrote the claim, the batch, the end of the claim, and
              between two jobs
    command   `belvedere pipeline maintain` itself, killed before it applies

The driver is a process that runs job after job as it is told, since a session of Spark takes its
time to start; a driver that was killed is followed by a new process.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import belvedere
from belvedere import failpoints
from belvedere.errors import Error
from belvedere.pipeline.store.client import Store
from belvedere.remote.client import is_reachable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEADLINE_S = 600.0
PROGRAM = "tests.pipeline.spark_faults"
VIEWS = {
    "per_kind": "SELECT kind, count(*) AS n, sum(price) AS total FROM items GROUP BY kind",
    "joined": "SELECT i.id, k.name FROM items i JOIN kinds k ON k.id = i.kind WHERE i.price > 2",
    "lonely": "SELECT k.id FROM kinds k LEFT JOIN items i ON i.kind = k.id WHERE i.id IS NULL",
    "most": "SELECT kind, max(price) AS most FROM items GROUP BY kind",
}
DRIVER = ("pipeline.claimed", "pipeline.computed", "pipeline.applied")
WORKER = ("pipeline.task", "pipeline.sum")
OWNER = (
    "maintain.before_write@1",
    "maintain.after_write@1",
    "maintain.before_write@2",
    "maintain.after_write@2",
    "maintain.after_write@3",
)
"""The first write of a job is its claim, then a batch and the next claim, the last its end."""
BETWEEN = "between two jobs"
COMMAND = "the command"
EVERY = (*DRIVER, *WORKER, *OWNER, BETWEEN, COMMAND)


# -- the owner -------------------------------------------------------------------------------------


def own(directory: str) -> None:
    """In a process of its own: has the store open until it is killed, or nobody listens. A line
    NAME@N on its input has it die at the N-th hit of a place."""
    with belvedere.connect(directory, autocommit=True) as connection:
        found = connection.execute(
            "SELECT count(*) FROM information_schema.tables WHERE table_name = 'items'"
        ).fetchone()
        if found == (0,):
            set_up(connection)
        print("ready", flush=True)
        for line in sys.stdin:
            place, _, at = line.strip().partition("@")
            failpoints.arm(place, "kill", at=int(at))
            print("armed", flush=True)


def set_up(connection: belvedere.interfaces.dbapi.Connection) -> None:
    connection.execute("CREATE TABLE kinds (id int PRIMARY KEY, name text)")
    connection.execute("CREATE TABLE items (id int PRIMARY KEY, kind int, price numeric(8,2))")
    for i in range(6):
        connection.execute("INSERT INTO kinds VALUES (?, ?)", (i, f"kind {i}"))
    for name, query in VIEWS.items():
        connection.execute(
            f"CREATE MATERIALIZED VIEW {name}"
            f" WITH (maintenance = 'deferred', max_lag = '3600 s') AS {query}"
        )  # the worker is in no hurry, so that the job has something to do
    for name in [*VIEWS, *VIEWS]:  # at one position they join their group
        connection.execute(f"REFRESH MATERIALIZED VIEW {name}")


class Owner:
    """The owner's process, which may be killed and started again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self._process = talking("--own", str(self.directory))
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n", "the owner did not start"
        deadline = time.monotonic() + DEADLINE_S
        while not is_reachable(self.directory):
            assert time.monotonic() < deadline, "nobody answers for the store"
            time.sleep(0.01)

    def die_at(self, point: str) -> None:
        """Have it killed at PLACE@N, counted from now."""
        assert self._process is not None
        assert tell(self._process, point) == "armed", "the owner is gone"

    def kill(self) -> None:
        if self._process is not None:
            end(self._process)
            self._process = None


def talking(*arguments: str, program: str = PROGRAM) -> subprocess.Popen[str]:
    """A program of the tests in another process, with pipes to and from it."""
    return subprocess.Popen(
        [sys.executable, "-m", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(""),
    )


def tell(process: subprocess.Popen[str], line: str) -> str:
    """What it answers; nothing when it died."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        return ""
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait(DEADLINE_S)
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError):  # what was not sent any more
            pipe.close()


def environment(failpoints: str) -> dict[str, str]:
    repository = Path(__file__).resolve().parent.parent.parent
    source = Path(belvedere.__file__).resolve().parent.parent
    paths = os.pathsep.join(map(str, (source, repository)))
    chosen = {"PYTHONPATH": paths, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    return {**os.environ, **chosen, "BELVEDERE_FAILPOINTS": failpoints}


# -- writes and the law ----------------------------------------------------------------------------


def write_some(store: Store, rng: random.Random, statements: int = 12) -> None:
    for _ in range(statements):
        id_, kind, price = rng.randrange(40), rng.randrange(7), rng.randrange(9)
        store.execute(
            rng.choice(
                (
                    f"INSERT INTO items VALUES ({id_}, {kind}, {price}) ON CONFLICT (id)"
                    f" DO UPDATE SET kind = {kind}, price = {price}",
                    f"DELETE FROM items WHERE id = {id_}",
                    f"UPDATE items SET price = price + 1 WHERE kind = {kind}",
                    f"UPDATE kinds SET name = 'n{price}' WHERE id = {kind}",
                )
            )
        )


def differences(store: Store) -> list[str]:
    """What is wrong: a group that is behind, and rows that views and queries do not share."""
    found = []
    for group in store.call_owner_verb("groups"):
        if group["watermark"] != group["position"] or len(group["views"]) != len(VIEWS):
            found.append(f"group is behind: {group}")
    for name, query in VIEWS.items():
        rows = [bag(store, f"SET freshness = 'any'; SELECT * FROM {name}"), bag(store, query)]
        if rows[0] != rows[1]:
            found.append(f"{name}: {rows[0] - rows[1]} too many, {rows[1] - rows[0]} missing")
    return found


def bag(store: Store, sql: str) -> Counter[tuple[object, ...]]:
    table = store.execute(sql).rows
    assert table is not None
    return Counter(zip(*(column.to_pylist() for column in table.columns)))


# -- the driver ------------------------------------------------------------------------------------


Job = Callable[["SparkSession"], Iterable[str]]
"""One job of a driver, and what there is to say of it when it is done."""


def drive(directory: str) -> None:
    """In a process of its own: maintains views, once for each line on its input."""
    from belvedere.pipeline.jobs import maintain  # heavy
    from belvedere.pipeline.maintain import group_driver  # heavy
    from tests.pipeline.definitions import DEFINITIONS

    group_driver.SMALL_CHANGES = 0  # two tasks and an exchange, however little there is

    def job(spark: SparkSession) -> Iterable[str]:
        maintain.run_maintenance(spark, Store.from_url(directory), [], DEFINITIONS, once=True)
        return ()

    serve(job, DRIVER, WORKER)


def serve(job: Job, drivers: Sequence[str], workers: Sequence[str]) -> None:
    """Run a job for each line on the input, armed as the line says: to die at a point of the
    driver's own, or to have a worker die."""
    from belvedere.pipeline.store.spark_session import open_spark_session  # heavy

    with open_spark_session("local[2]") as spark:
        print("ready", flush=True)
        for line in sys.stdin:
            point = line.strip()
            failpoints.disarm_all()
            if point in drivers:
                failpoints.arm(point, "kill", at=1)
            armed = f"{point}=kill@1" if point in workers else ""
            spark.sparkContext.environment["BELVEDERE_FAILPOINTS"] = armed
            try:
                print("done", *job(spark), flush=True)
            except Error as error:
                print("failed:", str(error).replace("\n", "; "), flush=True)


class Driver:
    """The driver's process, which is started again when it was killed."""

    def __init__(self, directory: Path, program: str = PROGRAM) -> None:
        self._directory = directory
        self._program = program
        self._process: subprocess.Popen[str] | None = None

    def run(self, point: str = "") -> str:
        """One job, to be killed at this point: `done`, `failed: ..`, or nothing when it died."""
        if self._process is None:
            self._process = talking("--drive", str(self._directory), program=self._program)
            assert self._process.stdout is not None
            assert self._process.stdout.readline() == "ready\n", "the driver did not start"
        said = tell(self._process, point)
        if not said:
            self.kill()
        return said

    def kill(self) -> None:
        if self._process is not None:
            end(self._process)
            self._process = None


def command(directory: Path, armed: str = "") -> int:
    """The command as a person calls it; its exit code."""
    given = [sys.executable, "-m", "belvedere.interfaces.cli", "pipeline", "maintain", "--once"]
    given += ["--database", str(directory), "--master", "local[2]"]
    return subprocess.run(given, env=environment(armed), capture_output=True).returncode


# -- kills -----------------------------------------------------------------------------------------


Trial = Callable[[Owner, "Driver", Store, str], list[str]]
"""Has something die at a point, and says what was wrong then or after it."""


def run(kills: int, seed: int, points: list[str]) -> int:
    rng = random.Random(f"spark faults {seed}")

    def trial(owner: Owner, driver: Driver, store: Store, point: str) -> list[str]:
        write_some(store, rng)
        found = killed(owner, driver, point)
        write_some(store, rng, 3)
        return found + recovered(store, driver, point)

    wrong = tried(kills, points, trial)
    print(f"{kills} kills, {wrong} with differences (seed {seed})")
    return 1 if wrong else 0


def tried(kills: int, points: list[str], trial: Trial, program: str = PROGRAM) -> int:
    """How many of the trials found something wrong."""
    wrong = 0
    with tempfile.TemporaryDirectory() as directory:
        owner = Owner(Path(directory) / "faults.db")
        driver = Driver(owner.directory, program)
        owner.start()
        store = Store.from_url(str(owner.directory))
        try:
            for number in range(kills):
                point = points[number % len(points)]
                found = trial(owner, driver, store, point)
                wrong += bool(found)
                print(f"kill {number + 1} at {point}: {'; '.join(found) or 'ok'}", flush=True)
        finally:
            driver.kill()
            owner.kill()
    return wrong


def killed(owner: Owner, driver: Driver, point: str) -> list[str]:
    """Have a job, or its owner, die at this point; what did not happen. The owner is there after
    it."""
    if point == COMMAND:
        code = command(owner.directory, "pipeline.computed=kill@1")
        return [] if code == -signal.SIGKILL else [f"the command was not killed but gave {code}"]
    if point in OWNER:
        owner.die_at(point)
    said = driver.run(point)
    if point in OWNER or point == BETWEEN:
        owner.kill()
        owner.start()
    expected = {"": point in DRIVER, "done": point == BETWEEN}.get(said, point in (*WORKER, *OWNER))
    return [] if expected else [f"nothing was killed at {point}: {said}"]


def recovered(store: Store, driver: Driver, point: str) -> list[str]:
    """What is wrong after the next job."""
    if point == COMMAND:
        code = command(store.directory)
        return differences(store) + ([] if code == 0 else [f"the command gave {code}"])
    said = driver.run()
    return differences(store) + ([] if said == "done" else [f"the job after it: {said}"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--points", nargs="*", choices=EVERY, default=list(EVERY))
    parser.add_argument("--own", help="be the owner of this store")
    parser.add_argument("--drive", help="be the driver of jobs on this store")
    options = parser.parse_args()
    if options.own:
        own(options.own)
    elif options.drive:
        drive(options.drive)
    else:
        raise SystemExit(run(options.kills, options.seed, options.points))


if __name__ == "__main__":
    main()
