"""EXPLAIN of statements and of views.

In reading order; an entry uses only those before it:

    view       EXPLAIN of views and writes: how a view is stored and maintained, and the cost of
               each write
    statement  EXPLAIN: the plan tree with estimates, and the chosen tier with its reason; ANALYZE
               also runs the statement and measures each node
"""
