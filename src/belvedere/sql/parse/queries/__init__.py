"""The grammar of queries and expressions.

In reading order; an entry uses only those before it:

    types               parses type names, as PostgreSQL spells them
    with_clause         parses WITH: common table expressions of queries and of DML
    calls               parses function calls, special syntax, FILTER, OVER and WITHIN GROUP
    from_clause         parses FROM: tables, sub-queries, functions and joins
    primary_expression  parses primary expressions: names, constants, parentheses, CASE, calls
    expression          parses expressions, by precedence climbing with PostgreSQL's levels
    query               parses queries: SELECT, VALUES, set operations
"""
