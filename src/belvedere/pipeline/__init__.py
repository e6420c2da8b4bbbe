"""View maintenance at scale, on Spark: a plan's leaves become DataFrames.

    import belvedere.pipeline
    belvedere.pipeline.register(spark)
    spark.read.format("belvedere").option("database", "shop.db").option("table", "orders").load()

Nothing here opens a store: Spark calls the hooks of a data source outside the driver, so every
access uses the socket of the process that has the store open, or on HBase a node of the process
that asks (`Store`). Importing this package does not need pyspark; `register` and `session` do.

In reading order; an entry uses only those before it:

    store/           the open store as jobs and tasks read it: client, checkpoint, tables, log
    aggregate/       what rows add to the state of views, summed exactly in Spark, Arrow or Python
    datasource/      Belvedere as a data source of Spark: read, write, stream
    backfill_files/  state as sorted files, which the store ingests
    maintain/        one batch of maintenance on Spark
    jobs/            the jobs: load, export, backfill, maintain, verify, explain, status
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


SURFACE = (
    "jobs.backfill",
    "jobs.explain",
    "jobs.export",
    "jobs.load",
    "jobs.maintain",
    "jobs.store_status",
    "jobs.verify",
    "maintain.group_driver",
    "store.checkpoint",
    "store.client",
    "store.spark_session",
    "store.tables",
    "store.verb_hosts",
)
"""The modules that other packages may import."""
