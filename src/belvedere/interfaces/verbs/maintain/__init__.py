"""Verbs that maintain, backfill and verify views from another process.

In reading order; an entry uses only those before it:

    pairs              the form of keys and values of stored state
    backfill           verbs for a process that backfills views from outside
    maintenance_verbs  verbs for a process that maintains or verifies views from outside
"""
