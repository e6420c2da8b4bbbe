"""DataFrames into tables."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.store.client import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write(frame: DataFrame, shop: Path, **options: object) -> None:
    writer = frame.write.format("belvedere").mode("append").option("database", str(shop))
    for name, value in options.items():
        writer = writer.option(name, str(value))
    writer.save()


def content(connection: Connection) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT * FROM t ORDER BY id").fetchall()


@pytest.fixture(autouse=True)
def table(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, name text, n int CHECK (n < 100))")


def test_append_upsert_and_delete(spark: SparkSession, shop: Path, connection: Connection) -> None:
    frame = spark.range(0, 50, numPartitions=2).selectExpr("id", "cast(id as int) as n")
    before = Store.from_url(str(shop)).position()
    write(frame, shop, table="t")
    assert content(connection) == [(i, None, i) for i in range(50)]
    after = Store.from_url(str(shop)).position()
    assert after == before + 1  # one commit, whatever the number of tasks
    write(
        frame.where("id < 2").selectExpr("id", "'new' as name"), shop, table="t", operation="upsert"
    )
    assert content(connection)[:3] == [(0, "new", 0), (1, "new", 1), (2, None, 2)]
    write(frame.where("id > 2").select("id"), shop, table="t", operation="delete")
    assert [row[0] for row in content(connection)] == [0, 1, 2]


def test_a_job_that_fails_leaves_nothing(
    spark: SparkSession, shop: Path, connection: Connection
) -> None:
    good = spark.range(0, 10, numPartitions=2)
    broken = good.selectExpr("id", "cast(if(id = 9, raise_error('task died'), 1) as int) as n")
    with pytest.raises(Exception, match="task died"):
        write(broken, shop, table="t")
    refused = good.selectExpr("id", "cast(id * 50 as int) as n")
    with pytest.raises(Exception, match="check"):
        write(refused, shop, table="t")
    assert content(connection) == []
    wait_until_nothing_is_staged(shop)


def test_rejected_rows_are_told_with_their_reasons(
    spark: SparkSession, shop: Path, connection: Connection, tmp_path: Path
) -> None:
    frame = spark.range(0, 4, numPartitions=1).selectExpr("id", "cast(id * 50 as int) as n")
    with pytest.raises(Exception, match="option rejects is wanted"):
        write(frame, shop, table="t", onError="reject")
    with pytest.raises(Exception, match="rejects file cannot be written"):
        write(frame, shop, table="t", onError="reject", rejects=tmp_path / "no" / "x.csv")
    assert content(connection) == []
    write(frame, shop, table="t", onError="reject", rejects=tmp_path / "x.csv")
    assert [row[0] for row in content(connection)] == [0, 1]
    head, *lines = (tmp_path / "x.csv").read_text().splitlines()
    assert head == "id,n,sqlstate,reason"
    assert [line.split(",")[:3] for line in lines] == [["2", "100", "23514"], ["3", "150", "23514"]]


def wait_until_nothing_is_staged(shop: Path) -> None:
    """A task that is late takes its part back itself."""
    deadline = time.monotonic() + 60
    while left := list((shop / "staging").iterdir()):
        assert time.monotonic() < deadline, left
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (["id", "'a' as nam"], {}, "columns do not match the table"),
        (["id"], {"operation": "merge"}, "unknown operation"),
        (["id"], {"table": "tt"}, "table does not exist"),
        (["'a' as name"], {"operation": "delete"}, "missing=id"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_task_runs(
    spark: SparkSession,
    shop: Path,
    connection: Connection,
    columns: list[str],
    options: dict[str, str],
    message: str,
) -> None:
    with pytest.raises(Exception, match=message):
        write(spark.range(3).selectExpr(*columns), shop, **{"table": "t", **options})
    assert content(connection) == []


def test_overwrite_is_refused(spark: SparkSession, shop: Path, connection: Connection) -> None:
    writer = spark.range(3).write.format("belvedere").mode("overwrite")
    with pytest.raises(Exception, match="mode overwrite"):
        writer.option("database", str(shop)).option("table", "t").save()
