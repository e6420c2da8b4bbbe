"""Relational operators over rows, one kind a module.

In reading order; an entry uses only those before it:

    access          access paths as keys and key ranges of a relation
    merge_join      merge join: both inputs are sorted by the join key and read in parallel
    virtual_tables  tables computed by the system: scans, and look-ups by an equality
    row_operators   filter, project, distinct and lock; the leaves values and table function
    spill           external merge sort: sorted runs in temporary files, merged when read
    window_frames   window frames: which rows of its partition each row sees
    scan_requests   what scans need of their rows, in the form that stores understand
    foreign_scans   rows of foreign tables
    scans           rows of a relation through each access path
    set_operations  set operations, CTEs and recursion
    sort            sorting
    aggregates      GROUP BY: accumulators per group, and all clauses of an aggregate call
    joins           hash, merge, nested loop, lateral and index nested loop joins
    windows         window functions: partitions, peers, frames, one value a row for every call
"""
