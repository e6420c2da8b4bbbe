"""Queries, clause by clause.

In reading order; an entry uses only those before it:

    grouping     GROUP BY, aggregates and HAVING: expressions moved from input rows to group rows
    joins        column names after a join: those of both sides, or merged by USING
    select_list  binds select lists and RETURNING: stars, and names as PostgreSQL gives them
    with_clause  binds WITH: common table expressions, recursive ones, and those that change data
    from_clause  binds FROM: tables, views, sub-queries, functions and joins to one relation
    select       binds SELECT, clause by clause in the order of evaluation
    query        binds queries: set operations, WITH, ORDER BY, LIMIT
"""
