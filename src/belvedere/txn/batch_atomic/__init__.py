"""Transactions on a store that writes any batch atomically (memory, RocksDB).

In reading order; an entry uses only those before it:

    anchor      the anchor: a small file that records the last durable position
    directory   the store directory: its files, its identity file, and the lock of its owner
    log_chunks  log records too large for one value: splitting, assembling, deleting
    visibility  the published state, the open snapshots, and writes hidden from snapshots
    change_log  the change log: every commit, in one order, with old and new rows
    interpreter_handover  shorter turns of the interpreter while commits wait
    group_sync  group commit: one sync of the log for all clients that wrote before it began
    recovery    opening and recovery of a store directory, with a check for lost commits
    created_objects  objects that a commit creates: indexes and views are filled by that commit
    participant_plan  participants of commits that change some tables, and what each is shown
    commit      the commit: one short section, in position order, one batch a transaction
    replay      replay of log records into a store, forward (replay) and backward (rewind)
    single_row  the single-row fast path: one row replaced or inserted by its key
    draft_directory  a directory in the making, marked as unfinished until it is whole
    backup      backup and restore
    engine      the engine: an open store with undo index, log, commit section and anchor
"""
