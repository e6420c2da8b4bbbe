"""Clients that connect and say nothing, connect in masses, or never read: others go on."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from belvedere.interfaces.server import hangup_watch
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


def test_the_statement_of_a_client_that_is_gone_is_canceled(
    server: Path, listener: Listener, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement would take days."""
    monkeypatch.setattr(hangup_watch, "CHECK_INTERVAL_S", 0.05)
    con = connect()
    con.execute("CREATE TABLE g AS SELECT i FROM generate_series(1, 3000) s (i)")
    known = set(listener._clients)
    with open_socket(server) as gone:
        gone.sendall(startup(con.info.user))
        while not gone.recv(1 << 16).endswith(b"Z\0\0\0\5I"):
            pass
        (number,) = set(listener._clients) - known
        client = listener._clients[number]
        gone.sendall(message(b"Q", b"SELECT count(*) FROM g, g x, g y, g z\0"))
    client.thread.join(60)
    assert not client.thread.is_alive()


def test_a_client_that_has_sent_all_gets_its_answer(server: Path, connect: Connect) -> None:
    """It may close its own side before the answer comes."""
    user = connect().info.user
    with open_socket(server) as one:
        one.sendall(startup(user) + message(b"Q", b"SELECT 42\0") + message(b"X", b""))
        one.shutdown(socket.SHUT_WR)
        answer = b""
        while part := one.recv(1 << 16):
            answer += part
    assert b"42" in answer
