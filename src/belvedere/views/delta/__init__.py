"""The algebra of deltas: a definition in normal form, its delta tree, its delta plan.

In reading order; an entry uses only those before it:

    detached_run       runs of plans and expressions without a session: a reader is given, and
                       nothing else
    linear_aggregates  linear aggregates: the state that a view stores for COUNT, SUM, AVG,
                       variance and standard deviation, and how the value is read from it
    linear_core        the linear core of a view: selections, projections, inner joins and UNION
                       ALL, laid flat
    tie_break          tie-breaking: gives a query the total order that views use, by all columns
                       of the ordered rows
    delta_tree         the delta tree: a view's definition as operators whose deltas can be
                       computed
    normalize          normalization of a view's plan: an equivalent plan of only those forms that
                       `views.delta.delta_tree` knows
    prune_terms        pruning of delta terms: enforced foreign keys make some of them empty
    delta_plan         the delta plan of a linear core: how its rows change when rows of its
                       tables change
    min_max            MIN and MAX of a table's groups, or of all its rows, from the ends of an
                       index
    subqueries         sub-queries and lateral joins as an Apply, each with the keys that its rows
                       are looked up by
    plan_delta_tree    the planner of delta trees: a normalized plan (`views.delta.normalize`) to
                       its tree (`views.delta.delta_tree`)
"""
