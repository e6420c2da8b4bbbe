"""The pipeline's jobs on views: backfill, streaming maintenance, verify."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from belvedere.benchmarks.report.measurements import Figure
from belvedere.benchmarks.views.deferred_views import commit_to_visible
from belvedere.benchmarks.views.workload import (
    ThreadGroup,
    load_rows,
    percentile,
    uniform_keys,
)
from belvedere.pipeline.store.tables import DefinitionCompiler
from belvedere.session.materialized.create import bind_simplified_definition
from belvedere.session.statement.catalog_expressions import compile_row_expression

if TYPE_CHECKING:
    from belvedere.benchmarks.pipeline.suite import PipelineBenchmark

DEFINITIONS = DefinitionCompiler(bind_simplified_definition, compile_row_expression)
CORES = 2
FLOOR_BATCHES = 12
FRESH_ROWS, FRESH_RATE = 100_000, 2_000
WARM_SECONDS, FRESH_SECONDS = 8, 20
BACKFILL_VIEWS = {
    "by_customer": "SELECT customer, count(*) AS n, sum(total) AS total FROM orders GROUP BY 1",
    "by_status": "SELECT status, count(*) AS n FROM orders GROUP BY status",
    "by_bucket": "SELECT customer % 100 AS bucket, sum(weight) AS w FROM orders GROUP BY 1",
    "dear": "SELECT id, total FROM orders WHERE total > 999.5",
}
COUNT_QUERY = "SELECT customer, count(*) AS n, sum(total) AS total FROM orders GROUP BY customer"
JOIN_QUERY = (
    "SELECT c.region, count(*) AS n, sum(o.total) AS total"
    " FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.region"
)


def measure_backfills(bench: PipelineBenchmark) -> None:
    """Four views over one table: in one job, in four, and by CREATE MATERIALIZED VIEW."""
    from belvedere.pipeline.jobs import backfill  # heavy

    def run_backfill(names: list[str]) -> float:
        for name in names:
            definition = f"WITH (backfill = 'later') AS {BACKFILL_VIEWS[name]}"
            bench.connection.execute(f"CREATE MATERIALIZED VIEW {name} {definition}")
        started = time.perf_counter()
        list(backfill.run_backfill(bench.spark, bench.store, names, DEFINITIONS))
        spent = time.perf_counter() - started
        for name in names:
            bench.connection.execute(f"DROP MATERIALIZED VIEW {name}")
        return spent

    run_backfill(list(BACKFILL_VIEWS))  # to warm up
    together = run_backfill(list(BACKFILL_VIEWS))
    apart = sum(run_backfill([name]) for name in BACKFILL_VIEWS)
    local = sum(_time_action(lambda n=name: _create_and_drop(bench, n)) for name in BACKFILL_VIEWS)  # type: ignore[misc]
    add = bench.report.add
    add(Figure("backfill of 4 views, four jobs", apart, "s"))
    add(Figure("backfill of 4 views, one job", together, "s", "<= 0.5 ratio", apart))
    add(Figure("backfill of 4 views, locally", local, "s", baseline=together))
    rate = len(BACKFILL_VIEWS) * bench.rows / together / CORES
    add(Figure("backfill, rows of a view per core", rate, "rows/s", ">= 150000 value"))


def _create_and_drop(bench: PipelineBenchmark, name: str) -> None:
    bench.connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {BACKFILL_VIEWS[name]}")
    bench.connection.execute(f"DROP MATERIALIZED VIEW {name}")


def _time_action(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def measure_maintenance(bench: PipelineBenchmark) -> None:
    """Deferred views maintained by Spark: the latency of a one-change batch, and many changes."""
    _measure_view(bench, "count/sum", COUNT_QUERY, 100_000)
    bench.connection.execute("CREATE TABLE customers (id bigint PRIMARY KEY, region text)")
    load_rows(bench.connection, "customers", "i, 'region ' || i % 20", 5003)
    _measure_view(bench, "join + aggregate", JOIN_QUERY, 30_000)


def _measure_view(bench: PipelineBenchmark, what: str, query: str, goal: int) -> None:
    from belvedere.pipeline.maintain.group_driver import GroupDriver  # heavy

    bench.connection.execute(
        "CREATE MATERIALIZED VIEW followed"
        f" WITH (maintenance = 'deferred', max_lag = '3600 s') AS {query}"
    )
    job = GroupDriver(bench.spark, bench.store, DEFINITIONS, "bench", CORES)
    job.claim_groups([])
    floors = []
    for number in range(FLOOR_BATCHES):
        bench.connection.execute("UPDATE orders SET total = total + 1 WHERE id = ?", (number,))
        floors.append(_time_action(job.advance_groups))
    floor = sorted(floors[2:])[len(floors[2:]) // 2] * 1000
    bench.report.add(Figure(f"{what}: a batch of one change", floor, "ms", "<= 400 value"))
    changes = max(bench.rows // 10, 1000)
    for many in (changes // 4, changes):  # the first to warm up
        for start in range(0, many, 5_000):
            bench.connection.execute(
                "UPDATE orders SET total = total + 1 WHERE id >= ? AND id < ?",
                (start, min(start + 5_000, many)),
            )
        spent = _time_action(job.advance_groups)
    rate = changes / spent
    bench.report.add(Figure(f"{what}: changes applied", rate, "changes/s", f">= {goal} value"))
    job.release_groups()
    bench.connection.execute("DROP MATERIALIZED VIEW followed")


def measure_freshness(bench: PipelineBenchmark) -> None:
    """From a commit until the view's watermark is past it, while the stream's job maintains it."""
    from belvedere.pipeline.jobs import maintain  # heavy

    connection, share = bench.connection, min(1.0, bench.rows / 2_000_000)
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, g bigint, v bigint)")
    load_rows(connection, "t", "i, i % 1000, 0", FRESH_ROWS)
    connection.execute(
        "CREATE MATERIALIZED VIEW fresh WITH (maintenance = 'deferred', max_lag = '3600 s')"
        " AS SELECT g, count(*) AS n, sum(v) AS v FROM t GROUP BY g"
    )
    ended, rng = threading.Event(), random.Random(bench.report.seed)
    job = ThreadGroup(
        lambda: maintain.run_maintenance(
            bench.spark, bench.store, [], DEFINITIONS, stopped=ended.is_set
        )
    )
    try:
        writes = [max(int(FRESH_RATE * s * share), 200) for s in (WARM_SECONDS, FRESH_SECONDS)]
        for count in writes:  # the first to warm up
            keys = uniform_keys(rng, FRESH_ROWS, count)
            lags = commit_to_visible(connection, "fresh", keys, FRESH_RATE)
    finally:
        ended.set()
        job.join()
    for part, goal in ((0.5, "<= 1000 value"), (0.99, "<= 2000 value")):
        name = f"commit to visible, p{part * 100:.0f} at {FRESH_RATE} writes/s"
        bench.report.add(Figure(name, percentile(lags, part) * 1e3, "ms", goal))
    connection.execute("DROP MATERIALIZED VIEW fresh")
    connection.execute("DROP TABLE t")


def measure_verify(bench: PipelineBenchmark) -> None:
    from belvedere.pipeline.jobs import verify  # heavy

    bench.connection.execute(f"CREATE MATERIALIZED VIEW verified AS {COUNT_QUERY}")
    spent = _time_action(
        lambda: list(verify.verify_views(bench.spark, bench.store, ["verified"], DEFINITIONS))
    )
    bench.report.add(Figure("verify of a view", bench.rows / spent, "base rows/s"))
    bench.connection.execute("DROP MATERIALIZED VIEW verified")
