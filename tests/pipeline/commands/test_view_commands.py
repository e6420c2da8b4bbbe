"""`belvedere pipeline backfill | maintain | verify | explain`, as a person calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import Result
from typer.testing import CliRunner

import belvedere
from belvedere.catalog.model import View
from belvedere.catalog.relation_codecs import compiled_view
from belvedere.interfaces import stores
from belvedere.interfaces.commands.pipeline import app
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.store.client import Store
from belvedere.remote.client import is_reachable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Call = Callable[..., Result]


@pytest.fixture
def here(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, shop: Path) -> Call:
    """Commands in this process, on the session that all tests share."""

    @contextmanager
    def shared(master: str, name: str) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr("belvedere.interfaces.commands.job.open_spark_session", shared)
    return lambda *given: CliRunner().invoke(app, [*given, "--database", str(shop)])


def test_backfill_maintain_and_verify_one_after_the_other(
    connection: Connection, shop: Path, here: Call
) -> None:
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, g int)")
    connection.execute("INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)")
    connection.execute(
        "CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred', max_lag = '3600 s',"
        " backfill = 'later') AS SELECT g, count(*) AS n FROM t GROUP BY g"
    )
    done = here("explain", "v")
    assert done.exit_code == 0, done.output
    assert "[store] Scan t" in done.stdout
    done = here("backfill", "v")
    assert done.exit_code == 0, done.output
    assert "snapshot" in done.stdout
    done = here("backfill", "public.v")
    assert done.exit_code == 0, done.output
    assert "filled already: public.v" in done.stdout
    connection.execute("INSERT INTO t VALUES (4, 2)")
    for batches in (1, 0):
        done = here("maintain", "v", "--once")
        assert done.exit_code == 0, done.output
        (told,) = (line.split() for line in done.stdout.splitlines() if "│ v " in line)
        assert told[3] == str(batches), done.stdout
    found = connection.execute("SELECT * FROM v", freshness="any").fetchall()
    assert sorted(found) == [(1, 2), (2, 2)]
    now = Store.from_url(str(shop)).position()
    for position in (now, now - 1):
        done = here("verify", "v", "--position", str(position))
        assert done.exit_code == 0, done.output
    done = here("verify", "v", "--position", str(now + 1))
    assert done.exit_code == 1
    _damage(shop, "v")
    done = here("verify", "v")
    assert done.exit_code == 1, done.output
    assert "rows of v that differ" in done.stdout


def test_the_jobs_open_a_store_that_nobody_has_open(shop: Path, here: Call) -> None:
    with belvedere.connect(str(shop), durability="off", autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, g int)")
        connection.execute("INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)")
        connection.execute(
            "CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred', max_lag = '3600 s',"
            " backfill = 'later') AS SELECT g, count(*) AS n FROM t GROUP BY g"
        )
    for command in (("backfill", "v"), ("maintain", "--once"), ("verify", "v"), ("status",)):
        done = here(*command)
        assert done.exit_code == 0, done.output
        assert not is_reachable(shop)  # it is closed again
    with belvedere.connect(str(shop), durability="off", autocommit=True) as connection:
        found = connection.execute("SELECT * FROM v", freshness="any").fetchall()
        assert sorted(found) == [(1, 2), (2, 1)]


def _damage(shop: Path, name: str) -> None:
    database = stores._open_stores[str(shop)].database
    stored = compiled_view(database.catalog, database.catalog.require_relation(View, name).id)
    with database.begin() as reader:
        (first, *_) = [key for batch in reader.scan(stored.start, stored.end) for key, _ in batch]
    database.commits.derive(lambda reader: [(first, None)])


@pytest.mark.parametrize("command", ["backfill", "maintain", "verify", "explain"])
def test_an_unknown_view_is_one_clear_error(
    connection: Connection, here: Call, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
    done = here(command, "nothing")
    assert done.exit_code == 1
    assert "belvedere: " in done.output + capsys.readouterr().err
