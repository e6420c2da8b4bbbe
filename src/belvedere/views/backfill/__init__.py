"""Backfill of views and indexes: plans, steps, drivers.

In reading order; an entry uses only those before it:

    backfill_plan          the backfill of one view: its plan, and the sums not yet written
    create_auxiliary       the auxiliary views of a new view: existing ones and new ones
    index_backfill         the backfill of a table's index, while writers continue
    backfill_views         the backfill of several views in one scan, in resumable steps
    column_backfill        the backfill of a view by columns: by DuckDB, as sorted entries
    contracts              what views require of their database and of its kind of store
    index_files            the backfill of a large index by columns, as sorted files
    external_backfill      backfills by another process: views WITH (backfill = 'later')
    external_cells         the same on a row-atomic store, by tasks that write cells
    batch_atomic_backfill  backfills on a batch-atomic store: views by position
    driver                 the driver of backfills: brings new indexes and views to READY
    row_atomic_backfill    backfills on a row-atomic store
"""
