"""The registry of stores open in this process: connections to one path share one database.

Stores that the program leaves open are closed when the process ends.
"""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

from belvedere.config import Config, Durability
from belvedere.database import MEMORY, Database, open_sql_database
from belvedere.errors import InvalidInput, Unsupported
from belvedere.interfaces.owner_server import OwnerServer
from belvedere.session.context.shared_state import SharedState


@dataclass(slots=True)
class OpenStore:
    path: str
    database: Database
    shared: SharedState
    durability: Durability
    owner: OwnerServer | None
    process: int
    users: int = 0

    def close(self) -> None:
        if self.owner is not None:
            self.owner.close()
        self.database.close()


_mutex = threading.Lock()
_open_stores: dict[str, OpenStore] = {}
_memory_stores: WeakKeyDictionary[Database, int] = WeakKeyDictionary()
"""Stores in memory that are still referenced, and the id of the process that opened each."""


def acquire_store(
    url: str, durability: str, *, create: bool, accept_data_loss: bool, memory_limit_mb: int
) -> OpenStore:
    """Open the store, or share it if it is open already; pair with `release_store`."""
    wanted = _parse_durability(durability)
    if url.startswith("hbase://"):
        raise Unsupported("hbase:// stores", hint="use a directory or :memory:")
    if url == MEMORY:
        store = _open_store(
            url, Config(durability=wanted), create, accept_data_loss, memory_limit_mb
        )
        store.users = 1
        with _mutex:
            _memory_stores[store.database] = store.process
        return store
    path = str(Path(url).resolve())
    with _mutex:
        found = _open_stores.get(path)
        if found is None:
            config = Config(durability=wanted)
            found = _open_stores[path] = _open_store(
                path, config, create, accept_data_loss, memory_limit_mb
            )
        elif found.durability is not wanted:
            raise InvalidInput(
                "store is already open with another durability",
                sqlstate="55006",
                open=found.durability.value,
                wanted=durability,
            )
        found.users += 1
        return found


def release_store(store: OpenStore) -> None:
    """Drop one use of the store; the last one closes it."""
    with _mutex:
        store.users -= 1
        if store.users:
            return
        if _open_stores.get(store.path) is store:
            del _open_stores[store.path]
        _memory_stores.pop(store.database, None)
        store.close()


@atexit.register
def _close_all() -> None:
    """Close at the end of the process that opened each store, not of a fork of it."""
    with _mutex, ExitStack() as stack:
        for database, process in list(_memory_stores.items()):
            if process == os.getpid():
                stack.callback(database.close)
        for store in _open_stores.values():
            if store.process == os.getpid():
                stack.callback(store.close)
        _open_stores.clear()
        _memory_stores.clear()


def _open_store(
    path: str, config: Config, create: bool, accept_data_loss: bool, memory_limit_mb: int
) -> OpenStore:
    database, shared = open_sql_database(
        path,
        config,
        create=create,
        accept_data_loss=accept_data_loss,
        memory_limit_mb=memory_limit_mb,
    )
    owner = None if path == MEMORY else OwnerServer(database, shared, Path(path))
    return OpenStore(path, database, shared, config.durability, owner, os.getpid())


def _parse_durability(text: str) -> Durability:
    try:
        return Durability(text)
    except ValueError:
        raise InvalidInput(
            "unknown durability", sqlstate="22023", text=text, hint="'full' or 'off'"
        ) from None
