"""The grammar of queries and expressions.

In reading order; an entry uses only those before it:

    types               parses type names, as PostgreSQL spells them
    with_clause         parses WITH: common table expressions, of queries and of statements that
                        change data
    calls               parses function calls, those with special syntax, and their FILTER, OVER
                        and WITHIN GROUP
    from_clause         parses FROM: tables, sub-queries, functions and joins
    primary_expression  parses the atoms of expressions: names, constants, parentheses, CASE, and
                        calls
    expression          expressions, by precedence climbing with PostgreSQL's levels (low to
                        high):
    query               parses queries
"""
