"""Logins by password over TCP, with and without TLS: who is let in, and what the others learn."""

from __future__ import annotations

import getpass
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import belvedere
from belvedere.config import Durability
from belvedere.interfaces.server.authentication import load_certificate_hash
from belvedere.interfaces.server.listener import Endpoints, Listener
from belvedere.interfaces.server.login import LoginPolicy
from belvedere.interfaces.stores import OpenOptions, acquire_store, release_store

PASSWORD = "it's a secret ²"
ROLES = (
    f"CREATE ROLE ann LOGIN SUPERUSER PASSWORD '{PASSWORD.replace(chr(39), chr(39) * 2)}'",
    "CREATE USER bob PASSWORD 'plain'",
    "CREATE ROLE late LOGIN SUPERUSER PASSWORD 'p' VALID UNTIL '2020-01-01'",
    "CREATE ROLE nobody SUPERUSER PASSWORD 'p'",
    "CREATE ROLE empty LOGIN SUPERUSER",
    "ALTER ROLE ann SET freshness = 'latest'",
)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    directory = tmp_path_factory.mktemp("tls")
    files = directory / "cert.pem", directory / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost".split()
    command += ["-out", str(files[0]), "-keyout", str(files[1])]
    subprocess.run(command, check=True, capture_output=True)
    return files


@pytest.fixture(params=["plain", "tls"])
def address(
    request: pytest.FixtureRequest, tmp_path: Path, certificate: tuple[Path, Path]
) -> Iterator[dict[str, Any]]:
    options = OpenOptions(durability=Durability.OFF, allow_remote=False)
    store = acquire_store(str(tmp_path / "shop.db"), options)
    with belvedere.connect(str(tmp_path / "shop.db"), durability="off", autocommit=True) as con:
        for role in ROLES:
            con.execute(role)
    tls, fingerprint = None, None
    if request.param == "tls":
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*certificate)
        fingerprint = load_certificate_hash(str(certificate[0]))
    policy = LoginPolicy(fingerprint, failure_pause_s=0)
    endpoints = Endpoints(address=("127.0.0.1", 0), tls=tls)
    listener = Listener(store.shared, "shop", endpoints, policy)
    given = {"host": "127.0.0.1", "port": listener.port, "dbname": "shop", "autocommit": True}
    if tls is not None:
        given |= {"sslmode": "require", "channel_binding": "require"}
    try:
        yield given
    finally:
        listener.close()
        release_store(store)
        if "open" in given:
            given["open"].close()


def test_a_role_logs_in_with_its_password_and_its_settings(address: dict[str, Any]) -> None:
    with psycopg.connect(**address, user="ann", password=PASSWORD) as con:
        assert con.execute("SHOW freshness").fetchone() == ("latest",)
        assert con.pgconn.ssl_in_use == ("sslmode" in address)
    with psycopg.connect(
        **address, user="ann", password=PASSWORD, options="--freshness=any"
    ) as con:
        assert con.execute("SHOW freshness").fetchone() == ("any",)


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("ann", "wrong"),
        ("ann", ""),
        ("unknown", "wrong"),
        ("late", "p"),
        ("nobody", "p"),
        ("empty", "anything"),
    ],
)
def test_whoever_is_refused_learns_nothing_else(
    address: dict[str, Any], user: str, password: str
) -> None:
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(**address, user=user, password=password or " ")
    assert "password authentication failed" in str(caught.value)
    assert caught.value.sqlstate in (None, "28P01")


def test_a_role_without_rights_is_let_in_and_sees_no_data(address: dict[str, Any]) -> None:
    with psycopg.connect(**address, user="ann", password=PASSWORD) as con:
        con.execute("CREATE TABLE t (id integer PRIMARY KEY)")
    with psycopg.connect(**address, user="bob", password="plain") as con:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            con.execute("SELECT * FROM t")


def test_a_server_ends_while_clients_are_connected(address: dict[str, Any]) -> None:
    """The fixture closes the listener, which waits for its clients, before this one is closed."""
    con = psycopg.connect(**address, user="ann", password=PASSWORD)
    address["open"] = con


def test_a_client_that_wants_encryption_does_not_get_less(address: dict[str, Any]) -> None:
    if "sslmode" in address:
        return
    with pytest.raises(psycopg.OperationalError, match="SSL"):
        psycopg.connect(**address, user="ann", password=PASSWORD, sslmode="require")


def test_a_listener_is_woken_on_plain_and_encrypted_sockets(address: dict[str, Any]) -> None:
    with (
        psycopg.connect(user="ann", password=PASSWORD, **address) as listener,
        psycopg.connect(user="ann", password=PASSWORD, **address) as other,
    ):
        listener.execute("LISTEN news")
        for number in range(3):
            other.execute("SELECT pg_notify('news', %s)", (str(number),))
        told = [one.payload for one in listener.notifies(timeout=60, stop_after=3)]
    assert told == ["0", "1", "2"]
    # A client that says nothing more is let go all the same, when the server ends.


def test_too_many_clients_are_refused(tmp_path: Path) -> None:
    options = OpenOptions(durability=Durability.OFF, allow_remote=False)
    store = acquire_store(str(tmp_path / "shop.db"), options)
    listener = Listener(store.shared, "shop", Endpoints(tmp_path), connections_max=2)
    given = {"host": str(tmp_path), "dbname": "shop", "user": getpass.getuser()}
    try:
        with psycopg.connect(**given) as first, psycopg.connect(**given):
            with pytest.raises(psycopg.OperationalError, match="too many clients"):
                psycopg.connect(**given)
            assert first.execute("SELECT 1").fetchone() == (1,)
    finally:
        listener.close()
        release_store(store)
