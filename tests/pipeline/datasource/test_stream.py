"""The change log as a stream, and streams into tables."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

import belvedere
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.store.client import Store
from tests.pipeline.conftest import read, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery


ATTEMPTS_MAX = 5


def changes(spark: SparkSession, shop: Path, of: str, **options: object) -> DataFrame:
    reader = spark.readStream.format("belvedere").option("database", str(shop))
    reader = reader.option("changes", of)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load()


def run_to_end(frame: DataFrame, checkpoint: Path, into: Any, **options: object) -> StreamingQuery:
    """Everything that is there now, then stop."""
    writer = frame.writeStream.trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(checkpoint))
    for name, value in options.items():
        writer = writer.option(name, str(value))
    for attempt in range(ATTEMPTS_MAX):
        query = into(writer).start()
        try:
            assert query.awaitTermination(600)
            break
        except StreamingQueryException as error:
            # Spark gives the reader's process 10 s to start, which a busy machine may take.
            if attempt + 1 == ATTEMPTS_MAX or "failed to connect back" not in str(error):
                raise
    return query


def collected(batches: list[list[tuple[Any, ...]]]) -> Any:
    """A sink that keeps the rows of every batch."""

    def keep(frame: DataFrame, number: int) -> None:
        batches.append(sorted(tuple(row) for row in frame.collect()))

    return lambda writer: writer.foreachBatch(keep)


def test_changes_of_a_table_have_old_and_new_and_go_on_from_the_checkpoint(
    spark: SparkSession, shop: Path, connection: Connection, tmp_path: Path
) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, name text)")
    connection.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    frame = changes(spark, shop, "t", position=0, maxRowsPerTrigger=3)
    shown = frame.select("position", "kind", "old.id", "old.name", "new.id", "new.name")
    batches: list[list[tuple[Any, ...]]] = []
    run_to_end(shown, tmp_path / "checkpoint", collected(batches))
    inserted = [row for batch in batches for row in batch]
    assert [row[1:] for row in inserted] == [
        ("insert", None, None, 1, "a"),
        ("insert", None, None, 2, "b"),
        ("insert", None, None, 3, "c"),
    ]
    connection.execute("UPDATE t SET name = 'z' WHERE id = 2")
    connection.execute("DELETE FROM t WHERE id = 1")
    batches.clear()
    run_to_end(shown, tmp_path / "checkpoint", collected(batches))
    found = [row for batch in batches for row in batch]
    position = inserted[0][0]
    assert found == [
        (position + 1, "update", 2, "b", 2, "z"),
        (position + 2, "delete", 1, "a", None, None),
    ]
    connection.execute("CREATE SCHEMA other")
    connection.execute("CREATE TABLE other.t (id int PRIMARY KEY)")
    connection.execute("INSERT INTO other.t VALUES (1)")
    log = read(spark, shop, changes="*", after=position).where("table IS NOT NULL")
    assert rows(log.select("table", "kind")) == [
        ("other.t", "insert"),
        ("t", "delete"),
        ("t", "update"),
    ]


def test_admission_control_cuts_batches_and_a_foreign_checkpoint_is_refused(
    spark: SparkSession, shop: Path, connection: Connection, tmp_path: Path
) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
    start = Store.from_url(str(shop)).position()
    for number in range(6):
        connection.execute(f"INSERT INTO t VALUES ({2 * number}), ({2 * number + 1})")
    frame = changes(spark, shop, "t", position=start, maxRowsPerTrigger=4).select("new.id")
    batches: list[list[tuple[Any, ...]]] = []
    run_to_end(frame, tmp_path / "checkpoint", collected(batches))
    assert batches == [
        [(0,), (1,), (2,), (3,)],
        [(4,), (5,), (6,), (7,)],
        [(8,), (9,), (10,), (11,)],
    ]

    with belvedere.connect(str(tmp_path / "other.db"), durability="off", autocommit=True) as other:
        other.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
        foreign = changes(spark, tmp_path / "other.db", "t").select("new.id")
        with pytest.raises(Exception, match="checkpoint belongs to another store"):
            run_to_end(foreign, tmp_path / "checkpoint", collected([]))


def test_a_stream_into_a_table_writes_every_batch_once(
    spark: SparkSession, shop: Path, connection: Connection, tmp_path: Path
) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, name text)")
    connection.execute("CREATE TABLE copy (id bigint PRIMARY KEY, name text, n bigint DEFAULT 0)")
    connection.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    frame = changes(spark, shop, "t", position=0).where("kind = 'insert'").select("new.*")
    checkpoint = tmp_path / "checkpoint"
    target = {"database": shop, "table": "copy"}
    run_to_end(frame, checkpoint, lambda writer: writer.format("belvedere"), **target)
    expected = [(1, "a", 0), (2, "b", 0)]
    assert connection.execute("SELECT * FROM copy ORDER BY id").fetchall() == expected
    # Spark plays a batch again when it died before it noted that it is done.
    shutil.rmtree(checkpoint / "commits")
    run_to_end(frame, checkpoint, lambda writer: writer.format("belvedere"), **target)
    assert connection.execute("SELECT * FROM copy ORDER BY id").fetchall() == expected


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_a_view_is_followed_row_by_row(
    spark: SparkSession, shop: Path, connection: Connection, tmp_path: Path, maintenance: str
) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, k int)")
    connection.execute(
        f"CREATE MATERIALIZED VIEW v WITH (maintenance = '{maintenance}', keep_changes = '1000')"
        " AS SELECT k, count(*) AS n FROM t GROUP BY k"
    )
    frame = changes(spark, shop, "v").select("position", "weight", "row.k", "row.n")
    batches: list[list[tuple[Any, ...]]] = []
    run_to_end(frame, tmp_path / "checkpoint", collected(batches))
    assert [row for batch in batches for row in batch] == []
    store = Store.from_url(str(shop))
    total: list[tuple[int, int, int]] = []
    for statement in ("INSERT INTO t VALUES (1, 7), (2, 7), (3, 8)", "DELETE FROM t WHERE id = 1"):
        connection.execute(statement)
        connection.execute("REFRESH MATERIALIZED VIEW v")
        run_to_end(frame, tmp_path / "checkpoint", collected(batches))
    assert store.view_position("v") == store.position()
    found = [row[1:] for batch in batches for row in batch]
    total = sorted(row[1:] for row in found for _ in range(max(row[0], 0)))
    for weight, *row in found:
        if weight < 0:
            total.remove(tuple(row))
    assert total == [(7, 1), (8, 1)]
    assert found.count((-1, 7, 2)) == 1
