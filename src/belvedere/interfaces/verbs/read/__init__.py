"""Verbs that read rows, changes and queries at a held position.

In reading order; an entry uses only those before it:

    key_splits    splits of a key range into parts of similar row counts, from a few reads
    relations     resolution of the table or view and the columns that a request names
    queries       SELECT statements of other processes, at a leased position
    filters       pushed-down filters of a remote reader, as key ranges and index look-ups
    view_changes  verbs that read the changefeed of a view: `con.subscribe` for other processes
    view_scan     scan of a view in parts
    changes       verbs that read the change log, of one table or of all
    read_verbs    verbs that read rows at one position
"""
