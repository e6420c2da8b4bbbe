"""Workloads: statements with how often they run.

In reading order; an entry uses only those before it:

    statements      workloads as text: files, CSV, rows of belvedere.statements
    sql_names       names in SQL text
    join_block      the parts of a query that join rows, laid flat
    bound_workload  a workload bound to a catalog
"""
