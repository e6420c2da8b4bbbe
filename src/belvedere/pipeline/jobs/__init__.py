"""The jobs: load, export, backfill, maintain, verify, explain, status.

In reading order; an entry uses only those before it:

    export        export job: a table, a view or a query's rows at one position, to files
    load          load job: files into a table, in one transaction
    maintain      maintain job: advances deferred views along the log
    store_status  status of a store: position of the log, of its views and of stream writers
    verify_rows   task functions of a verification: rows as canonical text
    verify        verify job: recomputes views in Spark and compares them with their state
    backfill      backfill job: computes many new views with one scan of each base table
    explain       explain job: how backfill, maintain and verify of a view would run
"""
