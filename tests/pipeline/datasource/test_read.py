"""Tables, views and queries as DataFrames."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.store.client import Store
from tests.pipeline.conftest import read, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_every_type_arrives(spark: SparkSession, shop: Path, connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE t (id bigint PRIMARY KEY, b boolean, s smallint, i int, n numeric(12, 2),"
        " big numeric, r real, d double precision, c char(3), v varchar(9), t text, y bytea,"
        " da date, ti time, ts timestamp, tz timestamptz, iv interval, u uuid, j json)"
    )
    connection.execute(
        "INSERT INTO t VALUES (1, true, 2, 3, 4.25, 123456789012345678901234567890123456789012.5,"
        " 1.5, 2.5, 'ab', 'vc', 'text', '\\x0102', '2026-11-16', '12:34:56.789',"
        " '2026-11-16 01:02:03', '2026-11-16 01:02:03+00', '1 month 2 days 3 hours',"
        " '00000000-0000-0000-0000-00000000002a', '{\"a\": 1}')"
    )
    connection.execute("INSERT INTO t (id) VALUES (2)")
    full, empty = rows(read(spark, shop, table="t"))
    assert empty == (2, *[None] * 18)
    expected = (1, True, 2, 3, Decimal("4.25"), "123456789012345678901234567890123456789012.5")
    assert full[:6] == expected
    assert full[6:12] == (1.5, 2.5, "ab ", "vc", "text", bytearray(b"\1\2"))
    assert full[12:14] == (datetime.date(2026, 11, 16), datetime.time(12, 34, 56, 789000))
    assert full[14] == datetime.datetime(2026, 11, 16, 1, 2, 3)
    assert full[16:] == (
        "1 mon 2 days 03:00:00",
        "00000000-0000-0000-0000-00000000002a",
        '{"a": 1}',
    )
    assert read(spark, shop, table="t").count() == 2  # also where Spark has to plan with them
    logged = read(spark, shop, changes="t").orderBy("position").collect()
    assert [tuple(one.new) for one in logged] == [full, empty]


def test_filters_columns_and_partitions(
    spark: SparkSession, shop: Path, connection: Connection
) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, name text, at date)")
    connection.execute(
        "INSERT INTO t SELECT g, 'n' || g, date '2026-01-01' + g::int"
        " FROM generate_series(1, 900) AS g"
    )
    connection.execute("CREATE INDEX by_name ON t (name)")
    frame = read(spark, shop, table="t", partitions=3)
    assert frame.rdd.getNumPartitions() == 3
    assert frame.count() == 900
    assert rows(frame.where("id >= 10 and id < 13").select("id")) == [(10,), (11,), (12,)]
    assert rows(frame.where("name = 'n7' and id > 0").select("id")) == [(7,)]
    narrow = frame.where("id in (3, 4) and at > date '2026-01-04'")
    assert rows(narrow.select("id")) == [(4,)]
    assert narrow.rdd.getNumPartitions() == 2  # two keys, each a part
    assert frame.where("name = 'n7'").rdd.getNumPartitions() == 1  # one look-up
    some = read(spark, shop, table="t", columns="name, id")
    assert some.columns == ["name", "id"]


def test_views_queries_and_positions(
    spark: SparkSession, shop: Path, connection: Connection
) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, k int)")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS n FROM t GROUP BY k")
    connection.execute("INSERT INTO t SELECT g, g % 3 FROM generate_series(1, 30) AS g")
    then = Store.from_url(str(shop)).position()
    connection.execute("DELETE FROM t WHERE k = 1")
    assert rows(read(spark, shop, view="v")) == [(0, 10), (2, 10)]
    assert rows(read(spark, shop, view="v", position=then)) == [(0, 10), (1, 10), (2, 10)]
    assert read(spark, shop, table="t", position=then).count() == 30
    query = "SELECT k, max(id) AS top FROM t GROUP BY k"
    assert rows(read(spark, shop, query=query)) == [(0, 30), (2, 29)]


def test_a_query_gives_the_columns_that_are_wanted(
    spark: SparkSession, shop: Path, connection: Connection
) -> None:
    connection.execute('CREATE TABLE t (id bigint PRIMARY KEY, "A b" int, c int)')
    connection.execute("INSERT INTO t VALUES (1, 2, 3), (4, 5, 6)")
    frame = read(spark, shop, query='SELECT "A b", c, id FROM t -- all', columns="c, A b")
    assert (frame.columns, rows(frame)) == (["c", "A b"], [(3, 2), (6, 5)])


def test_a_stretch_of_the_log_may_be_empty(
    spark: SparkSession, shop: Path, connection: Connection
) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
    now = Store.from_url(str(shop)).position()
    assert rows(read(spark, shop, changes="t", after=now)) == []
    assert rows(read(spark, shop, changes="v")) == []
    for of in ("t", "v", "*"):
        with pytest.raises(Exception, match="positions are not in the log"):
            read(spark, shop, changes=of, after=now, through=now - 1).collect()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "nothing"}, "table does not exist"),
        ({"view": "t"}, "not a materialized view"),
        ({"table": "t", "query": "SELECT 1"}, "exactly one of the options"),
        ({"table": "t", "columns": "id, no"}, "column does not exist"),
        ({"table": "t", "position": 10**9}, "position is not in the log"),
        ({"table": "t", "position": "now"}, "option is not a number"),
        ({"query": "DELETE FROM t"}, "not a query"),
    ],
)
def test_what_cannot_be_read_is_said_clearly(
    spark: SparkSession,
    shop: Path,
    connection: Connection,
    options: dict[str, object],
    message: str,
) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
    with pytest.raises(Exception, match=message):  # Spark wraps what its processes raise
        read(spark, shop, **options).collect()


def test_a_store_that_nobody_has_open_is_said_to_be_so(spark: SparkSession, shop: Path) -> None:
    with pytest.raises(Exception, match="nobody answers for the store"):
        read(spark, shop, table="t")
