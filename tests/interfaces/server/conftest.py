"""A server on a Unix socket, and connections to it by psycopg."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from belvedere.config import Durability
from belvedere.interfaces.server.listener import Endpoints, Listener
from belvedere.interfaces.stores import OpenOptions, acquire_store, release_store
from tests.oracle.postgres import postgres  # noqa: F401

PORT = 5432
Connect = Callable[..., "psycopg.Connection[Any]"]


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    """A server for an empty store called `shop`, whose socket is in `tmp_path`."""
    options = OpenOptions(durability=Durability.OFF, allow_remote=False)
    store = acquire_store(str(tmp_path / "shop.db"), options)
    listener = Listener(store.shared, "shop", Endpoints(tmp_path, PORT))
    try:
        yield listener
    finally:
        listener.close()
        release_store(store)


@pytest.fixture
def server(listener: Listener, tmp_path: Path) -> Path:
    """The directory of the socket of that server."""
    return tmp_path


@pytest.fixture
def connect(server: Path) -> Iterator[Connect]:
    opened: list[psycopg.Connection[Any]] = []

    def connect_client(**more: Any) -> psycopg.Connection[Any]:
        given = {"dbname": "shop", "user": getpass.getuser(), "autocommit": True, **more}
        opened.append(psycopg.connect(host=str(server), port=PORT, **given))
        return opened[-1]

    yield connect_client
    for one in opened:
        one.close()
