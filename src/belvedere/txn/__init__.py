"""How data changes: transactions, locks, change log, commit, recovery, what a reader may see.

In reading order; an entry uses only those before it:

    contracts      contracts of the transaction layer: readers, writers, participants, commit
                   protocols, the log
    token          position tokens: authenticated log positions that a client may carry to another
                   connection
    history/       the past: what a row was before. Undo index, readers at a position, undo by log
    transaction/   A transaction: its snapshot, its writes, its locks, and the rows of tables it
                   works on
    engine         the transactional engine contract: a store with its log, its published state
                   and its commits
    batch_atomic/  the commit on a store that writes any batch atomically (memory, RocksDB), and
                   its directory
    row_atomic/    the commit on a store that writes only single rows atomically (HBase), as steps
                   without I/O
"""

SURFACE = (
    "batch_atomic.backup",
    "batch_atomic.directory",
    "batch_atomic.engine",
    "batch_atomic.recovery",
    "batch_atomic.replay",
    "contracts",
    "engine",
    "history.derived_rows",
    "history.merge_scan",
    "history.readers",
    "row_atomic.cells.data_cells",
    "row_atomic.cells.layout",
    "row_atomic.commit_protocol",
    "row_atomic.engine",
    "row_atomic.reader",
    "token",
    "transaction.foreign_keys",
    "transaction.locks",
    "transaction.root_keys",
    "transaction.schema_change",
    "transaction.sequences",
    "transaction.table_rows",
    "transaction.transaction",
)
"""The modules that other packages may import."""
