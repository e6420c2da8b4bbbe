"""Expressions as Python source text.

In reading order; an entry uses only those before it:

    comparison          values as keys: what Python's `==`, `hash` and `<` need to agree with
                        SQL's equality and order
    generated_function  builder of one generated Python function: source text, constants and
                        temporaries
    outer_references    outer rows and CTEs a sub-query plan depends on: how long its result can
                        be cached
    subqueries          expressions over sets of values
    expression_source   translation of expressions to Python source text: their only definition in
                        the Python tier
"""
