"""Spark integration: a data source for tables, views and the log, and jobs that load, export,
backfill, maintain and verify views at scale.

    import belvedere.pipeline
    belvedere.pipeline.register(spark)
    spark.read.format("belvedere").option("database", "shop.db").option("table", "orders").load()

Nothing here opens a store: Spark calls the hooks of a data source outside the driver, so every
access uses the socket of the process that has the store open (`store.Store`). Importing this
package does not need pyspark; `register` and `session` do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from belvedere.pipeline.store.client import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Store", "register"]


def register(spark: SparkSession) -> None:
    """Register `format("belvedere")` in a session, and set the options that it needs."""
    from belvedere.pipeline.datasource.source import BelvedereSource  # heavy

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.conf.set("spark.sql.timeType.enabled", "true")  # else a column of TIME is only collected
    spark.dataSource.register(BelvedereSource)
