"""Query rewriting: materialized views answer queries that do not name them.

In reading order; an entry uses only those before it:

    block           the normal form of a query block: select, project, join, group
    column_classes  columns that are equal, and canonical forms of expressions
    column_names    expressions over a block as text
    view_block      a view's definition as a block
    lossless_joins  joins of a view that change no row of the rest
    match           whether a view contains a block
    derive_columns  expressions of a query over the columns of a view
    roll_up         aggregates of groups from those of finer groups
    compensate      the plan that makes a block's rows from a view's
    exact_match     queries that repeat the definition of a view
    block_sites     the blocks of a plan
    signature       sets of columns by which most views are passed over
    candidates      the views that may answer queries, as blocks
    view_statistics statistics of the state of views
    planner         the cheapest plan over views
    explain         what EXPLAIN tells about views taken and refused
"""
