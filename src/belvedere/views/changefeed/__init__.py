"""The changes of a view, stored for its subscribers.

In reading order; an entry uses only those before it:

    entries          the stored changes of a view, and the rows computed from them
    related_entries  state entries that are combined to produce one row of a view
    row_atomic       the changefeed of an immediate view on a row-atomic store, from the log
"""
