"""State and services of a session: transaction, settings, notices, statistics.

In reading order; an entry uses only those before it:

    copy_streams          what COPY reads from and writes to the session's door
    freshness             freshness of a read: 'any', 'session', 'latest', '250 ms', or a token
    notifications         NOTIFY of one session for those that LISTEN
    notices               notices: messages to the user other than results and errors
    result                the result of a statement: tag, fields, rows or count of affected rows
    plan_cache            the plan cache: compiled statements by their text
    database_contract     the contract between sessions and the database
    statement_statistics  runs, times and row counts of each statement
    statement_file        statement statistics kept from one opening of a store to the next
    shared_samples        samples of tables as processes of one store share them
    table_statistics      row counts and column summaries for the optimizer, from samples
    settings              settings of a session
    activity              what sessions are doing, for those who watch
    shared_state          state shared by all sessions of an open store
    sequences_and_locks   services for running plans: sequences, row ids, system tables, row locks
    transactions          the transaction of a session: its failure, its savepoints
"""
