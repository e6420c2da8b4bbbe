"""Clients that connect and say nothing, connect in masses, or never read: others go on."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from belvedere.interfaces.server import listener as listener_module
from belvedere.interfaces.server.listener import Listener
from tests.interfaces.server.conftest import Connect
from tests.interfaces.server.protocol.test_fuzz import message, open_socket, startup

HALF_SENT = 100
CONNECTS = 500


def await_end(listener: Listener, known: set[int]) -> None:
    """Wait until the clients that came after the known ones are gone."""
    for number, client in list(listener._clients.items()):
        if number not in known:
            client.thread.join(30)
            assert not client.thread.is_alive()


def test_half_sent_first_messages_hold_nobody_up(
    server: Path, listener: Listener, connect: Connect
) -> None:
    con = connect()
    known = set(listener._clients)
    slow = [open_socket(server) for _ in range(HALF_SENT)]
    for number, one in enumerate(slow):
        one.sendall(startup(con.info.user)[: 1 + number % 30])
    assert connect().execute("SELECT 1").fetchone() == (1,)
    assert con.execute("SELECT 1").fetchone() == (1,)
    known |= {max(listener._clients)}
    for one in slow:
        one.close()
    await_end(listener, known)


def test_a_storm_of_connects_leaves_nothing(
    server: Path, listener: Listener, connect: Connect
) -> None:
    con = connect()
    known = set(listener._clients)
    for number in range(CONNECTS):
        with open_socket(server) as one:
            if number % 2:
                one.sendall(startup(con.info.user))
        if number % 100 == 0:
            assert con.execute("SELECT 1").fetchone() == (1,)
    assert connect().execute("SELECT 1").fetchone() == (1,)
    known |= {max(listener._clients)}
    await_end(listener, known)


def test_a_client_that_never_reads_holds_up_neither_others_nor_the_end(
    server: Path, listener: Listener, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_module, "END_PATIENCE_S", 0.1)
    con = connect()
    con.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")
    con.execute("INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 9000) g (i)")
    with open_socket(server) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(startup(con.info.user) + message(b"Q", b"SELECT * FROM t WHERE a > 0\0"))
        assert deaf.recv(1) == b"R"
        assert con.execute("SELECT count(*) FROM t").fetchone() == (9000,)
        con.close()
        listener.close()
        while deaf.recv(1 << 20):
            pass
