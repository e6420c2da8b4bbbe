"""One batch of maintenance on Spark.

In reading order; an entry uses only those before it:

    task_operators     task functions of a maintenance batch that read the store's state: look-ups
                       and operators
    delta_dataframes   lowering of a view's delta plan to DataFrames: the delta of its tree over a
                       range of the log
    batch              the Spark job of one maintenance batch: what a range of the log adds to the
                       state of views
    explain            EXPLAIN of the delta plan of a view on Spark: how each operator of a large
                       batch would run
    group_driver       driver of maintenance groups on Spark: claims groups of deferred views and
                       advances them
    state_at_position  the state of a view at another position of the log than the one at which it
                       is stored
"""
