"""A server on TCP, for clients that log in by password; and programs that are fetched for them."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import belvedere
from belvedere.config import Durability
from belvedere.interfaces.server.listener import Endpoints, Listener
from belvedere.interfaces.stores import OpenOptions, acquire_store, release_store

USER, PASSWORD = "ann", "secret"


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """The port of a server for an empty store called `shop`, with a superuser."""
    options = OpenOptions(durability=Durability.OFF, allow_remote=False)
    store = acquire_store(str(tmp_path / "shop.db"), options)
    with belvedere.connect(str(tmp_path / "shop.db"), durability="off", autocommit=True) as con:
        con.execute(f"CREATE ROLE {USER} LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
    listener = Listener(store.shared, "shop", Endpoints(address=("127.0.0.1", 0)))
    assert listener.port is not None
    try:
        yield listener.port
    finally:
        listener.close()
        release_store(store)


@pytest.fixture
def uri(port: int) -> str:
    return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{port}/shop"


def fetch_once(name: str, product: str, command: Sequence[str]) -> Path:
    """The directory in which a command of a package registry has put a product, by its own name;
    the command runs when that is not there yet."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    directory = Path(base) / "belvedere" / "clients" / name
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / product).exists():
            subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=300)
    assert (directory / product).exists()
    return directory


def run_program(command: Sequence[str], **more: str) -> list[str]:
    """The lines that a client program prints."""
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **more},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.splitlines()
