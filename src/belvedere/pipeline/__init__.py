"""The same tables, views and log at scale, on Spark.

    import belvedere.pipeline
    belvedere.pipeline.register(spark)
    spark.read.format("belvedere").option("database", "shop.db").option("table", "orders").load()

Nothing here opens a store: hooks of a data source run outside the driver, so everything goes
through the socket of the process that has the store open (`store.Store`). Importing this package
does not need pyspark; `register` and `session` do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from belvedere.pipeline.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Store", "register"]


def register(spark: SparkSession) -> None:
    """Make `format("belvedere")` known to a session, and set what it needs."""
    from belvedere.pipeline.source import BelvedereSource  # heavy

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.conf.set("spark.sql.timeType.enabled", "true")  # else a column of TIME is only collected
    spark.dataSource.register(BelvedereSource)
