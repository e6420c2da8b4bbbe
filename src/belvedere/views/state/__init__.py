"""Stored state other than rows: watermarks, claims, additions, build progress.

In reading order; an entry uses only those before it:

    additions          additions to the state of views: recorded, applied, or found by comparison
    build_state        unfinished builds of indexes and views, and which of them resume
    schedule_groups    maintenance groups: the deferred views of one schedule
    watermarks         the log position applied by each maintenance group and detached view
    backfill_progress  the progress of a view's backfill, written with the rows of each step
    builder_node       the builder of each unfinished index or view on a row-atomic store
    state_update       one update of view state: additions, new positions, and feed entries
    claims             claims: the right to maintain a group over a log range, fenced by an epoch
"""
