"""One statement's life: text, plan, transaction, rows. A session does not know its door.

In reading order; an entry uses only those before it:

    context/        state and services of a session: transaction, settings, notices, statistics
    rights/         who a session is, and what that role may do
    notify          LISTEN, UNLISTEN and NOTIFY
    system_tables/  read-only system tables: information_schema and the schema `belvedere`
    statement/      one data statement: binding, compilation, parameters, single-row fast path
    materialized/   statements about materialized views: create, replace, verify, subscribe ..
    ddl/            DDL: definition statements as changes of the catalog
    explain/        EXPLAIN of statements and of views
    query_stream    the plan of a statement is run: at once, or as its rows are fetched
    copy/           COPY: files to rows and rows to files
    cursors         cursors of SQL: DECLARE, FETCH, MOVE and CLOSE
    dispatch        dispatch of utility statements; every other one is DDL
    session         a session: runs SQL text, in transactions, for one connection
    prepared_text   a statement that a client prepares, describes and runs
    simple_query    a text of several statements as one transaction
"""

SURFACE = (
    "context.copy_streams",
    "context.notices",
    "context.result",
    "context.shared_state",
    "context.statement_file",
    "copy.arrow_input",
    "copy.spool",
    "materialized.change_stream",
    "materialized.create",
    "materialized.replace",
    "materialized.subscription",
    "materialized.table_index_views",
    "materialized.table_subscription",
    "prepared_text",
    "query_stream",
    "rights.denials",
    "rights.identity",
    "session",
    "simple_query",
    "statement.bind",
    "statement.catalog_expressions",
    "statement.parameters",
    "statement.python_types",
)
"""The modules that other packages may import."""
