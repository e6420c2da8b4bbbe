"""Periodic work: folding of sums, vacuum, finishing the work of dead nodes, samples of tables.

In reading order; an entry uses only those before it:

    fold           folding of delta cells into one cell with their sum up to a position
    sweep          the sweep: finishes what dead processes began
    vacuum         vacuum: removal of old versions, log records and outcomes below announced floors
    table_samples  samples of tables, which processes share
"""
