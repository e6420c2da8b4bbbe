"""The commit on a store that writes any batch atomically (memory, RocksDB), and its directory.

In reading order; an entry uses only those before it:

    anchor      the anchor: a small file, apart from the log, that records the last durable
                position
    directory   the store directory: its files, its identity file, and the lock of the process
                that has it open
    log_chunks  chunks of log records that are too large for one value: splitting, assembling,
                deleting
    visibility  the published state, the open snapshots, and the writing of batches that snapshots
                must not see
    change_log  the change log of a batch-atomic store: every commit, in one order, with old and
                new rows
    group_sync  group commit: one sync of the log for all clients that wrote before it began
    recovery    opening and recovery of a store directory, with a check that no acknowledged
                commit is lost
    commit      the batch-atomic commit: one short section, in position order, one batch per
                transaction
    replay      replay of log records into a store, forward (replay) and backward (rewind)
    single_row  the single-row fast path: one row replaced or inserted by its key, in a
                transaction of its own
    backup      backup and restore
    engine      the batch-atomic engine: an open store with undo index, log, commit section and
                anchor
"""
