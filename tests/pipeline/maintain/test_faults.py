"""Driver, Python worker and owner die at named points: the job goes on, the law holds.

The quick part of `make long RUN=pipeline-faults`, in the session of the other tests: workers and
the owner are killed by SIGKILL, the driver's death is an error out of which nothing is put in
order.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from belvedere import failpoints
from belvedere.errors import Error, Unavailable
from belvedere.pipeline.maintain.group_driver import GroupDriver
from belvedere.pipeline.store.client import Store
from tests.pipeline.definitions import DEFINITIONS
from tests.pipeline.spark_faults import DRIVER, WORKER, Owner, differences, write_some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def two_tasks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("belvedere.pipeline.maintain.group_driver.SMALL_CHANGES", 0)
    yield
    failpoints.disarm_all()


def job(spark: SparkSession, owner: Owner) -> GroupDriver:
    """The same job each time, as after a restart with the same checkpoint."""
    return GroupDriver(spark, Store.from_url(str(owner.directory)), DEFINITIONS, "the job", 2)


def require_law(spark: SparkSession, owner: Owner) -> None:
    again = job(spark, owner)
    again.claim_groups([])
    again.advance_groups()
    assert differences(again.store) == []
    again.release_groups()


def took_and_stepped(one: GroupDriver) -> None:
    one.claim_groups([])
    one.advance_groups()


def stepped_twice(one: GroupDriver) -> None:
    """When the first was applied before the owner died, the second finds nobody."""
    one.advance_groups()
    one.advance_groups()


@pytest.mark.parametrize("point", DRIVER)
def test_a_driver_that_died_is_followed_by_another(
    spark: SparkSession, owner: Owner, point: str
) -> None:
    require_law(spark, owner)  # all views are in their group
    first = job(spark, owner)
    write_some(first.store, random.Random(point))
    failpoints.arm(point, "raise", at=1)
    with pytest.raises(Unavailable, match="injected failure"):
        took_and_stepped(first)
    failpoints.disarm_all()
    write_some(first.store, random.Random(f"{point} again"), 2)
    require_law(spark, owner)


@pytest.mark.parametrize("point", WORKER)
def test_a_killed_worker_fails_the_batch_and_no_more(
    spark: SparkSession, owner: Owner, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = job(spark, owner)
    write_some(first.store, random.Random(point))
    first.claim_groups([])
    with monkeypatch.context() as armed:
        armed.setitem(spark.sparkContext.environment, "BELVEDERE_FAILPOINTS", f"{point}=kill@1")
        with pytest.raises(Error, match="spark job failed"):
            first.advance_groups()
    require_law(spark, owner)


@pytest.mark.parametrize("point", ["pipeline.computed", "pipeline.applied"])
def test_a_killed_owner_is_asked_again_when_it_is_back(
    spark: SparkSession, owner: Owner, point: str
) -> None:
    first = job(spark, owner)
    write_some(first.store, random.Random(point))
    first.claim_groups([])
    failpoints.arm(point, "call", at=1, call=owner.kill)
    try:
        with pytest.raises(Unavailable):
            stepped_twice(first)
    finally:
        failpoints.disarm_all()
        owner.start()
    require_law(spark, owner)
