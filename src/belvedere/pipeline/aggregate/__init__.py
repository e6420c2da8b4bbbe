"""What rows add to the state of views, summed exactly in Spark, Arrow or Python.

In reading order; an entry uses only those before it:

    additions     additions to the state of views: payload and amounts by key, also as Arrow
    spark_sums    additions to a view's state by Spark's aggregates, where these are exact
    arrow_sums    exact sums of floats in Arrow columns, independent of the order of rows
    linear_views  deltas of views that map each row of a table by itself, in Arrow columns
    sum_methods   additions of a view's rows to its state, by the fastest method that is exact
    table_scan    one scan of each table for many views: the task that reads rows also sums them
"""
