"""Changes of the log to writes of view state, for every driver of maintenance.

In reading order; an entry uses only those before it:

    decoded_changes  the changes of a step as decoded rows, shared by all views that are
                     maintained from them
    duckdb_batch     the delta of a large batch by DuckDB: the same sums as the Python operators,
                     by columns
    gc_pause         pausing Python's cycle collector during a maintenance batch
    log_window       A window of the log, read, decoded and consolidated once for all views that
                     need it
    maintainer       the maintenance of one view: from changes of its tables to additions to its
                     stored state
"""
