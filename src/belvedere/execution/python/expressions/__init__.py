"""Expressions as Python source text.

In reading order; an entry uses only those before it:

    comparison          keys whose `==`, `hash` and `<` agree with SQL's equality and order
    generated_function  builder of a generated function: source text, constants, temporaries
    outer_references    outer rows and CTEs that the result of a sub-query depends on
    subqueries          expressions over sets of values
    expression_source   translation of expressions to Python source text
"""
