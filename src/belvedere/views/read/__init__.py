"""Queries over views: over their state, caught up, or rewritten to use one.

In reading order; an entry uses only those before it:

    deferred_readers  catch-up on read: the pending log applied in memory, for one statement
    expand_views      view expansion: from a plan over views to one over state or tables
    expand_to_state   the same for queries: plans over stored state
    reading_errors    the error of a query that a view it reads causes, with view, expression, row
    rewrite_rules     query rewriting: rules by which materialized views answer queries
    rewrite_to_index  the rewrite rule for indexes that are stored as views
"""
