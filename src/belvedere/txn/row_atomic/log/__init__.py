"""The log of a row-atomic store, and the positions up to which it is decided and applied.

In reading order; an entry uses only those before it:

    record_parts   large records in parts, rows of their own
    log_rows       log rows: one row a position, written once: a record or an abort marker
    advance        advancing the decided and applied positions, by any node, for all nodes
    shared_reach   threads of a node that wait for positions wait for them together
"""
