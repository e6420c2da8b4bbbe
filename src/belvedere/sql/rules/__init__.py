"""The optimizer: one ordered tuple of rules (`optimize`), each from plan to plan.

In reading order; an entry uses only those before it:

    column_summary       column summaries for estimates, computed from a sample of the column's
                         values
    equality             builds equality conditions between two typed expressions
    factor_disjunctions  factors conditions that all alternatives of an OR share out of it: `(a
                         AND b) OR (a AND c)` is `a AND (b OR c)`
    statistics           statistics of stored data for the optimizer: they may be old or missing,
                         plans stay correct
    context              the context that optimizer rules get, and the traversal of plans inside
                         expressions
    estimates            estimated row counts of plan nodes: they guide choices, correctness never
                         depends on them
    fold_constants       constant folding: what depends on no row and no statement is computed
                         once, here
    prune_columns        column pruning: no node gives columns that no node above it reads
    top_n                pushes limits below projections, and makes a limit of a sort one TopN
                         node that keeps n rows
    push_predicates      predicate push-down: every condition goes as near to the rows it filters
                         as it can
    subqueries/          sub-queries and CTEs that become joins
    access/              which access path a scan takes
    simplify_projects    projections that only pass columns on are dropped or merged with their
                         neighbours
    joins/               join order and join methods
    optimize             the optimizer: one ordered tuple of rules, each a function from plan to
                         plan
"""
