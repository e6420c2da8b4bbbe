"""A shop on one machine, with Spark beside it: load, follow, verify, read.

    python examples/spark_pipeline.py        needs belvedere[spark] and Java 17

1. load a Parquet file into a table, as one transaction
2. create views: one inside every transaction, one that Spark keeps up to date
3. maintain the second by Structured Streaming while the application goes on writing
4. verify both: recomputed in Spark, compared row by row
5. read a view as a DataFrame, now and at the position before the application wrote
"""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

import belvedere
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline import Store
from belvedere.pipeline.jobs import load, maintain, verify
from belvedere.pipeline.store.spark_session import open_spark_session
from belvedere.pipeline.store.tables import DefinitionCompiler
from belvedere.session.materialized.create import bind_simplified_definition
from belvedere.session.statement.catalog_expressions import compile_row_expression

ORDERS = 2_000
CITIES = ("Vienna", "Graz", "Linz")
DEFINITIONS = DefinitionCompiler(bind_simplified_definition, compile_row_expression)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "shop.db"
        with (
            belvedere.connect(str(path), autocommit=True) as shop,
            open_spark_session("local[2]") as spark,
        ):
            store = Store.from_url(str(path))
            load_orders(spark, store, shop, Path(scratch) / "orders.parquet")
            create_views(shop)
            before = store.position()
            maintain_while_writing(spark, store, str(path))
            for done in verify.verify_views(spark, store, ["by_city", "spent"], DEFINITIONS):
                print(f"verified {done.view} at position {done.position}: ok is {done.is_correct}")
                assert done.is_correct
            show_view(spark, path, before)


def load_orders(spark: SparkSession, store: Store, shop: Connection, file: Path) -> None:
    shop.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY, customer bigint NOT NULL,"
        " city text NOT NULL, total numeric(10, 2) NOT NULL CHECK (total > 0))"
    )
    numbers = range(ORDERS)
    columns = {
        "id": list(numbers),
        "customer": [n % 97 for n in numbers],
        "city": [CITIES[n % 3] for n in numbers],
        "total": [f"{n % 50 + 1}.50" for n in numbers],
    }
    pyarrow.parquet.write_table(pa.table(columns), file)
    loaded = load.run_load(load.LoadInputs(spark, (str(file),), "parquet"), store, "orders")
    print(f"loaded {loaded.rows} rows at position {loaded.position}")


def create_views(shop: Connection) -> None:
    shop.execute(
        "CREATE MATERIALIZED VIEW spent AS"
        " SELECT customer, count(*) AS orders, sum(total) AS total FROM orders GROUP BY customer"
    )
    shop.execute(
        "CREATE MATERIALIZED VIEW by_city WITH (maintenance = 'deferred') AS"
        " SELECT city, count(*) AS orders, max(total) AS largest FROM orders GROUP BY city"
    )


def maintain_while_writing(spark: SparkSession, store: Store, path: str) -> None:
    """Spark takes the deferred view over from the local worker, and hands it back at the end."""
    application = threading.Thread(target=write_orders, args=(path,))
    application.start()

    def stopped() -> bool:
        return not application.is_alive() and reached(store) >= store.position()

    maintain.run_maintenance(
        spark, store, ["by_city"], DEFINITIONS, trigger="200 milliseconds", stopped=stopped
    )
    application.join()
    print(f"by_city followed the log to position {reached(store)}")


def write_orders(path: str) -> None:
    with belvedere.connect(path, autocommit=True) as shop:
        for number in range(ORDERS, ORDERS + 200):
            row = (number, number % 97, CITIES[number % 3], f"{number}.25")
            shop.execute("INSERT INTO orders VALUES (?, ?, ?, ?)", row)
        shop.execute("DELETE FROM orders WHERE city = 'Linz'")


def reached(store: Store) -> int:
    found = store.execute("SELECT position FROM belvedere.views WHERE name = 'by_city'").rows
    assert found is not None
    return int(found.column(0)[0].as_py())


def show_view(spark: SparkSession, path: Path, before: int) -> None:
    print("by_city before the application wrote, and now:")
    read_view(spark, path, position=str(before)).orderBy("city").show()
    now = read_view(spark, path).orderBy("city")
    now.show()
    assert [row.city for row in now.collect()] == ["Graz", "Vienna"]


def read_view(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    reader = spark.read.format("belvedere").option("database", str(path))
    return reader.option("view", "by_city").options(**options).load()


if __name__ == "__main__":
    main()
