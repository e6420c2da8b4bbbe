"""Spark maintains deferred views: exactly once, from the watermark, one job for a group."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import belvedere
from belvedere.errors import InvalidInput, Unavailable
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.jobs import maintain
from belvedere.pipeline.maintain.group_driver import AppliedBatch, GroupDriver
from belvedere.pipeline.store.client import Store
from belvedere.views.deferred import driver
from belvedere.views.state.claims import Claim
from tests.pipeline.definitions import DEFINITIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {
    "per_kind": "SELECT kind, count(*) AS n, sum(price) AS total FROM items GROUP BY kind",
    "joined": "SELECT i.id, k.name FROM items i JOIN kinds k ON k.id = i.kind WHERE i.price > 2",
    "lonely": "SELECT k.id FROM kinds k LEFT JOIN items i ON i.kind = k.id WHERE i.id IS NULL",
    "most": "SELECT kind, max(price) AS most, count(DISTINCT note) AS notes FROM items GROUP BY 1",
}


@pytest.fixture(autouse=True)
def no_claim_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is."""
    monkeypatch.setattr(driver, "CLAIM_EXPIRY_S", 3600.0)


@pytest.fixture
def items(connection: Connection, shop: Path) -> Connection:
    connection.execute("CREATE TABLE kinds (id int PRIMARY KEY, name text)")
    connection.execute(
        "CREATE TABLE items (id int PRIMARY KEY, kind int, price numeric(8,2), note text)"
    )
    for i in range(6):
        connection.execute("INSERT INTO kinds VALUES (?, ?)", (i, f"kind {i}"))
    for i in range(30):
        connection.execute("INSERT INTO items VALUES (?, ?, ?, ?)", (i, i % 4, i, f"n{i % 3}"))
    for name, query in VIEWS.items():
        connection.execute(
            f"CREATE MATERIALIZED VIEW {name} WITH (maintenance = 'deferred') AS {query}"
        )
    wait_for_group(shop, len(VIEWS))
    return connection


def wait_for_group(shop: Path, views: int) -> None:
    """A new view joins its group when both are at one position."""
    deadline = time.monotonic() + 60
    while len(Store.from_url(str(shop)).call_owner_verb("groups")[0]["views"]) < views:
        assert time.monotonic() < deadline, "the views did not join their group"
        time.sleep(0.01)


def write_some(connection: Connection) -> None:
    connection.execute("UPDATE items SET kind = 5, price = price + 1 WHERE id < 6")
    connection.execute("DELETE FROM items WHERE id BETWEEN 10 AND 14")
    connection.execute("INSERT INTO items VALUES (100, 4, 99, 'new'), (101, NULL, 1, 'n0')")
    connection.execute("UPDATE kinds SET name = 'other' WHERE id = 1")
    connection.execute("DELETE FROM kinds WHERE id = 3")
    connection.execute("UPDATE items SET kind = 3 WHERE id = 29")


def stored(connection: Connection, name: str) -> list[Any]:
    return sorted(connection.execute(f"SELECT * FROM {name}", freshness="any").fetchall(), key=repr)


def right(connection: Connection, name: str) -> list[Any]:
    return sorted(connection.execute(VIEWS[name]).fetchall(), key=repr)


def maintainer(spark: SparkSession, shop: Path, owner: str = "job", **more: Any) -> GroupDriver:
    return GroupDriver(spark, Store.from_url(str(shop)), DEFINITIONS, owner, 2, **more)


@pytest.mark.parametrize("tasks", [1, 2])
def test_views_are_brought_to_the_end_of_the_log(
    spark: SparkSession, shop: Path, items: Connection, monkeypatch: pytest.MonkeyPatch, tasks: int
) -> None:
    monkeypatch.setattr(
        "belvedere.pipeline.maintain.group_driver.SMALL_CHANGES", 0
    )  # as a large batch, however little
    applied: list[AppliedBatch] = []
    job = maintainer(spark, shop, progress=applied.append)
    job.tasks = tasks
    job.claim_groups([])
    before = {name: stored(items, name) for name in VIEWS}
    write_some(items)
    assert {name: stored(items, name) for name in VIEWS} == before, "the worker left it to the job"
    assert job.advance_groups() >= 1
    for name in VIEWS:
        assert stored(items, name) == right(items, name), name
    assert applied[-1].end == Store.from_url(str(shop)).position()
    assert job.advance_groups() == 0
    job.release_groups()
    items.execute("DELETE FROM items WHERE id = 0")
    for name in VIEWS:
        items.execute(f"REFRESH MATERIALIZED VIEW {name}")
        assert stored(items, name) == right(items, name), "handed back without a gap"


def test_a_second_job_is_refused_and_nothing_changes(
    spark: SparkSession, shop: Path, items: Connection
) -> None:
    first, second = maintainer(spark, shop, "one"), maintainer(spark, shop, "two")
    first.claim_groups(["per_kind"])
    with pytest.raises(Unavailable, match="claimed by another"):
        second.claim_groups(["most"])  # naming a view takes its whole group
    write_some(items)
    first.advance_groups()
    assert stored(items, "per_kind") == right(items, "per_kind")
    first.release_groups()


def test_a_job_that_was_taken_over_stops_by_its_epoch(
    spark: SparkSession, shop: Path, items: Connection
) -> None:
    first = maintainer(spark, shop, "one")
    first.claim_groups([])
    write_some(items)
    (group, claim), *_ = first.claims.items()
    other = first.store.call_owner_verb(
        "claim_take", group=group, owner="two", positions_max=1000, force=1
    )
    assert other[2] > claim.epoch
    with pytest.raises(Unavailable, match="claimed by another"):
        first.advance_groups()
    first.store.call_owner_verb("claim_release", claim=other)


def test_the_same_batch_twice_counts_once(
    spark: SparkSession, shop: Path, items: Connection
) -> None:
    job = maintainer(spark, shop)
    job.claim_groups([])
    write_some(items)
    (group,) = job.claims
    renewed = job.store.call_owner_verb(
        "claim_renew", claim=list(job.claims[group]), positions_max=1000
    )
    claim = Claim(*renewed)  # all that was written, wherever the worker was
    additions = job._compute_claim_additions(claim)
    arguments = {"claim": list(claim), "positions_max": 1000}
    job.store.send_verb_batches(
        "claim_advance", additions.schema, additions.to_batches(), **arguments
    )
    with pytest.raises(Unavailable, match="another stretch"):
        job.store.send_verb_batches(
            "claim_advance", additions.schema, additions.to_batches(), **arguments
        )
    for name in VIEWS:
        assert stored(items, name) == right(items, name), name


def test_a_stream_maintains_while_an_application_writes(
    spark: SparkSession, shop: Path, items: Connection
) -> None:
    store, wrote = Store.from_url(str(shop)), [False]
    seen: list[AppliedBatch] = []

    deadline = time.monotonic() + 300

    def stopped() -> bool:
        """Looked at again and again: writes once, then waits for the watermark."""
        assert time.monotonic() < deadline, "the views did not come to the end of the log"
        if not wrote[0]:
            write_some(items)
            wrote[0] = True
            return False
        return bool(seen) and seen[-1].end >= store.position()

    maintain.run_maintenance(
        spark,
        store,
        [],
        DEFINITIONS,
        trigger="100 milliseconds",
        progress=seen.append,
        stopped=stopped,
    )
    for name in VIEWS:
        assert stored(items, name) == right(items, name), name
    assert not [group["owner"] for group in store.call_owner_verb("groups") if group["owner"]]


def test_once_ends_by_itself_and_goes_on_from_the_watermark(
    spark: SparkSession, shop: Path, items: Connection, tmp_path: Path
) -> None:
    store = Store.from_url(str(shop))
    for _ in range(2):
        held = maintainer(spark, shop)
        held.claim_groups([])  # the worker keeps off, so that something is left to do
        items.execute("DELETE FROM items WHERE id = (SELECT max(id) FROM items)")
        held.release_groups()
        maintain.run_maintenance(
            spark, store, [], DEFINITIONS, once=True, directory=tmp_path / "checkpoint"
        )
        for name in VIEWS:
            assert stored(items, name) == right(items, name), name


@pytest.mark.parametrize(
    ("given", "spelled"),
    [
        ("200 ms", "200 milliseconds"),
        ("1500milliseconds", "1500 milliseconds"),
        ("5 s", "5 seconds"),
        (" 1 second ", "1 seconds"),
        ("2 min", "2 minutes"),
        ("10 minutes", "10 minutes"),
        ("5 h", "300 minutes"),
        ("1 minute 30 seconds", "90 seconds"),
        ("PT0.2S", "200 milliseconds"),
        ("1500 us", "2 milliseconds"),
        ("0 ms", "0 seconds"),
    ],
)
def test_an_interval_is_written_as_everywhere_else(given: str, spelled: str) -> None:
    assert maintain.parse_trigger_interval(given) == spelled


@pytest.mark.parametrize("given", ["", "soon", "-1 s", "5", "5 moons", "1 s 2 s"])
def test_what_is_no_interval_is_refused(given: str) -> None:
    with pytest.raises(InvalidInput, match="not an interval of time"):
        maintain.parse_trigger_interval(given)


def test_a_checkpoint_of_another_store_and_an_unknown_view_are_refused(
    spark: SparkSession, shop: Path, items: Connection, tmp_path: Path
) -> None:
    store, place = Store.from_url(str(shop)), tmp_path / "checkpoint"
    with (
        maintain.lock_job_checkpoint_directory(store, place),
        pytest.raises(Unavailable, match="another job"),
    ):
        with maintain.lock_job_checkpoint_directory(store, place):
            pass
    with belvedere.connect(str(tmp_path / "other.db"), durability="off"):
        with pytest.raises(InvalidInput, match="of another store"):
            with maintain.lock_job_checkpoint_directory(
                Store.from_url(str(tmp_path / "other.db")), place
            ):
                pass
    with pytest.raises(InvalidInput, match="no such deferred view"):
        maintain.run_maintenance(spark, store, ["nothing"], DEFINITIONS, once=True)
