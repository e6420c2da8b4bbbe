"""The doors: DB-API, shell, command line, and the socket for other processes.

In reading order; an entry uses only those before it:

    arrow         conversion of result rows to Arrow tables
    cli           the command line `belvedere`: a table of commands, each imported when it is
                  called
    exceptions    PEP 249's exceptions, each with `sqlstate`, `position`, `detail` and `hint`
    values        Python values of the DB-API
    verbs/        what another process may ask of an open store: a verb a request
    owner_server  A server for other processes of the same user, on a Unix socket in an open
                  store's directory
    remote        A connection to a store that another process has open, for the shell
    stores        the registry of stores open in this process: connections to one path share one
                  database
    dbapi         the DB-API 2.0 module (PEP 249), for a store in this process
    shell/        the SQL shell
    commands/     the commands of `belvedere`
"""

SURFACE = (
    "cli",
    "dbapi",
    "exceptions",
)
"""The modules that other packages may import."""
