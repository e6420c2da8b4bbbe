"""What EXPLAIN MATERIALIZED VIEW prints: the delta plan, and what a change costs.

In reading order; an entry uses only those before it:

    cost_estimate  the cost estimate of a view: reads and writes for one changed row of each table
    describe_view  EXPLAIN of a view: its stored state and its delta plan as text
"""
