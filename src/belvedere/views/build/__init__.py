"""The first fill of views and indexes: backfill, its steps, its driver.

In reading order; an entry uses only those before it:

    backfill_plan          the backfill of one view: its plan, and the sums since the last step
                           was written
    create_auxiliary       the auxiliary views of a new view: existing ones that serve it, and new
                           ones to create
    index                  the backfill of an index of a table, while writers continue
    backfill               the backfill of views: while writers continue, several views in one
                           scan, in resumable steps
    contracts              what views need of the database that owns them, and of the kind of
                           store they are filled on
    batch_atomic_backfill  backfills on a batch-atomic store: which views are filled together, and
                           from which position
    driver                 the driver of backfills: it brings indexes and views that were made to
                           READY, or drops them
    external_backfill      backfills that another process makes: views WITH (backfill = 'later')
    row_atomic_backfill    backfills on a row-atomic store
"""
