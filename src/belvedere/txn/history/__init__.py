"""The past: what a row was before. Undo index, readers at a position, undo by log.

In reading order; an entry uses only those before it:

    derived_rows  the rows that participants derive from the changes of a commit, until they are
                  written
    log_reads     reading a change log, whichever store it is on
    merge_scan    merge of a scan with an overlay of replaced keys, as snapshots and transactions
                  need it
    undo_index    the undo index: before-images of recent batches, so that snapshots can read a
                  one-version store
    readers       readers of a batch-atomic store: at a snapshot, at the newest written state,
                  with an overlay
    past_reader   base tables as of any position still in the log: the newest rows, undone by the
                  log
"""
