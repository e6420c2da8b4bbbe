"""The operators of a delta tree: each computes the change of its output.

In reading order; an entry uses only those before it:

    backfill_parts     the rows of a view that a part of one table, or some partitions, give
    exists             existence checks by one seek: whether a table has any row with a key
    operator           the operator contract: weighted row changes of a step, rows at a state
    auxiliary_readers  readers of auxiliary views, for the maintenance of other views
    full_recompute     full recomputation (`strict = false`): recursion, volatile functions
    linear             the linear nodes: core, map and union
    min_max            MIN and MAX of groups, read from the ends of an index
    index_places       rows of a table by their places in an index
    first_rows         the first rows of groups, read from the end of an index (DISTINCT ON)
    window_rows        rows of windows around a change, or the first ones, read from an index
    apply              Apply: rows computed from each left row (outer and lateral joins ..)
    from_auxiliary     operators over auxiliary views, which read only the entries they need
    recompute          Recompute: recomputation of touched partitions, before and after
    build              the builder: from a delta tree to the operator that runs it
"""
