"""Relational operators over rows, one kind a module.

In reading order; an entry uses only those before it:

    access          access paths as keys and key ranges of a relation
    merge_join      merge join: both inputs are sorted by the join key and read in parallel
    row_operators   operators of one input without ordering (filter, project, distinct, lock), and
                    leaves that are not relations (values, table functions)
    spill           external merge sort: sorted runs in temporary files, merged when read
    window_frames   window frames: which rows of its partition each row sees
    scans           rows of a relation through each access path
    set_operations  set operations, CTEs and recursion
    sort            sorting
    aggregates      GROUP BY: accumulators per group, with FILTER, DISTINCT, ORDER BY, WITHIN
                    GROUP, grouping sets
    joins           joins: hash and merge on equal keys, nested loop without keys, lateral, and
                    index nested loop
    windows         window functions: partitions, peers, frames, and one value per row for every
                    call
"""
