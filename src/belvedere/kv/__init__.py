"""The two store contracts (batch-atomic bytes, row-atomic cells), their engines and test doubles.

In reading order; an entry uses only those before it:

    batch             the batch-atomic store contract: ordered bytes to bytes, any batch atomic
    cell              the row-atomic store contract: rows of columns with timestamped cells, one
                      row atomic, no more
    files             file operations of the stores: mapped OS errors, existence checks, durable
                      replacement
    rocksdb_settings  the RocksDB settings of a store, each with its reason
    rocksdb_errors    translation of the RocksDB binding's exceptions into this project's errors
    rocksdb_log       A check of RocksDB's write-ahead logs before RocksDB opens them
    rocksdb_scan      scans over a live RocksDB iterator, and the registry by which a closing
                      store releases them
    sorted_file       the sorted file of the memory store: what it ingests, and what its
                      checkpoints are made of
    memory            the batch store in memory: the reference twin of every other engine, and the
                      store of `:memory:`
    rocksdb           the batch store on RocksDB, through rocksdict in raw mode, with a single
                      column family
    doubles/          stores for tests: they fail, lose power, record, compare, and delay messages
    rocksdb_gather    A RocksDB store that buffers small writes, and hands them to the engine
                      together at a sync
"""

SURFACE = (
    "batch",
    "cell",
    "files",
    "memory",
    "rocksdb",
    "rocksdb_gather",
    "rocksdb_settings",
)
"""The modules that other packages may import."""
