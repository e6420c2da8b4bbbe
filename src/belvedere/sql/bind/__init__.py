"""A tree to a plan: names to relations and slots, every cast explicit.

In reading order; an entry uses only those before it:

    column_origins   which column of which table each column of a result is
    required_rights  what a statement needs rights on
    scope         name resolution: the scopes of a query and the relations in them
    binder        the state that all binding rules of one statement share
    expressions/  expressions, calls and casts
    queries/      queries, clause by clause
    statements/   statements: DML, DDL, utility
"""
