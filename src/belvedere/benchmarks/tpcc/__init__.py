"""TPC-C through DB-API: schema, data, the five transactions and what must hold afterwards.

In reading order; an entry uses only those before it:

    schema        tables, indexes and the views that are maintained beside them
    generate      rows for one or more warehouses
    peers         connections to Belvedere, sqlite3 and PostgreSQL that take the same statements
    transactions  the five transactions of a terminal
    conditions    the twelve consistency conditions, as queries that give no row
    over_wire     a server of PostgreSQL's protocol beside PostgreSQL
    suite         transactions per second of each system, in one run
"""
