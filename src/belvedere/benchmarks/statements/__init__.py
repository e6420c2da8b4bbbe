"""Each kind of statement at 1, 10 and 1,000 rows, alone and as the 100th of a transaction.

In reading order; an entry uses only those before it:

    kinds         the tables, and each kind of statement with its parameters
    peers         connections to Belvedere and sqlite3 that take the same statements
    shape         the bytecodes that a statement executes: what it costs, without a clock
    path_queries  queries over a large table that one good access path makes quick
    path_suite    their microseconds, beside sqlite3 and PostgreSQL
    suite         microseconds of each kind on both systems, in one run
"""
