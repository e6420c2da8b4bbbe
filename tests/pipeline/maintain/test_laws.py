"""Immediate == deferred == Spark, over generated views: a seeded part of `make long
RUN=pipeline-laws`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from belvedere.errors import Corruption
from belvedere.pipeline.aggregate.sum_methods import StateAdditions
from belvedere.pipeline.maintain import batch
from belvedere.views.deferred import driver
from tests.mutations.task import MutatedTask
from tests.pipeline.spark_laws import STEPS_PER_BATCH, Counts, run_case
from tests.properties.views.generate.cases import random_case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS, BATCHES, RECOMPUTED = 5, 4, 2
SEEDS = (1, 2, 3)


@pytest.fixture(autouse=True)
def no_claim_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is."""
    monkeypatch.setattr(driver, "CLAIM_EXPIRY_S", 3600.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_spark_keeps_the_rows_that_the_other_drivers_keep(
    spark: SparkSession, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belvedere.pipeline.maintain.group_driver.SMALL_CHANGES", 0)
    lowered: list[int] = []

    def build(*given: Any) -> tuple[list[StateAdditions], tuple[int, ...]]:
        found, left = known(*given)
        lowered.extend(one.view for one in found)
        return found, left

    known = batch.lower_delta_plans
    monkeypatch.setattr(batch, "lower_delta_plans", build)
    counts = Counts()
    case = random_case(seed, VIEWS, BATCHES * STEPS_PER_BATCH)
    run_case(spark, case, tmp_path / "law.db", counts, RECOMPUTED)
    assert counts.views == VIEWS
    assert counts.batches == BATCHES
    assert counts.verified == RECOMPUTED
    assert lowered, "delta plans were run as DataFrames"


def test_a_planted_bug_in_the_tasks_breaks_the_law(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison can fail: views that add twice in Spark's workers only are caught."""
    for kind in (batch.EngineDeltaTask, batch.LinearDeltaTask):
        wrapped = partial(_mutated_task, kind)
        monkeypatch.setattr(batch, kind.__name__, wrapped)
    case = random_case(SEEDS[0], 2, BATCHES * STEPS_PER_BATCH)
    with pytest.raises((AssertionError, Corruption), match=r"_spark differs|failed|fewer"):
        run_case(spark, case, tmp_path / "law.db", Counts())


def _mutated_task(kind: Callable[..., Any], *given: Any) -> MutatedTask:
    return MutatedTask("view_delta_twice", kind(*given))
