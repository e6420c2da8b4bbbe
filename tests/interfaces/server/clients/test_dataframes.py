"""pandas, polars and ADBC: tables written and read as data frames and Arrow."""

from __future__ import annotations

from collections.abc import Iterator

import adbc_driver_postgresql.dbapi as adbc
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sqlalchemy as sa

FRAME = pd.DataFrame(
    {
        "a": [1, 2, 3],
        "b": ["x", "y", None],
        "c": [1.5, np.nan, 3],
        "d": pd.to_datetime(["2020-01-01", "2020-01-02", None]),
        "e": [True, False, True],
        "tz": pd.to_datetime(["2020-01-01", "2020-01-02", None], utc=True),
    }
)


@pytest.fixture
def engine(uri: str) -> Iterator[sa.Engine]:
    made = sa.create_engine(uri.replace("postgresql:", "postgresql+psycopg:"))
    yield made
    made.dispose()


def test_pandas_writes_and_reads_by_sqlalchemy(engine: sa.Engine) -> None:
    FRAME.to_sql("t", engine, index=False)
    pd.testing.assert_frame_equal(pd.read_sql("SELECT * FROM t ORDER BY a", engine), FRAME)
    pd.testing.assert_frame_equal(pd.read_sql_table("t", engine), FRAME)
    FRAME.to_sql("t", engine, index=False, if_exists="append", chunksize=2)
    FRAME.to_sql("t", engine, index=False, if_exists="append", method="multi")
    assert [len(one) for one in pd.read_sql("SELECT * FROM t", engine, chunksize=4)] == [4, 4, 1]
    FRAME.to_sql("t", engine, if_exists="replace")
    assert len(pd.read_sql("SELECT * FROM t", engine)) == 3


def test_polars_writes_and_reads(engine: sa.Engine, uri: str) -> None:
    frame = pl.DataFrame({"x": [1, 2], "y": ["a", None], "z": [1.5, None]})
    frame.write_database("by_sqlalchemy", engine)
    frame.write_database("by_adbc", uri, engine="adbc")
    frame.write_database("by_adbc", uri, engine="adbc", if_table_exists="append")
    assert pl.read_database("SELECT * FROM by_sqlalchemy ORDER BY x", engine).equals(frame)
    found = pl.read_database_uri("SELECT * FROM by_adbc ORDER BY x", uri, engine="adbc")
    assert found.equals(frame[[0, 0, 1, 1]])


def test_adbc_queries_ingests_and_describes(uri: str) -> None:
    table = pa.table({"i": [1, 2, 3], "s": ["a", None, "c"], "f": [1.5, 2.5, None]})
    with adbc.connect(uri) as connection, connection.cursor() as cursor:
        assert cursor.adbc_ingest("t", table, mode="create") == 3
        connection.commit()
        cursor.execute("SELECT * FROM t ORDER BY i")
        assert cursor.fetch_arrow_table().to_pylist() == table.to_pylist()
        cursor.execute("SELECT $1::int + 1 AS n", (5,))
        assert cursor.fetchall() == [(6,)]
        assert connection.adbc_get_table_schema("t").names == ["i", "s", "f"]
        assert "table" in connection.adbc_get_table_types()
        assert connection.adbc_get_info()["vendor_name"] == "PostgreSQL"
        objects = connection.adbc_get_objects(depth="columns", table_name_filter="t").read_all()
        (shop,) = [one for one in objects.to_pylist() if one["catalog_name"] == "shop"]
        names = {
            column["column_name"]
            for schema in shop["catalog_db_schemas"]
            for one in schema["db_schema_tables"] or ()
            for column in one["table_columns"]
        }
        assert {"i", "s", "f"} <= names


def test_pandas_reads_and_writes_by_adbc(uri: str) -> None:
    with adbc.connect(uri) as connection:
        FRAME.to_sql("t", connection, index=False)
        found = pd.read_sql("SELECT * FROM t ORDER BY a", connection)
        assert found["b"].tolist()[:2] == ["x", "y"]
        assert found["tz"].tolist()[:2] == FRAME["tz"].tolist()[:2]
