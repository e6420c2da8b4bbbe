"""A transaction: its snapshot, its writes, its locks, the rows of its tables.

In reading order; an entry uses only those before it:

    locks          locks held by transactions: root keys and entire tables
    root_keys      root keys: the key of a hierarchy's top row, locked before a write
    ended_reader   the reader of a transaction that has ended
    changed_keys   the keys that a transaction has changed, in order
    derived_preview  derived rows of own writes, as the transaction's own reads see them
    transaction    a transaction: snapshot, writes, locks, savepoints, commit
    retry_locks    locks that another attempt takes first, after a lost race
    child_rows     the rows that refer to a parent row
    foreign_keys   foreign keys as participants of commits that touch their tables
    schema_change  catalog changes in a transaction: objects as rows of the catalog relation
    sequences      sequences and hidden row ids: numbers from logged ranges
    table_rows     insert, update and delete of table rows: encoding, NOT NULL, key, root lock
"""
