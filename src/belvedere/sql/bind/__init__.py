"""A tree to a plan: names become relations and slots, every cast is written out.

In reading order; an entry uses only those before it:

    scope         name resolution: the scopes of a query, and the relations whose columns they
                  name
    binder        the state that all binding rules of one statement share
    expressions/  expressions, calls and casts
    queries/      queries, clause by clause
    statements/   statements: DML, DDL, utility
"""
