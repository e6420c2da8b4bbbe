"""Rows that another process writes: staged, then visible all at once, each batch once."""

from __future__ import annotations

import contextlib
import datetime
import json
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from belvedere.errors import InvalidInput, Unavailable
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.store.client import Store, WriteResult


def staged(store: Store, rows: list[dict[str, Any]], operation: str = "append") -> str:
    batch = pa.RecordBatch.from_pylist(rows)
    part, count = store.stage_rows("t", operation, batch.schema, [batch])
    assert count == len(rows)
    return part


def written(
    store: Store, rows: list[dict[str, Any]], operation: str = "append", **more: Any
) -> WriteResult:
    return store.commit_staged_parts("t", operation, [staged(store, rows, operation)], **more)


def content(connection: Connection) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT * FROM t ORDER BY 1").fetchall()


@pytest.fixture(autouse=True)
def table(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE t (id bigint PRIMARY KEY, name text NOT NULL, n int DEFAULT 7 CHECK (n > 0))"
    )


def test_staged_rows_are_invisible_until_they_are_written(
    store: Store, connection: Connection
) -> None:
    parts = [staged(store, [{"id": 1, "name": "a"}]), staged(store, [{"id": 2, "name": "b"}])]
    assert content(connection) == []
    before = store.position()
    done = store.commit_staged_parts("t", "append", parts)
    assert (done.rows, done.position) == (2, before + 1)
    assert content(connection) == [(1, "a", 7), (2, "b", 7)]


def test_upsert_and_delete_go_by_the_primary_key(store: Store, connection: Connection) -> None:
    written(store, [{"id": i, "name": "old", "n": i} for i in (1, 2, 3)])
    done = written(store, [{"id": 2, "name": "new"}, {"id": 4, "name": "new"}], "upsert")
    assert done.rows == 2
    assert content(connection) == [(1, "old", 1), (2, "new", 2), (3, "old", 3), (4, "new", 7)]
    assert written(store, [{"id": 1}, {"id": 9}], "delete").rows == 1
    assert [row[0] for row in content(connection)] == [2, 3, 4]


def test_views_and_indexes_follow(store: Store, connection: Connection) -> None:
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT name, count(*) AS c FROM t GROUP BY 1")
    written(store, [{"id": i, "name": "ab"[i % 2]} for i in range(10)])
    assert sorted(connection.execute("SELECT * FROM v").fetchall()) == [("a", 5), ("b", 5)]


def test_text_is_read_as_the_type_of_its_column(store: Store, connection: Connection) -> None:
    written(store, [{"id": "12", "name": "a", "n": "3"}])
    assert content(connection) == [(12, "a", 3)]


def test_one_bad_row_stops_the_job_and_leaves_nothing(store: Store, connection: Connection) -> None:
    before = store.position()
    with pytest.raises(InvalidInput) as caught:
        written(store, [{"id": 1, "name": "a", "n": 1}, {"id": 2, "name": "b", "n": -1}])
    assert caught.value.sqlstate == "23514"
    assert content(connection) == []
    assert store.position() == before


def test_bad_rows_are_rejected_each_with_its_reason(store: Store, connection: Connection) -> None:
    connection.execute("INSERT INTO t VALUES (5, 'there', 1)")
    rows: list[dict[str, Any]] = [
        {"id": "1", "name": "good", "n": "1"},
        {"id": "2", "name": "bad", "n": "-1"},
        {"id": "x", "name": "bad", "n": "1"},
        {"id": "5", "name": "bad", "n": "1"},
        {"id": "3", "name": None, "n": "1"},
        {"id": "1", "name": "twice", "n": "1"},
        {"id": "6", "name": "good", "n": None},
    ]
    done = written(store, rows, on_error="reject")
    assert done.rows == 2
    assert [row[:2] for row in content(connection)] == [(1, "good"), (5, "there"), (6, "good")]
    found = done.rejects.to_pylist()
    assert [row["sqlstate"] for row in found] == ["23514", "22P02", "23505", "23502", "23505"]
    assert json.loads(found[1]["row"]) == ["x", "bad", "1"]
    assert ("23505", 2) in [(state, count) for state, _, count in done.reasons]


@pytest.mark.parametrize(
    ("row", "operation", "names"),
    [
        ({"id": 1, "nam": "a"}, "append", ["unknown=nam", "missing=name", "has id, name, n"]),
        ({"name": "a"}, "upsert", ["missing=id"]),
        ({"name": "a"}, "delete", ["missing=id"]),
        ({"id": 1, "name": "a"}, "replace", ["append, upsert, delete"]),
    ],
)
def test_columns_that_do_not_match_are_listed(
    store: Store, connection: Connection, row: dict[str, Any], operation: str, names: list[str]
) -> None:
    with pytest.raises(InvalidInput) as caught:
        staged(store, [row], operation)
    for name in names:
        assert name in str(caught.value)


def test_a_batch_is_written_once_however_often_it_is_sent(
    store: Store, connection: Connection
) -> None:
    for batch, repeated in ((0, False), (0, True), (1, False), (0, True), (1, True)):
        rows = [{"id": batch, "name": "a"}]
        done = written(store, rows, "append", writer="query 7", batch=batch)
        assert done.repeated is repeated
    assert [row[0] for row in content(connection)] == [0, 1]
    done = written(store, [{"id": 5, "name": "a"}], writer="another", batch=0)
    assert not done.repeated


def test_two_that_send_the_same_batch_write_it_once(store: Store, connection: Connection) -> None:
    outcomes: list[bool] = []

    def send() -> None:
        rows = [{"id": i, "name": "a"} for i in range(50)]
        outcomes.append(written(store, rows, writer="query", batch=3).repeated)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False, True, True, True]
    assert len(content(connection)) == 50


def test_parts_that_are_discarded_or_made_up_cannot_be_written(
    store: Store, connection: Connection, tmp_path: Path
) -> None:
    part = staged(store, [{"id": 1, "name": "a"}])
    store.discard_staged_parts([part])
    with pytest.raises(Unavailable, match="staged rows are gone"):
        store.commit_staged_parts("t", "append", [part])
    with pytest.raises(InvalidInput, match="not the name of a part"):
        store.commit_staged_parts("t", "append", ["../../etc/passwd"])
    assert list((tmp_path / "shop.db" / "staging").iterdir()) == []


def test_a_job_that_ended_has_no_parts_also_of_tasks_that_are_late(
    store: Store, connection: Connection, tmp_path: Path
) -> None:
    job, staging = "0" * 32, tmp_path / "shop.db" / "staging"
    batch = pa.RecordBatch.from_pylist([{"id": 1, "name": "a"}])

    def ended_meanwhile() -> Any:
        yield batch
        store.end_write_job(job)
        yield batch

    told, _ = store.stage_rows("t", "append", batch.schema, [batch], job)
    other = staged(store, [{"id": 2, "name": "b"}])
    with pytest.raises(Unavailable, match="job of these rows has ended"):
        store.stage_rows("t", "append", batch.schema, ended_meanwhile(), job)
    with pytest.raises(Unavailable, match="job of these rows has ended"):
        store.stage_rows("t", "append", batch.schema, [batch], job)
    assert [one.name for one in staging.iterdir()] == [other]
    with pytest.raises(Unavailable, match="staged rows are gone"):
        store.commit_staged_parts("t", "append", [told])
    with pytest.raises(InvalidInput, match="not the name of a job"):
        store.end_write_job("*")


@pytest.mark.parametrize("good", [True, False])
def test_a_write_ends_its_job(
    store: Store, connection: Connection, tmp_path: Path, *, good: bool
) -> None:
    job = "a" * 32
    batch = pa.RecordBatch.from_pylist([{"id": 1, "name": "a", "n": 1 if good else -1}])
    parts = [store.stage_rows("t", "append", batch.schema, [batch], job)[0] for _ in range(2)]
    with contextlib.nullcontext() if good else pytest.raises(InvalidInput, match="check"):
        store.commit_staged_parts(
            "t", "append", parts[:1], job=job
        )  # nobody heard of the other part
    assert len(content(connection)) == int(good)
    assert list((tmp_path / "shop.db" / "staging").iterdir()) == []


def test_the_next_batch_of_a_stream_has_the_name_of_the_last(
    store: Store, connection: Connection, tmp_path: Path
) -> None:
    job = "b" * 32
    for number in range(2):
        batch = pa.RecordBatch.from_pylist([{"id": number, "name": "a"}])
        part, _ = store.stage_rows("t", "append", batch.schema, [batch], job)
        store.stage_rows("t", "append", batch.schema, [batch], job)
        store.commit_staged_parts("t", "append", [part], job=job, writer="w", batch=number)
        assert list((tmp_path / "shop.db" / "staging").iterdir()) == []
    store.end_write_job(job, again=True)
    store.stage_rows("t", "append", batch.schema, [batch], job)


def test_a_task_that_dies_while_it_sends_leaves_no_part(
    store: Store, connection: Connection, tmp_path: Path
) -> None:
    batch = pa.RecordBatch.from_pylist([{"id": 1, "name": "a"}])

    def dying() -> Any:
        yield batch
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.stage_rows("t", "append", batch.schema, dying())
    staged(store, [{"id": 2, "name": "b"}])  # the owner goes on
    deadline = threading.Event()
    for _ in range(600):
        if len(list((tmp_path / "shop.db" / "staging").iterdir())) == 1:
            break
        deadline.wait(0.1)
    assert len(list((tmp_path / "shop.db" / "staging").iterdir())) == 1


def test_records_that_could_not_be_parsed_are_bad_rows(
    store: Store, connection: Connection
) -> None:
    good = {"id": "1", "name": "a", "_corrupt_record": None}
    assert written(store, [good]).rows == 1
    bad = {"id": None, "name": None, "_corrupt_record": "2;b"}
    with pytest.raises(InvalidInput, match="record cannot be parsed"):
        written(store, [{**good, "id": "3"}, bad])
    assert [row[0] for row in content(connection)] == [1]
    done = written(store, [{**good, "id": "3"}, bad], on_error="reject")
    assert (done.rows, done.reasons) == (1, (("22P04", "record cannot be parsed", 1),))


def test_every_type_that_spark_has_arrives(store: Store, connection: Connection) -> None:
    connection.execute("DROP TABLE t")
    connection.execute(
        "CREATE TABLE t (id bigint PRIMARY KEY, b boolean, s smallint, n numeric(12, 2), u numeric,"
        " d double precision, y bytea, da date, ti time, ts timestamp, tz timestamptz,"
        " iv interval, uu uuid, c char(3))"
    )
    moment = datetime.datetime(2026, 11, 16, 1, 2, 3)
    columns = {
        "id": pa.array([1], pa.int64()),
        "b": pa.array([True]),
        "s": pa.array([2], pa.int16()),
        "n": pa.array([Decimal("4.25")], pa.decimal128(12, 2)),
        "u": pa.array(["123456789012345678901234567890.5"]),
        "d": pa.array([2.5]),
        "y": pa.array([b"\1\2"]),
        "da": pa.array([datetime.date(2026, 11, 16)]),
        "ti": pa.array([3_723_000_000_000], pa.time64("ns")),
        "ts": pa.array([moment], pa.timestamp("us")),
        "tz": pa.array([moment.replace(tzinfo=datetime.UTC)], pa.timestamp("us", "UTC")),
        "iv": pa.array(["1 mon 2 days"]),
        "uu": pa.array(["00000000-0000-0000-0000-00000000002a"]),
        "c": pa.array(["ab"]),
    }
    found = []
    for operation in ("append", "upsert"):
        batch = pa.RecordBatch.from_pydict(columns)
        part, _ = store.stage_rows("t", operation, batch.schema, [batch])
        store.commit_staged_parts("t", operation, [part])
        found.append(content(connection))
    assert found[0] == found[1]
    (row,) = found[0]
    assert row[1:4] == (True, 2, Decimal("4.25"))
    assert row[8:10] == (datetime.time(1, 2, 3), moment)
    assert row[10] == moment.replace(tzinfo=datetime.UTC)
    assert str(row[12]) == "00000000-0000-0000-0000-00000000002a"
