"""Which access path a scan takes.

In reading order; an entry uses only those before it:

    implication    whether the conditions of a scan imply the WHERE of a partial index
    like_patterns  LIKE patterns with a fixed beginning as ranges of text
    access_paths   the access paths that a scan can take, the conditions each leaves to check, and
                   its cost
    choose_access  access path choice: each scan gets its cheapest access path
    order_by_key   removes sorts that an access path makes needless: it gives rows in the order of
                   its key
    seek_min_max   reads min and max of a key column from the first or last row of a key, instead
                   of all rows
"""
