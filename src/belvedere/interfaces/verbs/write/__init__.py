"""Verbs that stage rows and write them in one transaction.

In reading order; an entry uses only those before it:

    staged_writer  writer of staged rows to a table, in one transaction: append, upsert or delete
    staging        staging files: rows that tasks upload before their job commits
    write_verbs    verbs that write: stage rows, write all parts of a job at once, end the job
"""
