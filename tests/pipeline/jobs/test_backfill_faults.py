"""Driver, Python worker and owner die while views are filled: the same job, asked again, ends it.

The quick part of `make long RUN=pipeline-faults`, in the session of the other tests: workers and
the owner are killed by SIGKILL, the driver's death is an error.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from belvedere import failpoints
from belvedere.errors import Error, Unavailable
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.jobs import backfill
from belvedere.pipeline.jobs.backfill import BackfillResult
from belvedere.pipeline.store.checkpoint import ensure_jobs_directory
from belvedere.pipeline.store.client import Store
from tests.pipeline.definitions import DEFINITIONS
from tests.pipeline.spark_backfill_faults import (
    DRIVER,
    FILLED,
    RECORDED,
    create,
    drop,
    write_more,
    wrong,
)
from tests.pipeline.spark_faults import Owner, write_some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    failpoints.disarm_all()


@pytest.fixture
def store(owner: Owner) -> Iterator[Store]:
    """With views that wait."""
    made = Store.from_url(str(owner.directory))
    write_some(made, random.Random("fill"))
    create(made)
    yield made
    drop(made)


def fill(spark: SparkSession, store: Store) -> list[BackfillResult]:
    return list(backfill.run_backfill(spark, store, list(FILLED), DEFINITIONS))


def require_filled(spark: SparkSession, store: Store, point: str) -> None:
    before = store.position()
    write_more(store, random.Random(point))
    done = fill(spark, store)
    assert wrong(store) == []
    assert done
    if point in RECORDED:
        assert all(one.snapshot <= before for one in done), "what was made is not made again"
    else:
        assert all(one.snapshot > before for one in done), "a new scan, at a new position"
        assert [one.view for one in done] == list(FILLED)


@pytest.mark.parametrize("point", DRIVER)
def test_a_driver_that_died_is_followed_by_another(
    spark: SparkSession, store: Store, point: str
) -> None:
    failpoints.arm(point, "raise", at=1)
    with pytest.raises(Unavailable, match="injected failure"):
        fill(spark, store)
    failpoints.disarm_all()
    require_filled(spark, store, point)


@pytest.mark.parametrize("point", ["fill.task", "fill.after_file"])
def test_a_killed_worker_fails_the_job_and_no_more(
    spark: SparkSession, store: Store, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as armed:
        armed.setitem(spark.sparkContext.environment, "BELVEDERE_FAILPOINTS", f"{point}=kill@1")
        with pytest.raises(Error, match="spark job failed"):
            fill(spark, store)
    require_filled(spark, store, point)


@pytest.mark.parametrize("point", ["fill.marked@1", "fill.after_ingest@2", "fill.caught_up@2"])
def test_a_killed_owner_is_asked_again_when_it_is_back(
    spark: SparkSession, owner: Owner, store: Store, point: str
) -> None:
    owner.die_at(point)
    try:
        with pytest.raises(Unavailable):
            fill(spark, store)
    finally:
        owner.kill()
        owner.start()
    require_filled(spark, store, point)


# -- who may go on ---------------------------------------------------------------------------------


@pytest.fixture
def waiting(connection: Connection) -> Connection:
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
    connection.execute("INSERT INTO t VALUES (1, 10), (2, 20)")
    for name in ("a", "b"):
        connection.execute(
            f"CREATE MATERIALIZED VIEW {name} WITH (backfill = 'later')"
            " AS SELECT count(*) AS n, sum(v) AS v FROM t"
        )
    return connection


def died_after(spark: SparkSession, store: Store, point: str) -> None:
    failpoints.arm(point, "raise", at=1)
    with pytest.raises(Unavailable, match="injected failure"):
        list(backfill.run_backfill(spark, store, ["a", "b"], DEFINITIONS))
    failpoints.disarm_all()


def test_a_view_that_was_begun_anew_since_is_not_finished_from_old_files(
    spark: SparkSession, shop: Path, waiting: Connection
) -> None:
    """The old job had taken its files in and was catching up when it died."""
    store = Store.from_url(str(shop))
    died_after(spark, store, "fill.made")
    died_after(spark, store, "fill.recorded")
    (old,) = ensure_jobs_directory(store).glob("backfill-*")
    waiting.execute("INSERT INTO t VALUES (3, 30)")
    died_after(spark, store, "fill.caught_up")
    assert (old / f"{view_id(store, 'a')}.taken").exists()
    begun = store.call_owner_verb(
        "fill_begin", views=[view_id(store, "a")]
    )  # another job, which dies
    store.call_owner_verb("release", lease=begun["lease"])
    waiting.execute("INSERT INTO t VALUES (4, 40)")
    done = list(backfill.run_backfill(spark, store, ["a", "b"], DEFINITIONS))
    assert [one.view for one in done] == ["b", "a"], "one goes on, one begins"
    for name in ("a", "b"):
        assert waiting.execute(f"SELECT * FROM {name}").fetchall() == [(4, 100)]
    assert list(ensure_jobs_directory(store).iterdir()) == []


def view_id(store: Store, name: str) -> int:
    lease = store.take_position_lease()
    catalog = backfill.decode_catalog(backfill.fetch_encoded_catalog(store, lease))
    store.release_position_lease(lease)
    return backfill.find_view_by_name(catalog, name).id


def test_a_job_that_lives_is_not_gone_on_with(
    spark: SparkSession, shop: Path, waiting: Connection
) -> None:
    store = Store.from_url(str(shop))
    first = backfill.run_backfill(spark, store, ["a", "b"], DEFINITIONS)
    assert next(first).view == "a"
    (done,) = backfill.run_backfill(spark, store, ["b"], DEFINITIONS)
    assert done.view == "b"
    with pytest.raises(Error, match="filled already"):
        next(first)
    assert waiting.execute("SELECT * FROM b").fetchall() == [(2, 30)]
    first.close()
    assert list(ensure_jobs_directory(store).iterdir()) == []


def test_the_same_command_again_does_what_is_left(
    spark: SparkSession, shop: Path, waiting: Connection
) -> None:
    store = Store.from_url(str(shop))
    died_after(spark, store, "fill.finished")
    waiting.execute("INSERT INTO t VALUES (3, 30)")
    (done,) = backfill.run_backfill(spark, store, ["a", "b"], DEFINITIONS)
    assert done.view == "b"
    for name in ("a", "b"):
        assert waiting.execute(f"SELECT * FROM {name}").fetchall() == [(3, 60)]
