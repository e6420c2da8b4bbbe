"""The changes of a view itself, kept for subscribers.

In reading order; an entry uses only those before it:

    entries          the changefeed of a view: stored entries of its changes, and how rows are
                     computed from them
    related_entries  state entries that must be combined to produce one view row, for the
                     changefeed
    row_atomic       the changefeed of an immediate view on a row-atomic store, read from the
                     change log
"""
