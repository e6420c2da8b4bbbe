"""The jobs of the pipeline on HBase: tasks read the log and rows themselves, no process owns it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import belvedere
from belvedere import failpoints
from belvedere.catalog.model import View
from belvedere.codec import accumulator, keyspace
from belvedere.database import Database
from belvedere.errors import Error, Unavailable, Unsupported
from belvedere.interfaces import stores
from belvedere.interfaces.commands.pipeline import app
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.datasource.write import parse_write_target
from belvedere.pipeline.jobs import backfill, export, load, maintain, verify
from belvedere.pipeline.maintain.group_driver import GroupDriver
from belvedere.pipeline.store.client import ReadRequest, Store
from tests.pipeline.definitions import DEFINITIONS
from tests.spark_session import spark as spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {
    "per_kind": "SELECT kind, count(*) AS n, sum(price) AS total FROM items GROUP BY kind",
    "joined": "SELECT i.id, k.name FROM items i JOIN kinds k ON k.id = i.kind WHERE i.price > 2",
    "lonely": "SELECT k.id FROM kinds k LEFT JOIN items i ON i.kind = k.id WHERE i.id IS NULL",
    "most": "SELECT kind, max(price) AS most FROM items GROUP BY kind",
}
SMALL = "belvedere.pipeline.maintain.group_driver.SMALL_CHANGES"


@pytest.fixture
def shop(url: str) -> Iterator[Connection]:
    with belvedere.connect(url, autocommit=True) as made:
        made.execute("CREATE TABLE kinds (id int PRIMARY KEY, name text)")
        made.execute("CREATE TABLE items (id int PRIMARY KEY, kind int, price numeric(8,2))")
        made.execute("INSERT INTO kinds SELECT id, 'kind ' || id FROM generate_series(0, 5) AS id")
        made.execute("INSERT INTO items SELECT id, id % 4, id FROM generate_series(0, 29) AS id")
        yield made


@pytest.fixture
def views(shop: Connection) -> Connection:
    """Deferred views that the worker is in no hurry to maintain, in their group."""
    for name, query in VIEWS.items():
        shop.execute(
            f"CREATE MATERIALIZED VIEW {name}"
            f" WITH (maintenance = 'deferred', max_lag = '3600 s') AS {query}"
        )
    for name in [*VIEWS, *VIEWS]:
        shop.execute(f"REFRESH MATERIALIZED VIEW {name}")
    return shop


def write_some(shop: Connection, seed: int) -> None:
    shop.execute("UPDATE items SET kind = 5, price = price + 1 WHERE id = ?", (seed,))
    shop.execute("DELETE FROM items WHERE id = ?", (10 + seed,))
    shop.execute("INSERT INTO items VALUES (?, 4, 99), (?, NULL, 1)", (100 + seed, 200 + seed))
    shop.execute("UPDATE kinds SET name = ? WHERE id = 1", (f"other {seed}",))


def require_law(shop: Connection) -> None:
    for name, query in VIEWS.items():
        stored = shop.execute(f"SELECT * FROM {name}", freshness="any").fetchall()
        assert sorted(map(repr, stored)) == sorted(map(repr, shop.execute(query))), name


def new_driver(spark: SparkSession, url: str, **more: Any) -> GroupDriver:
    """The same job each time, as after a restart with the same checkpoint."""
    return GroupDriver(spark, Store.from_url(url), DEFINITIONS, "the job", 2, **more)


def maintain_to_the_end(spark: SparkSession, url: str) -> None:
    job = new_driver(spark, url)
    job.claim_groups([])
    job.advance_groups()
    job.release_groups()


def claim_and_advance(job: GroupDriver) -> None:
    job.claim_groups([])
    job.advance_groups()


def find_database(url: str) -> Database:
    opened = stores.find_open_store(url)
    assert opened is not None
    return opened.database


def test_tasks_read_the_log_and_rows_and_the_law_holds(
    spark: SparkSession, views: Connection, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed, small in enumerate((5_000, 0)):  # by the engine in one task; by columns, by Spark
        monkeypatch.setattr(SMALL, small)
        write_some(views, seed)
        maintain_to_the_end(spark, url)
        require_law(views)
    assert len(views.execute("SELECT * FROM belvedere.nodes").fetchall()) == 1, "tasks are guests"
    then = Store.from_url(url).position()
    write_some(views, 3)  # views are verified where they are, and at other positions
    for names, position in (("joined", "per_kind"), None), (("lonely",), then + 1):
        store = Store.from_url(url)
        found = verify.verify_views(spark, store, names, DEFINITIONS, position=position)
        assert [(one.view, one.is_correct) for one in found] == [(name, True) for name in names]


@pytest.mark.parametrize("point", ["pipeline.computed", "pipeline.applied"])
def test_a_driver_that_died_is_followed_by_another(
    spark: SparkSession, views: Connection, url: str, point: str
) -> None:
    write_some(views, 1)
    died = new_driver(spark, url)
    failpoints.arm(point, "raise", at=1)
    try:
        with pytest.raises(Unavailable, match="injected failure"):
            claim_and_advance(died)
    finally:
        failpoints.disarm_all()
    write_some(views, 2)
    maintain_to_the_end(spark, url)
    require_law(views)


def test_a_killed_worker_fails_the_batch_and_no_more(
    spark: SparkSession, views: Connection, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SMALL, 0)
    write_some(views, 1)
    job = new_driver(spark, url)
    job.claim_groups([])
    with monkeypatch.context() as armed:
        where = "BELVEDERE_FAILPOINTS"
        armed.setitem(spark.sparkContext.environment, where, "pipeline.task=kill@1")
        with pytest.raises(Error, match="spark job failed"):
            job.advance_groups()
    maintain_to_the_end(spark, url)
    require_law(views)


def test_the_killed_command_is_followed_by_the_same_again(
    spark: SparkSession, views: Connection, url: str, tmp_path: Path
) -> None:
    write_some(views, 1)
    command = ["-m", "belvedere", "pipeline", "maintain", "--database", url, "--once"]
    killed = subprocess.run(
        [sys.executable, *command, "--checkpoint", str(tmp_path), "--master", "local[1]"],
        env={**os.environ, "BELVEDERE_FAILPOINTS": "pipeline.computed=kill@1"},
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    store = Store.from_url(url)
    [group] = store.call_owner_verb("groups")
    assert group["owner"].startswith("spark ")
    with pytest.raises(Unavailable, match="claimed by another"):
        maintain_to_the_end(spark, url)
    write_some(views, 2)
    [progress] = maintain.run_maintenance(
        spark, store, [], DEFINITIONS, once=True, directory=tmp_path
    )
    assert progress.at == store.position()
    require_law(views)
    shown = CliRunner().invoke(app, ["status", "--database", url])
    assert "per_kind" in shown.output
    assert shown.exit_code == 0


def test_a_wrong_state_is_shown(spark: SparkSession, shop: Connection, url: str) -> None:
    shop.execute(f"CREATE MATERIALIZED VIEW per_kind AS {VIEWS['per_kind']}")
    database = find_database(url)
    view = database.catalog.require_relation(View, "per_kind").id
    with database.begin() as reader:
        [[(key, value), *_]] = reader.scan(*keyspace.relation_range(view))
    payload, amounts = accumulator.decode(value)
    wrong = accumulator.add(value, payload, tuple(1 for _ in amounts))
    database.commits.derive(lambda _: [(key, wrong)])
    shop.execute("INSERT INTO items VALUES (1000, 0, 1)")  # a position that shows it
    [found] = verify.verify_views(spark, Store.from_url(url), ["per_kind"], DEFINITIONS)
    assert (found.missing, found.unexpected) == (1, 1)


def test_views_are_filled_by_tasks_that_write_cells(
    spark: SparkSession, shop: Connection, url: str
) -> None:
    kept = ("per_kind", "joined", "lonely", "most")
    for name in kept:
        options = "backfill = 'later'" + ", maintenance = 'deferred'" * (name == "most")
        shop.execute(f"CREATE MATERIALIZED VIEW {name} WITH ({options}) AS {VIEWS[name]}")
    write_some(shop, 1)
    store = Store.from_url(url)
    died = store.call_owner_verb(
        "fill_begin", views=[find_database(url).catalog.require_relation(View, "joined").id]
    )
    store.call_owner_verb("release", lease=died["lease"])
    write_some(shop, 2)
    done = list(backfill.run_backfill(spark, store, kept, DEFINITIONS))
    assert [one.view for one in done] == list(kept)
    write_some(shop, 3)
    shop.execute("REFRESH MATERIALIZED VIEW most")
    require_law(shop)
    assert list(backfill.run_backfill(spark, store, kept, DEFINITIONS)) == []


def test_files_are_loaded_and_tables_and_views_exported(
    spark: SparkSession, shop: Connection, url: str, tmp_path: Path
) -> None:
    store = Store.from_url(url)
    shop.execute(f"CREATE MATERIALIZED VIEW per_kind AS {VIEWS['per_kind']}")
    files = tmp_path / "items.csv"
    files.write_text("id,kind,price\n" + "".join(f"{i},7,0.50\n" for i in range(1000, 3000)))
    given = load.LoadInputs(spark, (str(files),), "csv")
    before = store.position()
    assert load.run_load(given, store, "items").rows == 2_000
    assert store.position() == before + 1
    with pytest.raises(Error):
        load.run_load(given, store, "items")
    rejects = tmp_path / "rejects.csv"
    again = load.run_load(given, store, "items", on_error="reject", rejects=rejects)
    assert (again.rows, again.rejected) == (0, 2_000)
    for kind, name in (("table", "items"), ("view", "per_kind"), ("query", "SELECT 1 AS one")):
        done = export.run_export(spark, store, ReadRequest(kind, name), tmp_path / kind)
        assert done.rows == {"table": 2_030, "view": 5, "query": 1}[kind]
    exported = pyarrow.parquet.read_table(tmp_path / "view").to_pylist()
    [row] = [one for one in exported if one["kind"] == 7]
    assert (row["n"], Decimal(row["total"])) == (2_000, 1_000)
    with pytest.raises(Unsupported, match="writing rows from tasks"):
        parse_write_target(store, {"table": "items"}, ["id"])
