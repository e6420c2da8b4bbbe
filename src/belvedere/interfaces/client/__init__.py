"""What a program holds of the DB-API: connections and cursors, whichever process has the store.

In reading order; an entry uses only those before it:

    arguments         what a program gives to the doors, refused when it is of another type
    row_factories     row factories: what a fetched row is, by name
    named_parameters  named parameters: `:name` in a statement, values from a mapping
    subscriptions     subscriptions to a view, here or in the process that has the store open
    copy_data         COPY from and to a program, and insertion of Arrow tables
    cursor            a cursor: runs statements and holds the rows of the last one
    shaped_cursor     a cursor whose rows have another shape than tuples of the engine's values
    row_stream        rows of a query as they are computed
    connection        a connection: one session, here or in the process that has the store open
"""
