"""The registry of stores open in this process: connections to one path share one database. A store
that another process has open is reached through that process.

Stores that the program leaves open are closed when the process ends. What happens to stores is
logged as `belvedere.store`; a program that wants to see it sets up `logging`.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from belvedere.config import Config, Durability
from belvedere.database import MEMORY, Database, open_sql_database
from belvedere.errors import InvalidInput, Unavailable, Unsupported
from belvedere.interfaces.owner_server import OwnerServer
from belvedere.kv.hbase.url import is_hbase_url
from belvedere.remote.client import is_reachable
from belvedere.session.context.shared_state import SharedState
from belvedere.session.context.statement_file import StatementFile
from belvedere.session.session import Session

logging.getLogger("belvedere").addHandler(logging.NullHandler())
_LOG = logging.getLogger("belvedere.store")

MEMORY_LIMIT_MB = 1024
OWNER_WAIT_S = 30.0
"""How long a process that has locked the store may take until it accepts connections."""
_POLL_S = 0.02
_IN_USE = "55006"


@dataclass(slots=True)
class OpenStore:
    path: str
    database: Database
    shared: SharedState
    durability: Durability
    owner: OwnerServer | None
    statements: StatementFile | None = None
    users: int = 0

    def close(self) -> None:
        try:
            if self.owner is not None:
                self.owner.close()
            if self.statements is not None:
                self.statements.save()
        finally:
            self.database.close()
        _LOG.info("closed %s", self.path)


if TYPE_CHECKING:
    from belvedere.interfaces.remote import RemoteSession

_mutex = threading.Lock()
_open_stores: dict[str, OpenStore] = {}
_memory_stores: WeakSet[Database] = WeakSet()
"""Stores in memory that are still referenced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenOptions:
    """How a store is opened, and the session on it."""

    durability: Durability | None = Durability.FULL
    """None: as the process that has it open chose, or full."""
    autocommit: bool = False
    read_only: bool = False
    allow_remote: bool = True
    create: bool = True
    accept_data_loss: bool = False
    memory_limit_mb: int | None = None
    """None: as the store was opened with, or MEMORY_LIMIT_MB."""
    config: Config | None = None
    """None: as the store was opened with, or the defaults. Its durability is the one above."""


def open_session(
    url: str, options: OpenOptions
) -> tuple[Session | RemoteSession, Callable[[], None]]:
    """A session on the store, here or in the process that has it open; and what releases the store
    when the session is closed."""
    if is_hbase_url(url):
        return _open_local_session(acquire_store(url, options), options)
    scheme, separator, _ = url.partition("://")
    if separator:
        raise Unsupported(
            f"{scheme}:// is not supported", hint="use a directory, :memory: or hbase://"
        )
    if url == MEMORY:
        return _open_local_session(_acquire_memory_store(options), options)
    if url.startswith(MEMORY):
        return _open_local_session(acquire_store(url, options), options)
    path = Path(url).resolve()
    deadline = time.monotonic() + OWNER_WAIT_S
    while True:
        if options.allow_remote and str(path) not in _open_stores and is_reachable(path):
            session = _open_remote_session(path, options)
            if session is not None:
                return session, lambda: None
        try:
            return _open_local_session(acquire_store(str(path), options), options)
        except Unavailable as error:
            here = error.facts.get("pid") == str(os.getpid())
            late = time.monotonic() > deadline
            if error.sqlstate != _IN_USE or here or late or not options.allow_remote:
                raise
            time.sleep(_POLL_S)


def _open_local_session(
    store: OpenStore, options: OpenOptions
) -> tuple[Session, Callable[[], None]]:
    session = Session(store.shared, autocommit=options.autocommit, read_only=options.read_only)
    return session, lambda: release_store(store)


def _open_remote_session(path: Path, options: OpenOptions) -> RemoteSession | None:
    """None when the owner has gone in this moment."""
    from belvedere.interfaces.remote import RemoteSession  # heavy

    try:
        session = RemoteSession(path, autocommit=options.autocommit, read_only=options.read_only)
    except Unavailable as error:
        if error.sqlstate.startswith("08"):
            return None
        raise
    try:
        _require_same_settings(options, session.store_settings)
    except InvalidInput:
        session.close()
        raise
    _LOG.info("connected to %s through process %d", path, session.owner_pid)
    return session


def _acquire_memory_store(options: OpenOptions) -> OpenStore:
    store = _open_store(MEMORY, options)
    store.users = 1
    with _mutex:
        _memory_stores.add(store.database)
    return store


def acquire_store(path: str, options: OpenOptions) -> OpenStore:
    """Open the store, or share it if it is open already; pair with `release_store`."""
    with _mutex:
        found = _open_stores.get(path)
        if found is None:
            found = _open_stores[path] = _open_store(path, options)
        else:
            _require_same_settings(options, found.shared.describe_store_settings())
        found.users += 1
        return found


def find_open_store(path: str) -> OpenStore | None:
    """The store, if this process has it open."""
    with _mutex:
        return _open_stores.get(path)


def _require_same_settings(options: OpenOptions, opened: Mapping[str, Any]) -> None:
    """55006 for an option of the whole store that is another one than it was opened with."""
    wanted = {} if options.config is None else asdict(options.config)
    wanted |= {"durability": options.durability, "memory_limit_mb": options.memory_limit_mb}
    for name, value in wanted.items():
        if value is not None and value != opened[name]:
            raise InvalidInput(
                f"store is already open with another {name}",
                sqlstate=_IN_USE,
                hint="leave it out, or close the other connections first",
                open=opened[name],
                wanted=value,
            )


def release_store(store: OpenStore) -> None:
    """Drop one use of the store; the last one closes it."""
    with _mutex:
        store.users -= 1
        if store.users:
            return
        if _open_stores.get(store.path) is store:
            del _open_stores[store.path]
        _memory_stores.discard(store.database)
        store.close()


def _forget_inherited() -> None:
    """In a forked child: what its parent has open is not open here."""
    global _mutex  # noqa: PLW0603 (a thread that the child lacks may hold it)
    _mutex = threading.Lock()
    _open_stores.clear()
    _memory_stores.clear()


os.register_at_fork(after_in_child=_forget_inherited)


@atexit.register
def _close_all() -> None:
    with _mutex, ExitStack() as stack:
        for database in list(_memory_stores):
            stack.callback(database.close)
        for store in _open_stores.values():
            stack.callback(store.close)
        _open_stores.clear()
        _memory_stores.clear()


def _open_store(path: str, options: OpenOptions) -> OpenStore:
    config = replace(options.config or Config(), durability=options.durability or Durability.FULL)
    in_memory, on_hbase = path.startswith(MEMORY), is_hbase_url(path)
    if on_hbase and config.durability is not Durability.FULL:
        raise Unsupported("durability 'off' on HBase", hint="leave durability at 'full'")
    database, shared = open_sql_database(
        MEMORY if in_memory else path,
        config,
        create=options.create,
        accept_data_loss=options.accept_data_loss,
        memory_limit_mb=options.memory_limit_mb or MEMORY_LIMIT_MB,
    )
    owned = not in_memory and not on_hbase
    owner = OwnerServer(database, shared, Path(path)) if owned else None
    statements = StatementFile(Path(path), shared.statistics) if owned else None
    if statements is not None:
        statements.load()
    _LOG.info("opened %s at position %d", path, database.position)
    return OpenStore(path, database, shared, config.durability, owner, statements)


def is_new_directory(url: str) -> bool:
    """Whether the address is a directory in which nothing is yet: connecting makes a store."""
    if url.startswith(MEMORY) or "://" in url:
        return False
    path = Path(url)
    return not path.exists() or (path.is_dir() and not any(path.iterdir()))


def parse_address(url: object) -> str:
    """The address of a store as text. None, or "", is no directory: a setting that is missing."""
    text = os.fspath(url) if isinstance(url, os.PathLike) else url
    if not isinstance(text, str):
        raise InvalidInput(
            "the address of a store must be text or a path",
            sqlstate="42804",
            hint="name a directory, or :memory:",
            given=type(url).__name__,
        )
    if not text or "\0" in text:
        raise InvalidInput(
            "invalid address of a store", sqlstate="22023", hint="name a directory, or :memory:"
        )
    return text


def check_memory_limit(megabytes: object) -> int:
    if not isinstance(megabytes, int) or isinstance(megabytes, bool):
        raise InvalidInput(
            "memory_limit_mb must be an int", sqlstate="42804", given=type(megabytes).__name__
        )
    if megabytes < 1:
        raise InvalidInput("memory_limit_mb must be 1 or more", sqlstate="22023", given=megabytes)
    return megabytes


def check_config(config: object) -> Config:
    if not isinstance(config, Config):
        raise InvalidInput(
            "config must be a belvedere.Config", sqlstate="42804", given=type(config).__name__
        )
    return config


def parse_durability(text: str) -> Durability:
    try:
        return Durability(text)
    except ValueError:
        raise InvalidInput(
            "unknown durability", sqlstate="22023", text=text, hint="'full' or 'off'"
        ) from None
