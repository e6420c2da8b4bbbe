"""Statements that change many rows, compared with sqlite3, PostgreSQL and DuckDB.

In reading order; an entry uses only those before it:

    peers  connections that take the same statements, and the CPU time they spend
    tasks  the tables, and each bulk statement with what it needs before
    suite  microseconds of CPU for each row, on every system, in one run
"""
