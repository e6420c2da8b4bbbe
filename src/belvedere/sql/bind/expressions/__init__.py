"""Expressions, calls and casts.

In reading order; an entry uses only those before it:

    coerce              type coercion: inserts casts, reads literals, infers parameter types,
                        resolves calls
    row_values          row values outside of comparisons: `count(DISTINCT (a, b))`, `to_json(t)`
    stored_expressions  expressions that the catalog stores as text: defaults, checks, generated
                        columns, index parts
    subqueries          binds queries inside expressions: scalar, EXISTS, IN, ANY, ALL, ARRAY
    windows             binds window functions
    calls               binds function calls: scalar ones, aggregates, windows, sets, and special
                        ones
    row_comparison      row comparisons, spelled out as comparisons of columns
    expression          binds expressions, one rule per kind of tree; calls, sub-queries and rows
                        are other modules
"""
