"""Generated functions for hot paths of maintenance: one row, groups, sums.

In reading order; an entry uses only those before it:

    state_entry   the state entry of one row: its group, and the amounts that it adds
    row_entries   groups and amounts that inserted and deleted rows add to a view's state
    group_sums    sums of changes by group: the inner loop of deferred maintenance and backfill
    lookup_chain  look-up chains: the delta of a linear core without a plan
    single_row    the single-row fast path: from one changed row to a view's state
"""
