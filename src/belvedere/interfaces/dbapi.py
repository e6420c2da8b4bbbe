"""The DB-API 2.0 module (PEP 249), for a store in this process.

    con = belvedere.connect("shop.db")
    cur = con.execute("SELECT * FROM t WHERE id = ?", (7,))
    cur.fetchall()

Parameters are `?` or `$1`. Threads may share a connection: its statements then run one after the
other. Without autocommit, which is PEP 249's default, the first statement begins a transaction.
"""

from __future__ import annotations

from belvedere import errors
from belvedere.interfaces import stores
from belvedere.interfaces.client.connection import Connection
from belvedere.interfaces.client.cursor import Cursor
from belvedere.interfaces.exceptions import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004
    translate_error,
)
from belvedere.interfaces.values import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

apilevel = "2.0"
threadsafety = 2
paramstyle = "qmark"


def connect(
    url: str,
    *,
    durability: str = "full",
    autocommit: bool = False,
    read_only: bool = False,
    allow_remote: bool = True,
    create: bool = True,
    accept_data_loss: bool = False,
    memory_limit_mb: int = 1024,
) -> Connection:
    """Connect to the store at `url`: a directory, or ':memory:'.

    The first process opens the store; a connection of another process goes through it, unless
    `allow_remote` is False: then it is refused (55006). With `read_only` the connection changes
    nothing, whatever its statements say.
    """
    try:
        options = stores.OpenOptions(
            durability=stores.parse_durability(durability),
            autocommit=autocommit,
            read_only=read_only,
            allow_remote=allow_remote,
            create=create,
            accept_data_loss=accept_data_loss,
            memory_limit_mb=memory_limit_mb,
        )
        return Connection(*stores.open_session(str(url), options))
    except errors.Error as error:
        raise translate_error(error) from error


__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
