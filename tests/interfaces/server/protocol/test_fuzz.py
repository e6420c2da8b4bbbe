"""Malformed, truncated, oversized and misplaced messages: the server lives, others go on, and
nothing is changed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
import select
import socket
import ssl
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import belvedere
from belvedere.config import Durability
from belvedere.interfaces.server.authentication import load_certificate_hash
from belvedere.interfaces.server.listener import Endpoints, Listener
from belvedere.interfaces.server.login import LoginPolicy
from belvedere.interfaces.server.messages import STARTUP_BYTES_MAX
from belvedere.interfaces.stores import OpenOptions, acquire_store, release_store
from tests.interfaces.server.conftest import PORT, Connect

MESSAGES = 2_500
"""In each of four states of a connection."""
MEMORY_MAX = 64 << 20
KINDS = b"QPBDECSHXFdcfpTZ\x00\xff"


def open_socket(directory: Path) -> socket.socket:
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    found.connect(str(directory / f".s.PGSQL.{PORT}"))
    found.settimeout(30)
    return found


def startup(user: str, database: str = "shop") -> bytes:
    words = ["user", user, "database", database, ""]
    body = struct.pack("!I", 196608) + b"".join(word.encode() + b"\0" for word in words)
    return struct.pack("!I", len(body) + 4) + body


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def make_garbage(chosen: random.Random) -> bytes:
    """One message that a client could have sent, damaged in one way."""
    good = [
        message(b"Q", b"SELECT 1\0"),
        message(b"Q", b"DELETE FROM t; SELECT 1/0\0"),
        message(b"P", b"s\0SELECT $1\0\0\0"),
        message(b"B", b"\0s\0\0\0\0\x01\0\0\0\x011\0\0"),
        message(b"D", b"Ss\0"),
        message(b"E", b"\0\0\0\0\0"),
        message(b"C", b"Ss\0"),
        message(b"S", b""),
        message(b"d", b"1\n"),
        message(b"Q", b"COPY t FROM STDIN\0"),
        message(b"Q", b"BEGIN\0"),
        message(b"B", b"one\0s\0\0\1\0\1\0\1\0\0\0\4\0\0\0\1\0\1\0\1"),
        message(b"E", b"one\0\0\0\0\1"),
        message(b"f", b"why\0"),
        message(b"F", b"\0\0\0\1"),
        message(b"p", b"SCRAM-SHA-256\0\0\0\0\5n,,n="),
    ]
    data = bytearray(chosen.choice(good))
    match chosen.randrange(7):
        case 0:
            return bytes(data[: chosen.randrange(len(data))])
        case 1:
            data[chosen.randrange(len(data))] = chosen.randrange(256)
        case 2:
            struct.pack_into("!I", data, 1, chosen.choice([0, 3, 2**31, 2**32 - 1, len(data)]))
        case 3:
            data[0] = chosen.choice(KINDS)
        case 4:
            return chosen.randbytes(chosen.randrange(200))
        case 5:
            data += chosen.randbytes(20)
        case _:
            pass
    return bytes(data)


def send_garbage(
    connect_socket: Callable[[], socket.socket],
    greet: Callable[[socket.socket], None],
    chosen: random.Random,
    messages: int = MESSAGES,
) -> None:
    """So many messages, over as many connections as it takes: some end theirs."""
    sent = 0
    while sent < messages:
        with connect_socket() as connection:
            try:
                greet(connection)
                while sent < messages and not has_hung_up(connection):
                    connection.sendall(make_garbage(chosen))
                    sent += 1
                end_sending(connection)
                while connection.recv(65536):
                    pass
            except TimeoutError:
                raise
            except OSError:
                pass  # the server has hung up, as it should


def has_hung_up(connection: socket.socket) -> bool:
    """Take what has been answered, and give the server a moment to do so."""
    select.select([connection], [], [], 0.0005)
    connection.setblocking(False)
    try:
        while connection.recv(65536):
            pass
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    finally:
        connection.settimeout(30)
    return True


def end_sending(connection: socket.socket) -> None:
    if isinstance(connection, ssl.SSLSocket):
        socket.socket.shutdown(connection, socket.SHUT_WR)
    else:
        connection.shutdown(socket.SHUT_WR)


def send_nothing(connection: socket.socket) -> None:
    """Garbage is the first that the server gets."""


def measure_memory() -> int:
    """Bytes of this process, the server's too."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("logged_in", [False, True], ids=["before login", "after login"])
def test_garbage_ends_its_own_connection_only(
    server: Path, connect: Connect, seed: int, *, logged_in: bool
) -> None:
    con = connect()
    make_table(con)
    user = con.info.user
    greet = (lambda one: one.sendall(startup(user))) if logged_in else send_nothing
    before = measure_memory()
    send_garbage(lambda: open_socket(server), greet, random.Random(seed))
    assert measure_memory() - before < MEMORY_MAX
    assert connect().execute("SELECT 1").fetchone() == (1,)
    check_table(con)


@pytest.mark.parametrize("logged_in", [False, True], ids=["before login", "after login"])
def test_garbage_by_tls_ends_its_own_connection_only(
    tls_listener: Listener, seed: int, *, logged_in: bool
) -> None:
    port = tls_listener.port
    given = f"host=127.0.0.1 port={port} dbname=shop user=ann password=secret sslmode=require"
    with psycopg.connect(given, autocommit=True) as con:
        make_table(con)
        greet = log_in_by_password if logged_in else send_nothing
        before = measure_memory()
        send_garbage(lambda: open_tls(port), greet, random.Random(seed))
        assert measure_memory() - before < MEMORY_MAX
        with psycopg.connect(given) as other:
            assert other.execute("SELECT 1").fetchone() == (1,)
        check_table(con)


def make_table(con: psycopg.Connection[Any]) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY)")
    con.execute("INSERT INTO t VALUES (1)")


def check_table(con: psycopg.Connection[Any]) -> None:
    """The one statement among the garbage that changes something fails as a whole."""
    assert con.execute("SELECT count(*) FROM t").fetchone() == (1,)


@pytest.fixture
def tls_listener(tmp_path: Path) -> Iterator[Listener]:
    certificate, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost".split()
    subprocess.run([*command, "-out", certificate, "-keyout", key], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    options = OpenOptions(durability=Durability.OFF, allow_remote=False)
    store = acquire_store(str(tmp_path / "shop.db"), options)
    with belvedere.connect(str(tmp_path / "shop.db"), durability="off", autocommit=True) as con:
        con.execute("CREATE ROLE ann LOGIN SUPERUSER PASSWORD 'secret'")
        policy = LoginPolicy(load_certificate_hash(certificate), failure_pause_s=0)
        endpoints = Endpoints(address=("127.0.0.1", 0), tls=context)
        listener = Listener(store.shared, "shop", endpoints, policy)
        try:
            yield listener
        finally:
            listener.close()
            release_store(store)


def open_tls(port: int | None) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", port), timeout=30)
    plain.sendall(struct.pack("!II", 8, 80877103))
    assert plain.recv(1) == b"S"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(plain)


def log_in_by_password(connection: socket.socket) -> None:
    """SCRAM-SHA-256 without channel binding, as RFC 5802 has it."""
    connection.sendall(startup("ann"))
    receive_until(connection, b"SCRAM-SHA-256\0\0")
    first = b"n=ann,r=nonce"
    body = b"SCRAM-SHA-256\0" + struct.pack("!I", len(first) + 3) + b"n,," + first
    connection.sendall(message(b"p", body))
    answer = connection.recv(65536)[9:]
    parts = dict(one.split(b"=", 1) for one in answer.split(b","))
    salt, rounds = base64.b64decode(parts[b"s"]), int(parts[b"i"])
    salted = hashlib.pbkdf2_hmac("sha256", b"secret", salt, rounds)
    key = hmac.digest(salted, b"Client Key", "sha256")
    last = b"c=biws,r=" + parts[b"r"]
    signed = first + b"," + answer + b"," + last
    signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
    proof = bytes(a ^ b for a, b in zip(key, signature))
    connection.sendall(message(b"p", last + b",p=" + base64.b64encode(proof)))
    receive_until(connection, b"Z\0\0\0\5I")


def receive_until(connection: socket.socket, end: bytes) -> None:
    found = b""
    while not found.endswith(end):
        part = connection.recv(65536)
        assert part, found
        found += part


@pytest.mark.parametrize(
    "first",
    [
        struct.pack("!I", STARTUP_BYTES_MAX + 100) + b"x" * 100,
        struct.pack("!II", 8, 2 << 16),
        struct.pack("!II", 12, 80877102) + b"\0\0\0\0",
        struct.pack("!II", 8, 196608),
        struct.pack("!II", 9, 196608) + b"\0",
        b"GET / HTTP/1.1\r\n\r\n",
        b"",
    ],
    ids=["too long", "protocol 2", "half a cancel", "no end", "no user", "http", "nothing"],
)
def test_bad_first_messages_are_refused(server: Path, connect: Connect, first: bytes) -> None:
    with open_socket(server) as connection:
        connection.sendall(first)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(4096):
            answer += part
    assert answer[:1] in (b"E", b"")
    assert connect().execute("SELECT 1").fetchone() == (1,)


def test_a_newer_minor_version_is_negotiated_down(server: Path, connect: Connect) -> None:
    user = connect().info.user
    data = bytearray(startup(user))
    struct.pack_into("!I", data, 4, 196610)
    with open_socket(server) as connection:
        connection.sendall(bytes(data))
        assert connection.recv(1) == b"v"


def test_a_wrong_cancel_key_cancels_nothing(server: Path, connect: Connect) -> None:
    con = connect()
    with open_socket(server) as connection:
        connection.sendall(struct.pack("!IIII", 16, 80877102, con.info.backend_pid, 12345))
        assert connection.recv(1) == b""
    assert con.execute("SELECT 1").fetchone() == (1,)
