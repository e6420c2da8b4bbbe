"""Costs and benefits of materialized views.

In reading order; an entry uses only those before it:

    workload        shared parts: stores, keys, mixes of changes, paced writers, percentiles
    deferred_views  deferred maintenance: changes a second, lag, backfill, many views of one table
    matrix          the refresh matrix of pg_trickle: five views, three sizes, three change ratios
    refresh_matrix  REFRESH beside PostgreSQL's: five views, three sizes, three change ratios
    writes          the cost of a write with k immediate views, a join view, and deferred views
    shapes          one view of every kind, with the change that is measured
    growth          the growth of the cost of one change with groups and tables, over all shapes
    suite           all benchmarks of views in one run, durability off
"""
