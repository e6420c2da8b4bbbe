"""Another process, or a stranger, at the socket of an open store."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import belvedere
from belvedere.errors import InvalidInput, Unavailable
from belvedere.remote.client import OwnerConnection, ask_owner_once, is_reachable
from belvedere.remote.frames import SOCKET_FILE, Reply, Request, socket_address


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


def raw(directory: Path, data: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        with socket_address(directory) as address:
            peer.connect(address)
        peer.settimeout(10)
        found = b""
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):  # hung up on
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
            while piece := peer.recv(65536):
                found += piece
        return found


def test_a_store_in_use_is_backed_up_by_another_process(shop: Path, tmp_path: Path) -> None:
    with belvedere.connect(str(shop)) as connection:
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
        connection.execute("INSERT INTO t VALUES (1), (2)")
        connection.commit()
        for verb in (
            ("backup", str(shop), str(tmp_path / "copy")),
            (
                "restore",
                str(tmp_path / "copy"),
                str(tmp_path / "again.db"),
            ),
        ):
            command = [sys.executable, "-m", "belvedere.interfaces.cli", *verb]
            subprocess.run(command, check=True, capture_output=True)
        connection.execute("INSERT INTO t VALUES (3)")
        connection.commit()
    with belvedere.connect(str(tmp_path / "again.db")) as copy:
        assert copy.execute("SELECT id FROM t ORDER BY id").fetchall() == [(1,), (2,)]


def test_only_the_owner_of_the_directory_may_connect(shop: Path) -> None:
    with belvedere.connect(str(shop)):
        mode = os.stat(shop / SOCKET_FILE).st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600


def test_a_frame_of_four_gigabytes_is_refused_before_it_is_read(shop: Path) -> None:
    with belvedere.connect(str(shop)):
        answer = raw(shop, struct.pack(">I", 0xFFFFFFFF) + b"x" * 100)
        reply = msgspec.msgpack.decode(answer[4:], type=Reply)
        assert reply.failure is not None
        assert (reply.failure.message, reply.failure.sqlstate) == ("frame is too long", "08P01")
        assert ask_owner_once(shop, Request("position")) == 0


@pytest.mark.parametrize("data", [b"", b"\xc1", b"garbage", msgspec.msgpack.encode([1, 2])])
def test_garbage_gets_one_error_and_changes_nothing(shop: Path, data: bytes) -> None:
    with belvedere.connect(str(shop)):
        answer = raw(shop, struct.pack(">I", len(data)) + data)
        reply = msgspec.msgpack.decode(answer[4:], type=Reply)
        assert reply.failure is not None
        assert reply.failure.sqlstate == "08P01"
        assert ask_owner_once(shop, Request("position")) == 0


def test_unknown_requests_and_bad_arguments_are_refused_by_name(shop: Path, tmp_path: Path) -> None:
    with belvedere.connect(str(shop)):
        with pytest.raises(InvalidInput, match="unknown request"):
            ask_owner_once(shop, Request("drop everything"))
        with pytest.raises(InvalidInput, match="absolute destination"):
            ask_owner_once(shop, Request("backup", {"destination": "relative"}))
        (tmp_path / "there").mkdir()
        (tmp_path / "there" / "notes").touch()
        with pytest.raises(InvalidInput, match="exists already"):
            ask_owner_once(shop, Request("backup", {"destination": str(tmp_path / "there")}))


def test_nobody_answers_for_a_closed_store(shop: Path) -> None:
    belvedere.connect(str(shop)).close()
    assert not is_reachable(shop)
    with pytest.raises(Unavailable, match="nobody answers"):
        ask_owner_once(shop, Request("position"))


def test_a_socket_left_by_a_dead_owner_is_replaced(shop: Path) -> None:
    belvedere.connect(str(shop)).close()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead, socket_address(shop) as address:
        dead.bind(address)
    assert not is_reachable(shop)
    with belvedere.connect(str(shop)):
        assert is_reachable(shop)


def framed(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


STAGE = msgspec.msgpack.encode(
    Request("stage", {"table": "t", "operation": "append", "columns": ["id"]}, upload=True)
)


@pytest.mark.parametrize(
    ("upload", "message"),
    [
        (framed(b"garbage that is no arrow stream") + framed(b""), "arrow stream"),
        (framed(b"") + b"", "not an arrow stream"),
        (struct.pack(">I", 0xFFFFFFFF) + b"x" * 100, "frame is too long"),
        (framed(b"\xff\xff\xff\xff\xff\xff\xff\x7f" * 4) + framed(b""), "arrow stream"),
    ],
)
def test_rows_that_are_none_get_one_error_and_change_nothing(
    shop: Path, upload: bytes, message: str
) -> None:
    with belvedere.connect(str(shop), autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
        position = ask_owner_once(shop, Request("position"))
        answer = raw(shop, framed(STAGE) + upload)
        reply = msgspec.msgpack.decode(answer[4:], type=Reply)
        assert reply.failure is not None
        assert message in reply.failure.message
        assert reply.failure.sqlstate == "08P01"
        assert ask_owner_once(shop, Request("position")) == position
        staging = shop / "staging"
        assert not staging.exists() or not list(staging.iterdir())


def test_a_fault_of_ours_is_told_to_the_peer(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with belvedere.connect(str(shop)):
        from belvedere.interfaces.verbs import registry

        monkeypatch.setitem(registry.VERBS, "break", lambda peer, arguments: 1 // 0)
        with pytest.raises(Unavailable, match="the owner of the store failed") as caught:
            ask_owner_once(shop, Request("break"))
        assert "ZeroDivisionError" in str(caught.value)
        assert ask_owner_once(shop, Request("position")) == 0


def test_a_lease_that_nobody_uses_is_given_back(shop: Path) -> None:
    from belvedere.database import Database
    from belvedere.interfaces.verbs.leases import IDLE_S_MAX, LeaseTable

    now = [0.0]
    with Database.open(shop) as database:
        leases = LeaseTable(database, clock_s=lambda: now[0])
        idle, used = leases.take_lease(), leases.take_lease()
        with leases.use_lease(used.id, used.position):
            now[0] += IDLE_S_MAX + 1
            leases.release_idle()
            assert len(leases) == 1
        leases.release_idle()
        assert len(leases) == 1  # it was used just now
        assert idle.transaction is not None
        assert idle.transaction.ended
        leases.close()
        assert len(leases) == 0


def test_the_owner_ends_while_peers_are_connected(shop: Path) -> None:
    with belvedere.connect(str(shop), autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
        idle = OwnerConnection(shop)
        busy = OwnerConnection(shop)
        busy.ask_owner(Request("execute", {"sql": "BEGIN"}))
        busy.ask_owner(Request("execute", {"sql": "INSERT INTO t VALUES (1)"}))
    with pytest.raises(Unavailable, match="has closed it"):
        busy.ask_owner(Request("execute", {"sql": "COMMIT"}))
    for peer in (idle, busy):
        peer.close()
    with belvedere.connect(str(shop), autocommit=True) as connection:
        assert connection.execute("SELECT * FROM t").fetchall() == []
