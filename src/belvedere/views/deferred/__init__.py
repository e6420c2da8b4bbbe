"""Deferred maintenance: batches, driver, worker thread, lag.

In reading order; an entry uses only those before it:

    batch             one batch, which advances a group or a detached view along the log
    group_membership  views that leave their group for a while, and come back
    lag               the lag of views, and maintenance statistics
    driver            the driver: which units are advanced when, with errors and statistics
    worker            the worker: a thread that advances deferred groups by their schedules
"""
