"""Malformed, truncated, oversized and misplaced messages: the server lives, others go on, and
nothing is changed."""

from __future__ import annotations

import random
import socket
import struct
from pathlib import Path

import pytest

from belvedere.interfaces.server.messages import STARTUP_BYTES_MAX
from tests.interfaces.server.conftest import PORT, Connect

MESSAGES_A_SEED = 40
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


def send_garbage(directory: Path, chosen: random.Random, user: str | None) -> None:
    with open_socket(directory) as connection:
        try:
            if user is not None:
                connection.sendall(startup(user))
            for _ in range(MESSAGES_A_SEED):
                connection.sendall(make_garbage(chosen))
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
        except (BrokenPipeError, ConnectionResetError):
            return  # the server has hung up, as it should


@pytest.mark.parametrize("logged_in", [False, True], ids=["before login", "after login"])
def test_garbage_ends_its_own_connection_only(
    server: Path, connect: Connect, *, logged_in: bool
) -> None:
    con = connect()
    con.execute("CREATE TABLE t (id int PRIMARY KEY)")
    con.execute("INSERT INTO t VALUES (1)")
    for seed in range(60):
        send_garbage(server, random.Random(seed), con.info.user if logged_in else None)
    assert connect().execute("SELECT 1").fetchone() == (1,)
    # The one statement above that changes something fails as a whole.
    assert con.execute("SELECT count(*) FROM t").fetchone() == (1,)


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
