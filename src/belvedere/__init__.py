"""SQL, transactions and always-fresh materialized views on a key-value store.

    import belvedere
    con = belvedere.connect("shop.db")

The names here are PEP 249's, with row factories and `Config`. They are loaded when first used, so
that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from belvedere.interfaces.dbapi import (
        BINARY,
        DATETIME,
        NUMBER,
        ROWID,
        STRING,
        Binary,
        Config,
        Connection,
        Cursor,
        DatabaseError,
        DataError,
        Date,
        DateFromTicks,
        Error,
        IntegrityError,
        InterfaceError,
        InternalError,
        NotSupportedError,
        OperationalError,
        ProgrammingError,
        Time,
        TimeFromTicks,
        Timestamp,
        TimestampFromTicks,
        Warning,  # noqa: A004
        class_row,
        connect,
        dict_row,
        namedtuple_row,
        tuple_row,
    )

apilevel = "2.0"
threadsafety = 2
paramstyle = "qmark"

__version__ = "0.1.0"

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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'belvedere' has no attribute {name!r}")
    value = getattr(importlib.import_module("belvedere.interfaces.dbapi"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
