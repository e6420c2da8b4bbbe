"""Tables, views and queries as DataFrames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from belvedere.interfaces.dbapi import Connection
from tests.pipeline.conftest import read, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_table_is_read_as_it_is(spark: SparkSession, shop: Path, connection: Connection) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, name text)")
    connection.execute("INSERT INTO t SELECT g, 'n' || g FROM generate_series(1, 1000) AS g")
    frame = read(spark, shop, table="t", partitions=3)
    assert rows(frame) == [(i, f"n{i}") for i in range(1, 1001)]
