"""The commit on a store that writes only single rows atomically (HBase), as steps without I/O.

Every function here that touches the store is a step: a generator that yields operations of
`kv.cell` and is sent their results. Nothing here does I/O, reads a clock or draws a number by
itself, so that HBase, the memory double, the simulation and the exhaustive explorer drive the same
code.

In reading order; an entry uses only those before it:

    cells/           how rows of tables and of the protocol are laid out in cells
    required_locks   the locks that a transaction requires, all as lock rows of one form
    node             the in-memory state of one node
    locks            lock rows: one form for every kind, taken, stamped, released and broken by
                     conditional writes
    log_rows         log rows: one row a position, filled once, with a record or with an abort
                     marker
    advance          advancing the decided and applied positions: done by any node that needs it,
                     for all of them
    read_rows        reads of rows as of a position, and of the newest rows under a lock
    commit           the commit of one transaction, step by step
    housekeeping/    what runs now and then: folding of sums, vacuum, finishing the work of dead
                     nodes
    reader           `Reader` and `Writer` over cells: tables by column, other rows in one cell,
                     sums as deltas
    catalog_barrier  the catalog barrier: no transaction of an older catalog commits after the
                     snapshot of a DDL
    group_commit     group commit of a node: several transactions take steps 2 to 5 together, one
                     trip a step
    commit_protocol  the commit protocol of a row-atomic store, as `txn/batch_atomic/commit.py` is
                     that of batch-atomic ones
    change_log       the change log of a row-atomic store: reading, consumers and trimming
    engine           the row-atomic engine: one stateless node on a store that makes single rows
                     atomic
"""
