"""EXPLAIN MATERIALIZED VIEW: the delta plan, and the cost of a change.

In reading order; an entry uses only those before it:

    cost_estimate  reads and writes for one changed row of each table
    describe_view  EXPLAIN of a view: its stored state and its delta plan as text
"""
