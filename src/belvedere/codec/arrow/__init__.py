"""Rows and log records to Arrow and back.

In reading order; an entry uses only those before it:

    exact_kinds       kinds of values that go through Arrow unchanged
    rows_to_arrow     rows to Arrow and back, column by column, without a Python loop over rows
    arrow_to_rows     Arrow columns to encoded rows, for bulk loads
    arrow_to_state    Arrow columns to view state, for fills
    state_to_arrow    view state to Arrow columns, for queries and batches by columns
    records_to_arrow  log records to Arrow, one line a change, without a Python loop over changes
"""
