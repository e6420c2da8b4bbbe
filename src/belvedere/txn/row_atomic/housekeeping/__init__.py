"""What runs now and then: folding of sums, vacuum, finishing the work of dead nodes.

In reading order; an entry uses only those before it:

    fold    folding delta cells: one cell that says the sum of all of them up to a position
    sweep   the sweep: finishes what dead processes began, before other nodes have to wait for it
    vacuum  vacuum: removal of old versions, old log records and old outcomes below announced
            floors
"""
