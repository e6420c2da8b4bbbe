"""TPC-W: schema, data, statements and mixes, and what the advisor's views do for them.

In reading order; an entry uses only those before it:

    schema      tables, indexes, the totals of carts and orders as views
    generate    rows for any number of customers
    statements  the joins and writes of the Synergy paper, and those it leaves out
    mixes       web interactions, and how often each statement runs
    systems     databases with different views and locks, and PostgreSQL
    timing      times of the statements on several systems, which take turns
    join_scans  scans of joins, by the join and by a view of it
    suite       response time of every statement, in one run
"""
