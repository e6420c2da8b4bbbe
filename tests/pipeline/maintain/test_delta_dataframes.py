"""The delta plan as DataFrames adds the very same to the state as the engine's operators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from belvedere.catalog import model
from belvedere.codec import accumulator
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.aggregate.additions import Sums
from belvedere.pipeline.maintain import batch as deltas
from belvedere.pipeline.store.checkpoint import hold_temporary_checkpoint
from belvedere.pipeline.store.client import Store
from belvedere.pipeline.store.log_changes import ChangeReadTask
from belvedere.pipeline.store.tables import decode_catalog, fetch_encoded_catalog
from belvedere.types import BIGINT
from tests.pipeline.definitions import DEFINITIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOWERED = {
    "joined": "SELECT i.id, k.name FROM items i JOIN kinds k ON k.id = i.kind WHERE i.price > 2",
    "summed": "SELECT k.name, count(*) AS n, sum(i.price) AS p, sum(i.weight) AS w, variance(i.id)"
    " AS v FROM items i JOIN kinds k ON k.id = i.kind GROUP BY k.name",
    "pairs": "SELECT a.id, b.id AS other FROM items a JOIN items b ON a.kind = b.kind",
    "chain": "SELECT i.id, k.name, m.city FROM items i JOIN kinds k ON k.id = i.kind"
    " JOIN makers m ON m.id = k.maker",
    "lonely": "SELECT k.id, k.name FROM kinds k LEFT JOIN items i ON i.kind = k.id"
    " WHERE i.id IS NULL",
    "sold": "SELECT id FROM kinds WHERE id NOT IN (SELECT kind FROM items WHERE kind IS NOT NULL)",
    "most": "SELECT kind, max(price) AS most, count(DISTINCT note) AS notes FROM items GROUP BY 1",
    "ranked": "SELECT id, rank() OVER (PARTITION BY kind ORDER BY price) AS r FROM items",
    "dear": "SELECT id, price FROM items ORDER BY price DESC, id LIMIT 3",
    "united": "SELECT kind, id FROM items UNION SELECT id, maker FROM kinds",
    "shown": "SELECT k.name, upper(i.note) AS note, i.weight FROM items i JOIN kinds k"
    " ON k.id = i.kind",
}
BY_ENGINE = {"below": "SELECT i.id FROM items i JOIN kinds k ON i.kind < k.id"}


@pytest.fixture
def shop_views(connection: Connection) -> Connection:
    connection.execute("CREATE TABLE makers (id int PRIMARY KEY, city text)")
    connection.execute("CREATE TABLE kinds (id int PRIMARY KEY, name text, maker int)")
    connection.execute(
        "CREATE TABLE items (id int PRIMARY KEY, kind int, price numeric(8,2), note text,"
        " weight double precision)"
    )
    connection.execute("INSERT INTO makers VALUES (1, 'Linz'), (2, 'Graz')")
    for i in range(6):
        connection.execute("INSERT INTO kinds VALUES (?, ?, ?)", (i, f"kind {i}", 1 + i % 2))
    for i in range(24):
        row = (i, i % 4, i, f"n{i % 3}", 0.1 * i)
        connection.execute("INSERT INTO items VALUES (?, ?, ?, ?, ?)", row)
    for name, query in (LOWERED | BY_ENGINE).items():
        connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    return connection


def write_some(connection: Connection) -> None:
    """All tables change together, rows come and go again, and keys are NULL."""
    connection.execute("UPDATE items SET kind = 5, price = price + 1 WHERE id < 4")
    connection.execute("UPDATE items SET note = 'n9' WHERE id BETWEEN 4 AND 6")
    connection.execute("DELETE FROM items WHERE id BETWEEN 10 AND 12")
    connection.execute(
        "INSERT INTO items VALUES (100, 4, 99, 'new', 1e30), (101, NULL, 1, 'n0', 2)"
    )
    connection.execute("INSERT INTO items VALUES (102, 1, 1, 'brief', 3)")
    connection.execute("UPDATE kinds SET name = 'other', maker = 2 WHERE id = 1")
    connection.execute("DELETE FROM items WHERE id = 102")
    connection.execute("DELETE FROM kinds WHERE id = 3")
    connection.execute("UPDATE makers SET city = 'Wien' WHERE id = 2")
    connection.execute("UPDATE items SET kind = 3 WHERE id = 23")


def sums(frame: pa.Table) -> Sums:
    """Payload and amounts by key; every key is there once."""
    keys, values = frame["key"].to_pylist(), frame["value"].to_pylist()
    assert len(set(keys)) == len(keys)
    return {key: accumulator.decode(value) for key, value in zip(keys, values, strict=True)}


def test_every_operator_adds_what_the_engine_adds(
    spark: SparkSession, shop: Path, shop_views: Connection
) -> None:
    store = Store.from_url(str(shop))
    start = store.position()
    write_some(shop_views)
    end = store.position()
    lease = store.take_position_lease()
    objects = fetch_encoded_catalog(store, lease)
    names = {view.name: view.id for view in decode_catalog(objects).views}
    wanted = tuple(names[name] for name in LOWERED | BY_ENGINE)
    shop_views.execute("DELETE FROM kinds WHERE id < 3")  # after the range: it has to be undone
    shop_views.execute("UPDATE items SET kind = 0, price = 1, weight = 7")
    inputs = deltas.BatchInputs(spark, store, start, end, wanted, objects, DEFINITIONS, 2)
    changes = deltas.create_change_frames(inputs, share=True)
    with hold_temporary_checkpoint(store) as copy:
        assert copy.position > end
        by_engine = sums(deltas.build_additions_frame(inputs._replace(checkpoint=copy)).toArrow())
        lowered = inputs._replace(checkpoint=copy, columns=True)
        found, left = deltas.lower_delta_plans(lowered, wanted, changes)
        assert [one.view for one in found] == [names[name] for name in LOWERED]
        assert left == tuple(names[name] for name in BY_ENGINE)
        by_frames = sums(deltas.build_additions_frame(lowered, changes=changes).toArrow())
    changes.unpersist_change_frames()
    store.release_position_lease(lease)
    assert by_frames == by_engine
    assert len(by_engine) > len(LOWERED), "every view changed"


def test_a_change_that_touches_no_wanted_column_is_left_out(
    shop: Path, connection: Connection
) -> None:
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, a int, b text)")
    store = Store.from_url(str(shop))
    start = store.position()
    connection.execute("INSERT INTO t VALUES (1, 10, 'x'), (2, NULL, 'y'), (3, 30, 'z')")
    connection.execute("UPDATE t SET b = b || '!'")
    connection.execute("UPDATE t SET a = 31 WHERE id = 3")
    connection.execute("DELETE FROM t WHERE id = 2")
    lease = store.take_position_lease()
    catalog = decode_catalog(fetch_encoded_catalog(store, lease))
    store.release_position_lease(lease)
    (table,) = [one for one in catalog.tables if one.name == "t"]
    types = (table.columns[1].type, BIGINT)
    step = ChangeReadTask(
        store, start, lease.position, 2, model.encode(table), (1,), types, ("a", "weight")
    )
    rows = [row for batch in step(iter([numbers(0, 1)])) for row in batch.to_pylist()]
    assert sorted((row["weight"], row["a"] or 0) for row in rows) == [
        (-1, 0),
        (-1, 30),
        (1, 0),
        (1, 10),
        (1, 30),
        (1, 31),
    ]


def numbers(*those: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(those, pa.int64())], names=["id"])
