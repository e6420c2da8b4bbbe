"""The doors: DB-API, SQLAlchemy, shell, command line, and the socket for other processes.

In reading order; an entry uses only those before it:

    advice        the advisor on an open store
    exceptions    PEP 249's exceptions, each with `sqlstate`, `position`, `detail` and `hint`
    values        Python values of the DB-API
    arrow         conversion of result rows to Arrow tables, and of a program's data to them
    cli           the command line `belvedere`: a table of commands, each imported when called
    verbs/        what another process may request of an open store: one verb a request
    owner_server  a server on a Unix socket in the store's directory, for the user's processes
    remote        a session in the process that has the store open
    stores        the stores open in this process, or reached through the process that has them
    node_verbs    the verbs run in the asking process, on a node of a database on HBase
    client/       what a program holds: connections, cursors, subscriptions
    dbapi         the DB-API 2.0 module (PEP 249)
    aio/          the asynchronous door: connections whose calls are awaited
    sqlalchemy/   SQLAlchemy's dialect of an embedded store, and views as its constructs
    shell/        the SQL shell
    server/       PostgreSQL's wire protocol, for its clients
    commands/     the commands of `belvedere`
"""

SURFACE = (
    "advice",
    "aio.connection",
    "aio.cursor",
    "aio.iterators",
    "cli",
    "dbapi",
    "exceptions",
    "sqlalchemy.dialect",
    "sqlalchemy.materialized_views",
)
"""The modules that other packages may import."""
