"""Deferred maintenance: batches, their driver, its worker thread, and how old views are.

In reading order; an entry uses only those before it:

    batch   one batch of deferred maintenance, which advances a group or a detached view along the
            log
    lag     the lag of views, from samples of (position, monotonic time), and maintenance
            statistics
    driver  the driver of deferred maintenance: which units are advanced when, with errors and
            statistics
    worker  the maintenance worker: a thread that advances deferred groups by their schedules
"""
