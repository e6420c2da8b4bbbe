"""Indexes as projections of a table or view under another key.

In reading order; an entry uses only those before it:

    entries       maintenance of index entries: an index is a projection of its table under
                  another key
    unique        unique indexes of views: a change that would give a view two rows of one key is
                  refused
    participants  the participants of a commit other than views: indexes and foreign keys
"""
