"""Text to a tree, by PostgreSQL's grammar.

In reading order; an entry uses only those before it:

    tree             syntax trees: queries and expressions as written, before any name is resolved
    lexical/         text to tokens, and tokens to text
    queries/         the grammar of queries and expressions
    statement_forms  parsed statements that contain a query or another statement
    normalize        one text for statements that differ only in their constants
    statements/      the grammar of statements: DML, DDL, utility
    script           splits a text into statements and dispatches each to its parsing rule
"""
