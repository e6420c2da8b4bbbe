"""The orders of the demo, summed by Spark: each task reads its share from HBase itself."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

import belvedere

TASKS = 2


def sum_orders_in_spark(url: str) -> list[tuple[int, int, int]]:
    """Customer, number of orders and their total, by customer."""
    from belvedere.pipeline.store.spark_session import open_spark_session  # heavy

    def read_share(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with belvedere.connect(url) as shop:
            for share in (row["id"] for batch in batches for row in batch.to_pylist()):
                found = shop.execute(
                    "SELECT customer, total FROM orders WHERE id % ? = ?", (TASKS, share)
                )
                yield from found.fetch_arrow().to_batches()

    with open_spark_session(f"local[{TASKS}]") as spark:
        shares = spark.range(TASKS, numPartitions=TASKS)
        orders = shares.mapInArrow(read_share, "customer bigint, total bigint")
        orders.createOrReplaceTempView("orders")
        sums = spark.sql(
            "SELECT customer, count(*) AS orders, sum(total) AS total FROM orders"
            " GROUP BY customer ORDER BY customer"
        ).collect()
    return [(row["customer"], row["orders"], row["total"]) for row in sums]
