"""Transactions on a store that writes single rows atomically (HBase), as steps.

Every function here that touches the store is a step: a generator that yields operations of
`kv.cell` and is sent their results. Nothing here does I/O, reads a clock or draws a number by
itself, so that HBase, the memory double, the simulation and the exhaustive explorer drive the same
code.

In reading order; an entry uses only those before it:

    cells/           how rows of tables and of the protocol are laid out in cells
    isolation        which isolation levels a row-atomic store has
    node             the in-memory state of one node, and the settings that all agree on
    locks            lock rows: taken, stamped, released and broken by conditional writes
    log/             the log, and the positions up to which it is decided and applied
    read_rows        reads of rows as of a position, and of the newest rows under a lock
    load_holds       holds on tables: how a bulk load keeps others out without a lock a row
    commit           the commit of one transaction, step by step
    housekeeping/    periodic work: folding of sums, vacuum, finishing the work of dead nodes
    reader           `Reader` and `Writer` over cells
    required_locks   the locks that a transaction requires, and what it asks of its commit
    catalog_barrier  the catalog barrier: after DDL no commit under an older catalog succeeds
    bulk_commit      the commit of a transaction of many rows: one lock, and a hold on its tables
    group_commit     group commit of a node: several transactions take a step together
    commit_protocol  the commit protocol that a transaction of this store uses
    change_log       the change log of a row-atomic store: reading, consumers and trimming
    node_lists       nodes and locks as lists, for the system tables
    engine           the engine: one stateless node on a row-atomic store
    hbase_setup      HBase as the store of a node: tables, their regions, timings
"""
