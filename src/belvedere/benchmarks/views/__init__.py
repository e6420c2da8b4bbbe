"""What views cost and give.

In reading order; an entry uses only those before it:

    workload        shared parts of the view benchmarks: stores, keys, mixes of changes, paced
                    writers, percentiles
    deferred_views  benchmarks of deferred maintenance: changes a second, lag, backfill, many
                    views of one table
    matrix          the refresh matrix of pg_trickle: five views, three sizes, three shares of
                    changed rows
    writes          the cost of a write with views: k immediate ones, a join, and deferred ones
    suite           costs and benefits of views, durability off, in one run
"""
