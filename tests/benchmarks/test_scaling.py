"""The simulated cluster shows what it must: queues, limits, conflicts, all in virtual time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from belvedere.benchmarks.scaling import suite
from belvedere.benchmarks.scaling.cluster import ClusterShape, SimulatedCluster
from belvedere.benchmarks.scaling.fleet import Load, run_fleet
from belvedere.benchmarks.scaling.service_times import MEASURED
from belvedere.benchmarks.scaling.spark_model import SUMS, changes_per_second
from belvedere.txn.row_atomic.cells import layout

SECONDS = 0.4


def test_a_lone_client_waits_for_every_round_trip() -> None:
    found = run_fleet(Load(1, 1), ClusterShape(1), MEASURED, SECONDS, 1)
    trips = MEASURED.commit_cpu + 3 * MEASURED.check_latency + MEASURED.increment_latency
    assert found.latency > trips
    assert found.commits == pytest.approx(1 / found.latency, rel=0.1)
    assert found.retries == 0


def test_nodes_add_up_until_something_is_busy() -> None:
    one, four = (
        run_fleet(Load(count, 16), ClusterShape(4), MEASURED, SECONDS, 1) for count in (1, 4)
    )
    assert four.commits > 2.5 * one.commits


def test_the_row_that_everybody_increments_is_found() -> None:
    slow = replace(MEASURED, row_hold=0.02)
    found = run_fleet(Load(8, 1), ClusterShape(8, regions=8), slow, 1.0, 1)
    assert found.busiest[0][0] in ("counter row", "position row")
    assert found.busiest[0][1] > 0.8
    assert found.commits < 8 / 0.02


def test_locks_in_one_region_are_a_limit_and_in_many_are_not() -> None:
    slow = replace(MEASURED, change_occupancy=0.02)
    few, many = (
        run_fleet(Load(4, 8), ClusterShape(50, cores=1, regions=count), slow, 2.0, 1)
        for count in (1, 32)
    )
    assert few.busiest[0][1] > 0.8
    assert many.commits > 2 * few.commits


def test_regions_are_those_with_which_tables_are_made() -> None:
    cluster = SimulatedCluster(ClusterShape(50, regions=8), MEASURED)
    keys = [number.to_bytes(4) for number in range(1000)]
    locks = {cluster._find_region(layout.lock_row("root", key)) for key in keys}
    assert len(locks) == 8
    assert all(name.startswith("locks ") for name in locks)
    shared = {cluster._find_region(row) for row in (layout.COUNTER_ROW, layout.POSITION_ROW)}
    assert shared == {"counter", "positions"}


def test_threads_of_a_node_commit_together() -> None:
    found = run_fleet(Load(1, 8), ClusterShape(2, regions=4), MEASURED, SECONDS, 1)
    assert 2 < found.group <= 8


def test_hot_keys_conflict_and_others_do_not() -> None:
    shape = ClusterShape(4, regions=8)
    hot = run_fleet(Load(2, 4, keys=2), shape, MEASURED, 0.5, 1)
    cold = run_fleet(Load(2, 4), shape, MEASURED, 0.5, 1)
    assert hot.commits * 2 < cold.commits


def test_a_run_is_the_same_for_the_same_seed() -> None:
    first, second = (run_fleet(Load(3, 2), ClusterShape(2), MEASURED, 0.3, 7) for _ in range(2))
    assert first == second


def test_the_formula_for_spark_gives_what_was_measured() -> None:
    assert changes_per_second(SUMS, 100_000, 2) == pytest.approx(SUMS.rate)
    ceiling = 1 / (SUMS.work * SUMS.serial)
    assert changes_per_second(SUMS, 10**9, 10**6) == pytest.approx(ceiling, rel=0.01)


def test_the_suite_reports_curves() -> None:
    report = suite.run(0.01, 1, database=None)
    assert {plot.y for plot in report.plots} == {"commits/s", "ms", "changes/s"}
    assert any("busy" in figure.name for figure in report.figures)
