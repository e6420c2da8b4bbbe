"""The algebra of deltas: normal form, delta tree and delta plan of a definition.

In reading order; an entry uses only those before it:

    sessionless_run    runs of plans and expressions with a reader but without a session
    linear_aggregates  linear aggregates (COUNT, SUM, AVG, variance): their state and its reading
    linear_core        the linear core: selections, projections, inner joins and UNION ALL
    tie_break          tie-breaking: the total order that views use, by all columns of a row
    delta_tree         the delta tree: a definition as operators whose deltas are computable
    normalize          normalization of a view's plan to the forms of `views.delta.delta_tree`
    foreign_key_joins  pruning of delta terms that enforced foreign keys make empty
    leaf_lookups       the order in which a term joins its tables, by which keys and indexes
    delta_plan         the delta plan of a linear core: its change when its tables change
    min_max            MIN and MAX of groups, or of all rows of a table, from the ends of an index
    first_rows         the first rows of groups, from the end of an index (DISTINCT ON)
    window_rows        windows that need a few rows of a partition, from an index
    subqueries         sub-queries and lateral joins as an Apply, with their look-up keys
    plan_delta_tree    the planner of delta trees: from a normalized plan to its tree
"""
