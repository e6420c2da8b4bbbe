"""`belvedere:///shop.db`: SQLAlchemy's PostgreSQL dialect over an embedded connection.

The dialect is called postgresql, as over the wire: what a program says for PostgreSQL
(`postgresql_where`, variants of types, its `insert` with ON CONFLICT) holds for both doors, and
tables are reflected from the same system catalogs. What differs is the driver, which is this
process: there is no server, no password, and `belvedere:///:memory:` is a database of its engine.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from sqlalchemy import pool, util
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import IsolationLevel
from sqlalchemy.exc import ArgumentError

from belvedere.interfaces import dbapi
from belvedere.interfaces.sqlalchemy.column_types import COLUMN_TYPES

_MEMORY = ":memory:"
_engine_numbers = itertools.count(1)
_TRUTHS = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}


def _read_truth(text: str) -> bool:
    if text.lower() not in _TRUTHS:
        raise ArgumentError(f"not a truth value: {text!r}")
    return _TRUTHS[text.lower()]


OPTIONS: dict[str, Callable[[str], Any]] = {
    "durability": str,
    "read_only": _read_truth,
    "allow_remote": _read_truth,
    "create": _read_truth,
    "accept_data_loss": _read_truth,
    "memory_limit_mb": int,
}
"""Options of `belvedere.connect` that a URL may have, and how their text is read."""


class BelvedereDialect(PGDialect):
    """SQLAlchemy's dialect of an embedded store."""

    driver = "belvedere"
    default_paramstyle = "numeric_dollar"
    supports_statement_cache = True
    supports_native_decimal = True
    # A type of its own would have to be created; names of an Enum are text with a check.
    supports_native_enum = False
    supports_sane_multi_rowcount = True
    supports_server_side_cursors = False
    colspecs = util.update_copy(PGDialect.colspecs, COLUMN_TYPES)

    def __init__(self, paramstyle: str | None = None, **more: Any) -> None:
        super().__init__(  # type: ignore[no-untyped-call]
            paramstyle=paramstyle or self.default_paramstyle, **more
        )

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        return dbapi

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        return pool.QueuePool

    def create_connect_args(self, url: URL) -> tuple[Sequence[str], dict[str, Any]]:
        """Arguments of `belvedere.connect`. A database in memory is shared by the connections of
        its engine, until the last of them is closed."""
        if url.host or url.username or url.password or url.port:
            raise ArgumentError("a store has no host and no user: belvedere:///path/to/store")
        path = url.database or _MEMORY
        if path == _MEMORY:
            path = f"{_MEMORY}sqlalchemy-{os.getpid()}-{next(_engine_numbers)}"
        return (path,), {name: _read_option(name, text) for name, text in url.query.items()}

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        return isinstance(e, dbapi.Error) and e.sqlstate.startswith("08")

    def get_isolation_level_values(self, dbapi_connection: Any) -> Sequence[IsolationLevel]:
        return (
            "AUTOCOMMIT",
            "READ COMMITTED",
            "READ UNCOMMITTED",
            "REPEATABLE READ",
            "SERIALIZABLE",
        )

    def set_isolation_level(self, dbapi_connection: Any, level: str) -> None:
        dbapi_connection.autocommit = level == "AUTOCOMMIT"
        if level != "AUTOCOMMIT":
            _set_characteristic(dbapi_connection, f"ISOLATION LEVEL {level}")

    def detect_autocommit_setting(self, dbapi_conn: Any) -> bool:
        return bool(dbapi_conn.autocommit)

    def set_readonly(self, connection: Any, value: bool) -> None:
        _set_characteristic(connection, "READ ONLY" if value else "READ WRITE")

    def get_readonly(self, connection: Any) -> bool:
        shown = connection.execute("SHOW default_transaction_read_only").fetchone()
        return bool(shown[0] == "on")


def _set_characteristic(connection: dbapi.Connection, text: str) -> None:
    connection.execute(f"SET SESSION CHARACTERISTICS AS TRANSACTION {text}")
    connection.commit()


def _read_option(name: str, text: str | tuple[str, ...]) -> Any:
    if name not in OPTIONS:
        raise ArgumentError(f"unknown option of a store: {name!r}; known are {', '.join(OPTIONS)}")
    if not isinstance(text, str):
        raise ArgumentError(f"option {name!r} is given twice")
    return OPTIONS[name](text)
