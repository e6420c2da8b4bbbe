"""Changes of the log to writes of view state, for every driver of maintenance.

In reading order; an entry uses only those before it:

    decoded_changes    the changes of a step as decoded rows, shared by all views of a step
    state_entries      the whole state of a view as sorted entries
    logged_columns     the changes of a log range as Arrow columns with weights
    column_additions   what a batch adds, encoded, summed and applied by columns
    difference_plan    a definition after a batch minus before it, over the touched partitions
    duckdb_inexactness what DuckDB would compute differently
    duckdb_batch       the delta of a large batch by DuckDB, in columns
    view_family        views over the same rows and groups, whose batches are one statement
    failing_part       the part of an expression that fails, and the row for which it does
    failed_expression  the error of a view that cannot be maintained: view, expression, row
    log_window         a window of the log, read, decoded and consolidated once for all views
    recent_log_columns the log range that was last decoded as columns
    maintainer         the maintenance of one view: changes of its tables to additions to state
"""
