"""What a program holds of the DB-API: connections and cursors, whichever process has the store.

In reading order; an entry uses only those before it:

    subscriptions  subscriptions to a view, here or in the process that has the store open
    cursor         a cursor: runs statements and holds the rows of the last one
    connection     a connection: one session, here or in the process that has the store open
"""
