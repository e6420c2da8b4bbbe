"""The experiments of VMS with Spark as the view managers, on one, two and four executors.

As `vms`, but a Spark job maintains the views, on `local-cluster[n,1,1024]`: n executors of one
core, each a process. A backlog of changes is written first, and the time is measured from the start
of the job until the view has all of it. One experiment kills an executor in the middle of a run and
records how long batches take. Two cores cannot show more than the step from one to two.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import Progress

from belvedere.benchmarks.papers.executors import executor_processes, kill_executor
from belvedere.benchmarks.papers.vms import KEYS, VIEWS
from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure
from belvedere.benchmarks.report.plots import Plot
from belvedere.benchmarks.views.workload import (
    Statement,
    ThreadGroup,
    create_view,
    load_rows,
    mix_changes,
    open_connection,
    percentile,
    run_all,
    run_paced,
    time_call,
    uniform_keys,
    zipfian_keys,
)
from belvedere.errors import Corruption
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.store.client import Store
from belvedere.pipeline.store.tables import DefinitionCompiler
from belvedere.session.materialized.create import bind_simplified_definition
from belvedere.session.statement.catalog_expressions import compile_row_expression

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from belvedere.pipeline.maintain.group_driver import AppliedBatch, GroupDriver

DEFINITIONS = DefinitionCompiler(bind_simplified_definition, compile_row_expression)
EXECUTORS = (1, 2, 4)
ROWS = 50_000
OPERATIONS = 20_000
WRITES_PER_S = 200
KILL_AFTER_S = 20.0
START_S_MAX = 300.0
IDLE_S = 0.005
SCALING = {
    "selection 10%": "fig 6: no more with more view managers, the clients are the limit",
    "selection 50%": "fig 6: slower than 10%",
    "selection 90%": "fig 6: slower than 50%",
    "count": "fig 7: significantly more with more view managers",
    "sum": "fig 7: as count",
    "min": "fig 7: below index",
    "index": "fig 7: below count and sum",
    "join": "fig 8: the lowest, more with more view managers",
}
SKEW = {
    "uniform": "fig 11: does not depend on the number of view managers",
    "zipf": "fig 11: much slower than uniform, better with more view managers",
}
CRASH = "fig 14: recovery takes additional time; less so the more view managers there are"
Curves = dict[str, list[tuple[float, float]]]


def run(scale: float, seed: int) -> BenchmarkReport:
    report = BenchmarkReport(f"vms on Spark, scale {scale:g}", seed)
    by_type: Curves = {}
    by_keys: Curves = {}
    crashes: Curves = {}
    with Progress() as progress:
        task = progress.add_task("vms on Spark", total=3 * len(EXECUTORS))
        for count in EXECUTORS:
            with start_executors(count) as spark:
                for name, step in (
                    ("view types", partial(view_types, curves=by_type)),
                    ("keys", partial(key_distributions, curves=by_keys)),
                    ("crash", partial(measure_crash, curves=crashes)),
                ):
                    progress.update(task, description=f"{count} executors, {name}")
                    with tempfile.TemporaryDirectory(prefix="belvedere-bench-") as directory:
                        step(spark, Path(directory), count, scale, seed, report)
                    progress.advance(task)
    titles = ("VMS on Spark, view types", "VMS on Spark, keys")
    for title, curves in zip(titles, (by_type, by_keys), strict=True):
        report.plots.append(Plot(title, "executors", "operations a second", curves))
    if crashes:
        report.plots.append(Plot("VMS on Spark, a crash", "seconds", "ms of a batch", crashes))
    return report


@contextmanager
def start_executors(count: int) -> Iterator[SparkSession]:
    """A cluster of `count` running executors on this machine."""
    from belvedere.pipeline.store.spark_session import (  # heavy
        build_small_job_settings,
        open_spark_session,
    )

    settings = {**build_small_job_settings(count), "spark.executor.memory": "1g"}
    with open_spark_session(f"local-cluster[{count},1,1024]", "belvedere bench", settings) as spark:
        end = time.monotonic() + START_S_MAX
        while len(executor_processes(spark)) < count:
            if time.monotonic() > end:
                raise TimeoutError("the executors do not start")
            time.sleep(0.1)
        yield spark


# -- figures 6, 7, 8 and 11 ------------------------------------------------------------------------


def view_types(
    spark: SparkSession,
    directory: Path,
    count: int,
    scale: float,
    seed: int,
    report: BenchmarkReport,
    curves: Curves,
) -> None:
    rows, operations = _scaled_sizes(scale)
    statements = mix_changes(random.Random(seed), "t", rows, operations, KEYS)
    _measure_rate(
        spark, directory / "warm", rows, statements, VIEWS["count"][0], count
    )  # not counted
    for name, published in SCALING.items():
        where = directory / name.replace("%", "")
        rate = _measure_rate(spark, where, rows, statements, VIEWS[name][0], count)
        points = curves.setdefault(name, [])
        points.append((float(count), rate))
        title = f"{name}, {count} executor{'s' * (count > 1)}"
        report.add(Figure(title, rate, "1/s", "", points[0][1], published))


def key_distributions(
    spark: SparkSession,
    directory: Path,
    count: int,
    scale: float,
    seed: int,
    report: BenchmarkReport,
    curves: Curves,
) -> None:
    """Updates of uniform and of skewed keys: a batch applies the net change of each row."""
    rows, operations = _scaled_sizes(scale)
    text = "UPDATE t SET v = v + 1 WHERE id = ?"
    for name, draw in (("uniform", uniform_keys), ("zipf", zipfian_keys)):
        statements = [
            Statement(text, (key,)) for key in draw(random.Random(seed), rows, operations)
        ]
        rate = _measure_rate(spark, directory / name, rows, statements, VIEWS["sum"][0], count)
        points = curves.setdefault(name, [])
        points.append((float(count), rate))
        title = f"{name} keys, {count} executor{'s' * (count > 1)}"
        report.add(Figure(title, rate, "1/s", "", points[0][1], SKEW[name]))


def _scaled_sizes(scale: float) -> tuple[int, int]:
    return max(int(ROWS * scale), 100), max(int(OPERATIONS * scale), 60)


def _measure_rate(
    spark: SparkSession,
    path: Path,
    rows: int,
    statements: Sequence[Statement],
    query: str,
    tasks: int,
) -> float:
    """Changes a second that the job applies, when all of them are pending at its start."""
    with _maintained_store(spark, path, rows, query, tasks) as (connection, job, _):
        run_all(connection, statements)
        return len(statements) / time_call(job.advance_groups)


@contextmanager
def _maintained_store(
    spark: SparkSession, path: Path, rows: int, query: str, tasks: int
) -> Iterator[tuple[Connection, GroupDriver, list[AppliedBatch]]]:
    """A store with a view that the job has claimed and maintained once, to warm up."""
    from belvedere.pipeline.maintain.group_driver import GroupDriver  # heavy

    with open_connection(path) as connection:
        connection.execute("CREATE TABLE r (id integer PRIMARY KEY, name text NOT NULL)")
        load_rows(connection, "r", "i, 'name ' || i", KEYS)
        connection.execute(
            "CREATE TABLE t (id bigint PRIMARY KEY, g integer NOT NULL, v integer NOT NULL)"
        )
        load_rows(connection, "t", f"i, i % {KEYS}, i % 1000", rows)
        create_view(connection, "v", query, maintenance="deferred", max_lag="3600 s")
        applied: list[AppliedBatch] = []
        store = Store.from_url(str(path))
        job = GroupDriver(spark, store, DEFINITIONS, "bench", tasks, progress=applied.append)
        job.claim_groups([])
        connection.execute("UPDATE t SET v = v WHERE id < 100")
        job.advance_groups()
        applied.clear()
        yield connection, job, applied
        job.release_groups()


# -- figure 14 -------------------------------------------------------------------------------------


def measure_crash(
    spark: SparkSession,
    directory: Path,
    count: int,
    scale: float,
    seed: int,
    report: BenchmarkReport,
    curves: Curves,
) -> None:
    """Kill an executor in the middle of a run; measure batches before, during and after."""
    rows, _ = _scaled_sizes(scale)
    before = KILL_AFTER_S * min(scale, 1.0)
    followed = _maintained_store(spark, directory / "crash", rows, VIEWS["sum"][0], count)
    with _every_executor(), followed as (connection, job, _):
        drawn = uniform_keys(random.Random(seed), rows, max(int(2 * before * WRITES_PER_S), 20))
        killed: list[int | None] = []
        timer = threading.Timer(before, lambda: killed.append(kill_executor(spark)))
        began = time.perf_counter()
        timer.start()
        writing = ThreadGroup(partial(_write_keys, str(directory / "crash"), drawn))
        taken = _run_steps(job, writing, began)
        timer.join()
        _require_law(connection)
    if not killed or killed[0] is None:
        report.absent.append(f"a crash with {count} executors: none is a process here")
        return
    report_crash(report, count, before, taken)
    curves[f"{count} executors"] = [(at, spent * 1e3) for at, spent in taken]


@contextmanager
def _every_executor() -> Iterator[None]:
    """Distribute small batches to all executors too, so that the killed one has work to do."""
    from belvedere.pipeline.maintain import group_driver  # heavy

    usual, group_driver.SMALL_CHANGES = group_driver.SMALL_CHANGES, 0
    try:
        yield
    finally:
        group_driver.SMALL_CHANGES = usual


def _write_keys(path: str, drawn: Sequence[int]) -> None:
    with open_connection(Path(path)) as connection:
        text = "UPDATE t SET v = v + 1 WHERE id = ?"
        run_paced(WRITES_PER_S, [partial(connection.execute, text, (key,)) for key in drawn])


def _run_steps(job: GroupDriver, writing: ThreadGroup, began: float) -> list[tuple[float, float]]:
    """Run steps until all writes are maintained; return the start and duration of each."""
    taken = []
    while True:
        over = not writing.is_running
        at = time.perf_counter()
        if job.advance_groups():
            taken.append((at - began, time.perf_counter() - at))
        elif over:
            writing.join()
            return taken
        else:
            time.sleep(IDLE_S)


def report_crash(
    report: BenchmarkReport, count: int, before: float, taken: Sequence[tuple[float, float]]
) -> None:
    usual = [spent for at, spent in taken if at + spent < before] or [taken[0][1]]
    later = [(at, spent) for at, spent in taken if at + spent >= before] or [taken[-1]]
    middle = percentile(usual, 0.5) * 1e3
    worst = max(spent for _, spent in later) * 1e3
    last = percentile([spent for _, spent in later[len(later) // 2 :]], 0.5) * 1e3
    what = f"{count} executor{'s' * (count > 1)}, a batch"
    report.add(Figure(f"{what} before one is killed, p50", middle, "ms"))
    report.add(Figure(f"{what} with the kill, longest", worst, "ms", "", middle, CRASH))
    report.add(Figure(f"{what} afterwards, p50", last, "ms", "", middle))


def _require_law(connection: Connection) -> None:
    stored = connection.execute("SELECT * FROM v", freshness="any").fetchall()
    if sorted(stored) != sorted(connection.execute(VIEWS["sum"][0]).fetchall()):
        raise Corruption("a view differs from its query after an executor was killed")
