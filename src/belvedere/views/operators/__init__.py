"""The operators of a delta tree: each gives the weighted rows by which its output changed.

In reading order; an entry uses only those before it:

    backfill_parts     parts of a backfill: the rows of a view that some rows of one table, or
                       some partitions, give
    exists             existence checks by one seek: whether a table has any row with a key
    operator           delta operators: a tree's weighted row changes in one step, and its rows at
                       a state
    auxiliary_readers  readers of auxiliary views, for the maintenance of other views
    full_recompute     the delta operator of full recomputation (`strict = false`): recursion,
                       volatile functions
    linear             the delta operators of a tree's linear nodes: core, map and union
    min_max            MIN and MAX of groups, read from the ends of an index
    apply              the delta operator of Apply, which computes rows from each left row by
                       itself: joins of trees, outer, semi and anti joins, lateral joins, sub-
                       queries
    from_auxiliary     operators assembled from auxiliary views, which read only the entries they
                       need
    recompute          the delta operator of Recompute: it recomputes the touched partitions,
                       before and after
    build              the builder of delta operators: a delta tree to the operator that runs it
"""
