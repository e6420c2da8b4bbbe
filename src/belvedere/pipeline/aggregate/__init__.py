"""What rows add to the state of views, summed exactly in Spark, Arrow or Python.

In reading order; an entry uses only those before it:

    additions     additions to the state of views: payload and amounts by key, in memory and as
                  Arrow batches
    spark_sums    additions to a view's state computed by Spark's aggregates: each group once,
                  with its amounts
    arrow_sums    exact sums of floats, in Arrow columns inside the tasks; Spark's own would
                  depend on the order
    linear_views  deltas of views that use the rows of their tables one by one, computed in Arrow
                  columns
    state         additions of a view's rows to its state, by the fastest method that is exact
    table_scan    one scan of each table for many views: the task that reads rows also sums them
"""
