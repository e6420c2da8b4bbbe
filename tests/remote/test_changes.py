"""The change log, as another process reads it."""

from __future__ import annotations

from typing import Any

import pytest

from belvedere.errors import InvalidInput
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.store.client import Store


def listed(batches: Any) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def test_a_table_s_changes_have_the_rows_before_and_after(
    store: Store, connection: Connection
) -> None:
    connection.execute("CREATE TABLE other (id bigint PRIMARY KEY)")
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, name text)")
    start = store.position()
    connection.execute("INSERT INTO t VALUES (1, 'a'), (2, NULL)")
    connection.execute("INSERT INTO other VALUES (1)")
    connection.execute("UPDATE t SET name = 'b' WHERE id = 1")
    connection.execute("ALTER TABLE t ADD COLUMN more int DEFAULT 5")
    connection.execute("DELETE FROM t WHERE id = 2")
    found = listed(store.read_log("t", start, store.position()))
    assert [(row["position"] - start, row["kind"], row["old"], row["new"]) for row in found] == [
        (1, "insert", None, {"id": 1, "name": "a", "more": 5}),
        (1, "insert", None, {"id": 2, "name": None, "more": 5}),
        (3, "update", {"id": 1, "name": "a", "more": 5}, {"id": 1, "name": "b", "more": 5}),
        (5, "delete", {"id": 2, "name": None, "more": 5}, None),
    ]
    assert store.describe_change_source("t").kind == "table"


def test_the_whole_log_names_its_tables(store: Store, connection: Connection) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
    start = store.position()
    connection.execute("INSERT INTO t VALUES (1)")
    (row,) = listed(store.read_log(None, start, start + 1))
    assert (row["table"], row["kind"], row["old"]) == ("t", "insert", None)
    assert row["new"] is not None


def test_a_large_transaction_comes_in_batches_of_bounded_size(
    store: Store, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belvedere.interfaces.verbs.read.changes.BATCH_ROWS", 100)
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
    start = store.position()
    connection.execute("INSERT INTO t SELECT * FROM generate_series(1, 1050)")
    sizes = [batch.num_rows for batch in store.read_log("t", start, start + 1)]
    assert sizes == [100] * 10 + [50]


def test_a_batch_is_cut_between_transactions(store: Store, connection: Connection) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
    start = store.position()
    for number in range(4):
        connection.execute(f"INSERT INTO t VALUES ({3 * number}), ({3 * number + 1})")
    reach = [store.last_position_within_rows(start, rows) - start for rows in (1, 2, 3, 4, 5, 100)]
    assert reach == [1, 1, 1, 2, 2, 4]


@pytest.mark.parametrize(("after", "through"), [(0, 10**6), (5, 1), (-1, 1)])
def test_positions_outside_of_the_log_are_refused(
    store: Store, connection: Connection, after: int, through: int
) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
    with pytest.raises(InvalidInput, match="positions are not in the log"):
        listed(store.read_log("t", after, through))


def test_a_view_s_changes_come_and_go(store: Store, connection: Connection) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, k int)")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS n FROM t GROUP BY k")
    assert store.describe_change_source("v").kind == "view"
    start = store.view_position("v")
    connection.execute("INSERT INTO t VALUES (1, 7)")
    connection.execute("INSERT INTO t VALUES (2, 7)")
    end = store.view_position("v")
    found = listed(store.read_view_changes("v", start, end))
    assert [(row["weight"], row["row"]) for row in found] == [
        (1, {"k": 7, "n": 1}),
        (-1, {"k": 7, "n": 1}),
        (1, {"k": 7, "n": 2}),
    ]
    first = listed(store.read_view_changes("v", start, end - 1))
    assert [row["weight"] for row in first] == [1]
    with pytest.raises(InvalidInput, match="has not come so far"):
        store.read_view_changes("v", start, end + 5).__next__()
