"""What is stored about views beside their rows: watermarks, claims, additions, progress of builds.

In reading order; an entry uses only those before it:

    additions          additions to the stored state of views: recording, applying, and computing
                       them by comparison
    build_state        which builds of indexes and views have not ended, and which of them are
                       resumed
    schedule_groups    maintenance groups by schedule: deferred views that have one schedule are
                       one group
    watermarks         watermarks: the log position applied by each maintenance group and by each
                       detached view
    backfill_progress  the progress of a view's backfill, written in the batch that adds the rows
                       walked so far
    build_owner        the builder of each unfinished index or view on a row-atomic store, so that
                       nodes can take over
    state_update       one step of the state of views: what is added, where that brings them, and
                       what is told of it
    claims             claims: the right to maintain a group over a log range, fenced by an epoch
"""
