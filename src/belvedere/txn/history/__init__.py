"""Past states of rows: undo index, readers at a position, undo by the log.

In reading order; an entry uses only those before it:

    derived_rows  rows that participants derive from the changes of a commit
    log_reads     reads of a change log, on either kind of store
    merge_scan    merge of a scan with an overlay of replaced keys
    undo_index    the undo index: before-images of recent batches, for snapshots
    readers       readers of a batch-atomic store: at a snapshot, newest, with an overlay
    past_reader   base tables at any position still in the log: newest rows, then undo
"""
