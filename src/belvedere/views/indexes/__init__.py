"""Indexes as projections of a table or view under another key.

In reading order; an entry uses only those before it:

    entries            maintenance of index entries
    unique_view_index  unique indexes of views: refusal of a second row of one key
    participants       the participants of a commit other than views: indexes and foreign keys
"""
