"""`belvedere bench vms --spark` runs at any size, and stands beside what was published."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from belvedere.benchmarks.papers import vms_spark
from belvedere.benchmarks.report.measurements import BenchmarkReport
from belvedere.interfaces.cli import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_vms_on_spark_has_view_types_keys_and_a_crash(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the session of all tests, which has no executors to kill."""

    @contextmanager
    def shared(count: int) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(vms_spark, "start_executors", shared)
    monkeypatch.setattr(vms_spark, "EXECUTORS", (2,))
    some = ("selection 10%", "join")
    monkeypatch.setattr(vms_spark, "SCALING", {name: vms_spark.SCALING[name] for name in some})
    report = vms_spark.run(0.002, seed=1)
    assert [figure.name for figure in report.figures] == [
        "selection 10%, 2 executors",
        "join, 2 executors",
        "uniform keys, 2 executors",
        "zipf keys, 2 executors",
    ]
    assert all(figure.value > 0 and "fig" in figure.published for figure in report.figures)
    assert report.absent == ["a crash with 2 executors: none is a process here"]
    assert len(report.plots) == 2  # nothing crashed


def test_what_a_crash_costs_is_told_beside_the_time_before() -> None:
    report = BenchmarkReport("a run", 1)
    taken = [(0.0, 0.2), (5.0, 0.1), (19.0, 3.0), (23.0, 0.2), (30.0, 0.1)]
    vms_spark.report_crash(report, 2, 20.0, taken)
    assert [round(figure.value) for figure in report.figures] == [200, 3000, 200]
    assert report.figures[1].ratio == 15


def test_other_workloads_are_not_for_spark() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bench", "pnuts", "--spark"])
    assert ended.value.code == 2
