"""The DB-API 2.0 module (PEP 249), for a store in this process.

    con = belvedere.connect("shop.db")
    cur = con.execute("SELECT * FROM t WHERE id = ?", (7,))
    cur.fetchall()

Parameters are `?` or `$1`. Threads may share a connection: its statements then run one after the
other. Without autocommit, which is PEP 249's default, the first statement begins a transaction.
"""

from __future__ import annotations

from belvedere import errors
from belvedere.config import Config
from belvedere.interfaces import stores
from belvedere.interfaces.client.connection import Connection
from belvedere.interfaces.client.cursor import Cursor
from belvedere.interfaces.client.row_factories import (
    RowFactory,
    class_row,
    dict_row,
    namedtuple_row,
    tuple_row,
)
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
    memory_limit_mb: int | None = None,
    config: Config | None = None,
    row_factory: RowFactory | None = None,
    json_values: bool = False,
) -> Connection:
    """Connect to the store at `url`: a directory, ':memory:' (one of its own), or ':memory:name'
    (one that all connections of this process with this name share, until the last is closed).

    The first process opens the store; a connection of another process goes through it, unless
    `allow_remote` is False: then it is refused (55006). With `read_only` the connection changes
    nothing, whatever its statements say. `config` has the rarer settings of the store; its
    durability is that of the argument. A store that is open keeps its `durability`,
    `memory_limit_mb` and `config`: others are refused by name (55006), in another process too.
    `row_factory` and `json_values` can be changed later, at the connection.
    """
    try:
        options = stores.OpenOptions(
            durability=stores.parse_durability(durability),
            autocommit=autocommit,
            read_only=read_only,
            allow_remote=allow_remote,
            create=create,
            accept_data_loss=accept_data_loss,
            memory_limit_mb=None
            if memory_limit_mb is None
            else stores.check_memory_limit(memory_limit_mb),
            config=None if config is None else stores.check_config(config),
        )
        connection = Connection(*stores.open_session(stores.parse_address(url), options))
    except errors.Error as error:
        raise translate_error(error) from None
    connection.row_factory = row_factory
    connection.json_values = json_values
    return connection


__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Config",
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
    "class_row",
    "connect",
    "dict_row",
    "namedtuple_row",
    "paramstyle",
    "threadsafety",
    "tuple_row",
]
