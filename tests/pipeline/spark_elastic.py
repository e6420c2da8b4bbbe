"""Executors come, go and are killed while a job maintains views: no record's timeline is reordered.

Two clusters of real processes on this machine:

    local-cluster   `local-cluster[2,1,1024]`; an executor is killed in the middle
    standalone      a master and workers started here, with dynamic allocation: a worker joins, an
                    executor is killed, a worker leaves

While an application writes, the job goes on batch by batch; the changes of the cluster happen after
given batches. Each batch must begin where the one before ended, a reader of the view must never see
an older version of a record after a newer one, and at the end all views hold the rows of their
queries.

    python -m tests.pipeline.spark_elastic --clusters local-cluster standalone --seed 1
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from belvedere.benchmarks.papers.executors import executor_processes, kill_executor
from belvedere.errors import Error
from belvedere.pipeline.jobs import maintain
from belvedere.pipeline.maintain import group_driver
from belvedere.pipeline.maintain.group_driver import AppliedBatch
from belvedere.pipeline.store.client import Store
from belvedere.pipeline.store.spark_session import open_spark_session
from tests.pipeline.definitions import DEFINITIONS
from tests.pipeline.spark_faults import VIEWS, Owner, bag, environment, write_some

DEADLINE_S = 1800.0
RECORDS = 40
TASKS = 4
NEWEST = "SELECT id, version FROM records"
DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.initialExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": "3",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    "spark.dynamicAllocation.executorIdleTimeout": "20s",
    "spark.dynamicAllocation.shuffleTracking.timeout": "20s",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
}


# -- a standalone cluster --------------------------------------------------------------------------


class Standalone:
    """A master and workers, each a process of its own, ended with this one."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.master = ""
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        self._run("master", "org.apache.spark.deploy.master.Master", "--port", "0")
        self.master = self._said("master", "Starting Spark master at ").split()[0]

    def add_worker(self) -> subprocess.Popen[bytes]:
        name = f"worker{len(self._processes)}"
        options = ["--cores", "1", "--memory", "1g", "--work-dir", str(self.directory / name)]
        made = self._run(name, "org.apache.spark.deploy.worker.Worker", *options, self.master)
        self._said(name, "Successfully registered with master")
        return made

    def remove_worker(self, worker: subprocess.Popen[bytes]) -> None:
        worker.terminate()
        worker.wait(DEADLINE_S)

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait(DEADLINE_S)

    def _run(self, name: str, entry: str, *options: str) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        command = [str(home / "bin" / "spark-class"), entry, "--host", "127.0.0.1"]
        settings = {**environment(""), "SPARK_HOME": str(home), "SPARK_NO_DAEMONIZE": "1"}
        with (self.directory / f"{name}.log").open("wb") as output:
            made = subprocess.Popen(
                [*command, "--webui-port", "0", *options],
                env=settings,
                stdout=output,
                stderr=output,
            )
        self._processes.append(made)
        return made

    def _said(self, name: str, words: str) -> str:
        """What follows these words in the log of a process, once it said them."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            text = (self.directory / f"{name}.log").read_text(errors="replace")
            if words in text:
                return text.partition(words)[2]
            assert time.monotonic() < deadline, text
            time.sleep(0.05)


# -- what is watched -------------------------------------------------------------------------------


@dataclass
class Watch:
    """What each batch must keep to, and what happens to the cluster after some of them."""

    spark: SparkSession
    store: Store
    events: dict[int, tuple[str, Callable[[], object]]]
    wrong: list[str] = field(default_factory=list)
    batches: int = 0
    executors: set[int] = field(default_factory=set)
    _ends: dict[int, int] = field(default_factory=dict)
    _seen: dict[int, int] = field(default_factory=dict)

    def __call__(self, applied: AppliedBatch) -> None:
        self.batches += 1
        self.executors |= executor_processes(self.spark).keys()
        before = self._ends.get(applied.group, applied.start)
        if applied.start != before or applied.end <= applied.start:
            self.wrong.append(f"{applied} does not follow {before}")
        self._ends[applied.group] = applied.end
        self._look()
        if self.batches in self.events:
            name, act = self.events[self.batches]
            print(f"batch {self.batches}, {len(executor_processes(self.spark))} executors: {name}")
            act()

    def _look(self) -> None:
        """No record goes back in the view."""
        found = bag(self.store, "SET freshness = 'any'; SELECT id, version FROM newest")
        for id_, version in found:
            assert isinstance(id_, int)
            assert isinstance(version, int)
            if version < self._seen.get(id_, 0):
                self.wrong.append(f"record {id_} went back to {version}")
            self._seen[id_] = version


def write_on(store: Store, seed: int, ended: threading.Event, failures: list[Error]) -> None:
    """The application: rows of the other views, and records whose versions grow."""
    rng = random.Random(f"elastic {seed}")
    try:
        while not ended.is_set():
            write_some(store, rng, 3)
            id_ = rng.randrange(RECORDS)
            store.execute(f"UPDATE records SET version = version + 1 WHERE id % 8 = {id_ % 8}")
    except Error as error:
        failures.append(error)


def set_up(store: Store) -> None:
    store.execute("CREATE TABLE records (id int PRIMARY KEY, version int NOT NULL)")
    rows = ", ".join(f"({id_}, 0)" for id_ in range(RECORDS))
    store.execute(f"INSERT INTO records VALUES {rows}")
    store.execute(
        "CREATE MATERIALIZED VIEW newest WITH (maintenance = 'deferred', max_lag = '3600 s')"
        f" AS {NEWEST}"
    )


def maintained(
    spark: SparkSession, store: Store, watch: Watch, seed: int, directory: Path
) -> list[str]:
    """Run the job until all events have been and some batches more; what was wrong."""
    ended, failures = threading.Event(), list[Error]()
    last = max(watch.events) + 2
    writer = threading.Thread(target=write_on, args=(store, seed, ended, failures))
    deadline = time.monotonic() + DEADLINE_S

    def stopped() -> bool:
        return watch.batches >= last or bool(failures) or time.monotonic() > deadline

    writer.start()
    try:
        maintain.run_maintenance(
            spark,
            store,
            [],
            DEFINITIONS,
            directory=directory,
            tasks=TASKS,
            progress=watch,
            stopped=stopped,
        )
    finally:
        ended.set()
        writer.join()
    maintain.run_maintenance(
        spark, store, [], DEFINITIONS, once=True, directory=directory, tasks=TASKS
    )
    missed = [] if watch.batches >= last else [f"only {watch.batches} batches"]
    return [*watch.wrong, *missed, *map(str, failures), *_differences(store)]


def _differences(store: Store) -> list[str]:
    behind = [str(g) for g in store.call_owner_verb("groups") if g["watermark"] != g["position"]]
    wrong = []
    for name, query in {**VIEWS, "newest": NEWEST}.items():
        rows = [bag(store, f"SET freshness = 'any'; SELECT * FROM {name}"), bag(store, query)]
        if rows[0] != rows[1]:
            wrong.append(f"{name}: {rows[0] - rows[1]} too many, {rows[1] - rows[0]} missing")
    return behind + wrong


# -- the two clusters ------------------------------------------------------------------------------


@contextmanager
def opened(directory: Path) -> Iterator[Store]:
    owner = Owner(directory / "elastic.db")
    owner.start()
    try:
        store = Store.from_url(str(owner.directory))
        set_up(store)
        yield store
    finally:
        owner.kill()


def local_cluster(directory: Path, seed: int) -> list[str]:
    settings = {"spark.executor.memory": "1g"}
    with (
        opened(directory) as store,
        open_spark_session("local-cluster[2,1,1024]", settings=settings) as spark,
    ):
        wait_for_executors(spark, 2)
        events = {3: ("kill an executor", lambda: kill_executor(spark))}
        watch = Watch(spark, store, events)
        found = maintained(spark, store, watch, seed, directory / "job")
        if len(watch.executors) < 3:
            found.append(f"no executor took the place of the killed one: {watch.executors}")
        return found


def standalone(directory: Path, seed: int) -> list[str]:
    cluster = Standalone(directory)
    with ExitStack() as stack:
        stack.callback(cluster.stop)
        cluster.start()
        first = cluster.add_worker()
        store = stack.enter_context(opened(directory))
        spark = stack.enter_context(open_spark_session(cluster.master, settings=DYNAMIC))
        wait_for_executors(spark, 1)
        events = {
            1: ("two workers join", lambda: (cluster.add_worker(), cluster.add_worker())),
            4: ("kill an executor", lambda: kill_executor(spark)),
            6: ("a worker leaves", lambda: cluster.remove_worker(first)),
        }
        watch = Watch(spark, store, events)
        found = maintained(spark, store, watch, seed, directory / "job")
        if len(watch.executors) < 3:
            found.append(f"the cluster did not grow: {watch.executors}")
        return found


def wait_for_executors(spark: SparkSession, count: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while len(executor_processes(spark)) < count:
        assert time.monotonic() < deadline, "the executors did not start"
        time.sleep(0.1)


CLUSTERS = {"local-cluster": local_cluster, "standalone": standalone}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clusters", nargs="*", choices=list(CLUSTERS), default=list(CLUSTERS))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.environ.update(environment(""))
    group_driver.SMALL_CHANGES = 0  # tasks and an exchange, however little there is
    wrong = 0
    for name in options.clusters:
        with tempfile.TemporaryDirectory() as directory:
            found = CLUSTERS[name](Path(directory), options.seed)
        wrong += bool(found)
        print(f"{name}: {'; '.join(found) or 'ok'} (seed {options.seed})", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
