"""One statement's life: text, plan, transaction, rows. A session does not know its door.

In reading order; an entry uses only those before it:

    context/        what a session has besides its statements: transaction, settings, notices,
                    shared state
    system_tables/  the tables that exist only to be read: information_schema and the schema
                    belvedere
    statement/      one data statement: bound, compiled, given parameters, run on the fast path
                    where it can be
    copy/           COPY: files to rows and rows to files
    materialized/   statements about materialized views: create, replace, index, verify,
                    subscribe, freshness
    ddl/            DDL: definition statements as changes of the catalog
    explain/        EXPLAIN of statements and of views
    dispatch        dispatch of utility statements: transactions, settings, prepared statements,
                    EXPLAIN, COPY; every other one is DDL
    session         A session: runs SQL text, in transactions, for one connection
"""

SURFACE = (
    "context.notices",
    "context.result",
    "context.shared_state",
    "materialized.create",
    "materialized.index_views",
    "materialized.replace",
    "materialized.subscription",
    "session",
    "statement.bind",
    "statement.catalog_expressions",
    "statement.parameters",
)
"""The modules that other packages may import."""
