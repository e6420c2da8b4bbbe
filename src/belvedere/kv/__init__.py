"""The two store contracts (batch-atomic bytes, row-atomic cells), their engines and test doubles.

In reading order; an entry uses only those before it:

    batch             the batch-atomic store contract: ordered bytes to bytes, any batch atomic
    cell_filter       filters of scans: which rows a row-atomic store leaves out
    cell              the row-atomic store contract: rows of timestamped cells, one row atomic
    packed_rows       rows of cells in one buffer, of which columns are taken without making cells
    cell_checks       checks of requests before a row-atomic store sees them
    files             file operations: mapped OS errors, existence checks, durable replacement
    rocksdb_settings  the RocksDB settings of a store, each with its reason
    rocksdb_errors    translation of the RocksDB binding's exceptions into this project's errors
    rocksdb_log       a check of RocksDB's write-ahead logs before RocksDB opens them
    rocksdb_scan      scans over a live RocksDB iterator, and their release when a store closes
    sorted_file       the sorted file of the memory store, for ingestion and checkpoints
    memory            the batch store in memory: the reference of every engine, and `:memory:`
    rocksdb           the batch store on RocksDB, through rocksdict in raw mode
    doubles/          stores for tests: they fail, lose power, record, compare, and delay messages
    hbase/            the row-atomic store on HBase, through Thrift2 gateways
    rocksdb_gather    a RocksDB store that buffers small writes until a sync
"""

SURFACE = (
    "batch",
    "cell",
    "cell_filter",
    "doubles.cells_network",
    "doubles.counter",
    "files",
    "hbase.connections",
    "hbase.exchange",
    "hbase.requests",
    "hbase.store",
    "hbase.table_scan",
    "hbase.tables",
    "hbase.url",
    "memory",
    "packed_rows",
    "rocksdb",
    "rocksdb_gather",
    "rocksdb_settings",
)
"""The modules that other packages may import."""
