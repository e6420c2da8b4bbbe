"""Expressions, calls and casts.

In reading order; an entry uses only those before it:

    coerce              type coercion: casts, literals, types of parameters, resolution of calls
    row_values          row values outside of comparisons: `count(DISTINCT (a, b))`, `to_json(t)`,
                        fields of records, `t.tableoid`
    stored_expressions  expressions that the catalog stores as text: defaults, checks, index parts
    subqueries          binds queries inside expressions: scalar, EXISTS, IN, ANY, ALL, ARRAY
    windows             binds window functions
    outer_aggregates    aggregates of a sub-query that are of a query around it
    calls               binds function calls: scalar, aggregate, window, set-returning, special
    row_comparison      row comparisons, rewritten as comparisons of columns
    expression          binds expressions, one rule a kind of tree
"""
