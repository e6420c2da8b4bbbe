"""Statements: DML, DDL, utility.

In reading order; an entry uses only those before it:

    assignments        binds SET clauses, of UPDATE and of ON CONFLICT DO UPDATE
    create_table_like  expands CREATE TABLE (LIKE other ..) to the columns and constraints of the
                       other table
    ddl                DDL: what can be checked before the catalog is asked, and the queries of
                       views and CREATE AS
    on_conflict        binds ON CONFLICT: which unique index arbitrates, and what happens to the
                       existing row
    dml                binds INSERT, UPDATE and DELETE to plans, together with the row rules of
                       the table
    statement          binds any parsed statement to what the session executes
"""
