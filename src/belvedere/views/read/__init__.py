"""Queries over views: over their state, caught up with the log, or rewritten to use one.

In reading order; an entry uses only those before it:

    catch_up          catch-up on read: the pending log of deferred views applied in memory, for
                      one statement
    expand_views      view expansion: a plan that names views becomes one over their state, or
                      over their tables
    rewrite           query rewriting: rules from plan to plan by which materialized views answer
                      queries
    rewrite_to_index  the rewrite rule for indexes that are views: of a view's columns, or
                      deferred or local indexes
"""
