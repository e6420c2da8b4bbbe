"""The pipeline on Spark.

In reading order; an entry uses only those before it:

    scaling  scaling from one CPU to two: one job in child processes with a limited CPU count
    views    the pipeline's jobs on views: backfill, streaming maintenance, verify
    suite    the pipeline on Spark: reads of tables and the log, writes, and the jobs on views
"""
