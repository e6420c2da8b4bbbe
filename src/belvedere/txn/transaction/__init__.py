"""A transaction: its snapshot, its writes, its locks, and the rows of tables it works on.

In reading order; an entry uses only those before it:

    locks          locks held by transactions: root keys and entire tables, each kind counted and
                   visible
    root_keys      root keys: the key of the top row of a hierarchy, which a transaction locks
                   before it writes
    transaction    A transaction: a snapshot, its own writes on top, locks, savepoints, and one
                   commit
    foreign_keys   foreign keys as a participant of every commit that touches one of their tables
    schema_change  catalog changes inside a transaction: an edit's objects become rows of the
                   catalog relation
    sequences      sequences and hidden row ids: numbers from logged ranges
    table_rows     insert, update and delete of table rows in a transaction: encoding, NOT NULL,
                   key, root lock
"""
