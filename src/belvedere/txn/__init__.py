"""How data changes: transactions, locks, change log, commit, recovery, what a reader may see.

In reading order; an entry uses only those before it:

    cluster        what a store that several processes use shows of them
    contracts      contracts of the layer: readers, writers, participants, commit protocols, log
    token          position tokens: authenticated log positions, valid in other connections
    exact_order    the exact order of entries whose keys keep long values by a digest
    gc_pause       a pause of Python's cycle collector while many changes are made
    history/       past states of rows: undo index, readers at a position, undo by the log
    transaction/   a transaction: its snapshot, its writes, its locks, the rows of its tables
    scan_request   what a scan needs of a table's rows, for stores that can leave out the rest
    engine         the engine contract: a store with its log, published state and commits
    batch_atomic/  transactions on a store that writes any batch atomically (memory, RocksDB)
    row_atomic/    transactions on a store that writes single rows atomically (HBase), as steps
"""

SURFACE = (
    "batch_atomic.backup",
    "batch_atomic.directory",
    "batch_atomic.engine",
    "batch_atomic.recovery",
    "batch_atomic.replay",
    "cluster",
    "contracts",
    "engine",
    "exact_order",
    "gc_pause",
    "history.derived_rows",
    "history.merge_scan",
    "history.readers",
    "row_atomic.cells.data_cells",
    "row_atomic.cells.layout",
    "row_atomic.cells.placement",
    "row_atomic.cells.table_cells",
    "row_atomic.cells.table_filters",
    "row_atomic.commit",
    "row_atomic.commit_protocol",
    "row_atomic.engine",
    "row_atomic.group_commit",
    "row_atomic.hbase_setup",
    "row_atomic.locks",
    "row_atomic.log.advance",
    "row_atomic.node",
    "row_atomic.read_rows",
    "row_atomic.reader",
    "scan_request",
    "token",
    "transaction.child_rows",
    "transaction.foreign_keys",
    "transaction.locks",
    "transaction.retry_locks",
    "transaction.root_keys",
    "transaction.schema_change",
    "transaction.sequences",
    "transaction.table_rows",
    "transaction.transaction",
)
"""The modules that other packages may import."""
