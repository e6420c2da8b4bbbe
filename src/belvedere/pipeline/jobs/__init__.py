"""The jobs: load, export, backfill, maintain, verify, explain, status.

In reading order; an entry uses only those before it:

    export       export job: writes a table, a view or the rows of a query, at one position, to
                 files of any format that Spark knows
    load         load job: files into a table, as one transaction
    maintain     maintain job
    status       status of a store for the pipeline: position of the log, of its views and of
                 stream writers
    verify_rows  task functions of a verification: rows as canonical text, the same for rows that
                 are equal
    verify       verify job: recompute views in Spark and compare them, row for row, with the
                 stored state
    backfill     backfill job: the first fill of many views together, with one scan of each base
                 table
    explain      explain job: how backfill, maintain and verify of a view would run, operator by
                 operator
"""
