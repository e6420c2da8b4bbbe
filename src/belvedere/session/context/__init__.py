"""What a session has besides its statements: transaction, settings, notices, shared state.

In reading order; an entry uses only those before it:

    freshness             freshness of a read: 'any', 'session', 'latest', '250 ms', or a token of
                          another session
    notices               notices: messages of a session to its user other than results and
                          errors, as in PostgreSQL
    result                the result of a statement: its tag, fields and rows, or the number of
                          affected rows
    statement_statistics  statement statistics: how often each statement ran, for how long, with
                          how many rows
    table_statistics      table statistics for the optimizer: row counts and column summaries,
                          from samples
    settings              settings of a session
    shared_state          state shared by all sessions of an open store
    services              services of a session for running plans: sequences, row ids, system
                          tables, row locks
    transactions          the transaction state of a session: the open transaction, its failure,
                          its savepoints
"""
