"""Statements: DML, DDL, utility.

In reading order; an entry uses only those before it:

    assignments        binds SET clauses, of UPDATE and of ON CONFLICT DO UPDATE
    create_table_like  expands CREATE TABLE (LIKE other ..) to columns and constraints
    ddl                binds DDL: checks before the catalog changes, and queries of definitions
    on_conflict        binds ON CONFLICT: the arbiter index, and the action
    dml                binds INSERT, UPDATE and DELETE to plans, with the row rules of the table
    statement          binds any parsed statement to what the session executes
"""
