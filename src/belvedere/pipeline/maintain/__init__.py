"""One batch of maintenance on Spark.

In reading order; an entry uses only those before it:

    task_operators     task functions of a batch that read state: look-ups and operators
    delta_dataframes   lowering of a delta plan to DataFrames, over a range of the log
    batch              the Spark job of one batch: additions of a log range to the state of views
    explain            EXPLAIN of a delta plan on Spark: how each operator of a large batch runs
    group_driver       driver of maintenance groups: claims deferred views and advances them
    state_at_position  the state of a view at a log position other than its stored one
"""
