"""The optimizer: one ordered tuple of rules (`optimize`), each from plan to plan.

In reading order; an entry uses only those before it:

    column_summary       column summaries for estimates, from a sample of the values
    equality             builds comparisons between two typed expressions
    factor_disjunctions  factors shared conditions out of an OR
    statistics           statistics of stored data, which may be old or missing
    context              the context of optimizer rules, and the traversal of nested plans
    estimates            estimated row counts of plan nodes
    fold_constants       constant folding: computes expressions that depend on no row
    prune_columns        column pruning: removes columns that no node above reads
    top_n                pushes limits below projections, and turns sort and limit into a TopN
    push_predicates      predicate push-down: moves conditions towards the rows they filter
    subqueries/          sub-queries and CTEs that become joins
    access/              choice of access paths for scans
    simplify_projects    drops projections that only pass columns on, or merges them
    joins/               join order and join methods
    plan_cost            the cost of an optimized plan
    seek_subqueries      scans by keys that a sub-query gives
    optimize             the optimizer: one ordered tuple of rules
"""
