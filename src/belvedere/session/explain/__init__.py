"""EXPLAIN of statements and of views.

In reading order; an entry uses only those before it:

    view       EXPLAIN of views and writes: state, maintenance, and the cost of each write
    statement  EXPLAIN of statements: plan tree, estimates, chosen tier; ANALYZE measures nodes
"""
