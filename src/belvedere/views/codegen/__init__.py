"""Generated functions for the hot paths of maintenance: one changed row, groups, sums.

In reading order; an entry uses only those before it:

    state_entry    generated code of the state entry of one row: its group, and the amounts that
                   it adds
    group_changes  state entries: the groups and amounts that inserted and deleted rows add to a
                   view's state
    group_sums     sums of changes by group: the inner loop of deferred maintenance and backfill
    lookup_chain   look-up chains: generated functions that compute a core's delta without a plan
    single_row     the single-row fast path of maintenance: a generated function from one changed
                   row to a view's state
"""
