"""An owner closes while a peer's statement runs, and accepts again after it was out of files."""

from __future__ import annotations

import errno
import socket
import threading
from pathlib import Path
from typing import Any, cast

import pytest

import belvedere
from belvedere import failpoints
from belvedere.errors import Error
from belvedere.interfaces import stores
from belvedere.interfaces.remote import RemoteSession
from belvedere.pipeline import Store
from belvedere.remote.frames import CLOSED
from tests.txn.deadline import until

ENDLESS = "SELECT sum((a.v * b.v) % 7) FROM t AS a, t AS b WHERE a.v + b.v <> 17"


def open_shop(path: Path) -> belvedere.Connection:
    con = belvedere.connect(str(path), autocommit=True)
    con.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
    con.execute("INSERT INTO t SELECT g, g FROM generate_series(1, 60000) AS g")
    return con


def test_close_ends_the_statement_of_a_peer(tmp_path: Path) -> None:
    con = open_shop(tmp_path / "shop.db")
    peer, failures = RemoteSession(tmp_path / "shop.db"), list[Error]()

    def run_endlessly() -> None:
        try:
            peer.execute(ENDLESS)
        except Error as error:
            failures.append(error)

    thread = threading.Thread(target=run_endlessly)
    thread.start()
    (store,) = [one for one in stores._open_stores.values() if one.owner is not None]
    assert store.owner is not None
    sessions = store.owner._serving.sessions
    until(lambda: any(one.interrupt._hooks for one in sessions.values()))  # DuckDB is running
    con.close()
    thread.join()
    assert failures[0].sqlstate in ("08006", "57014")
    with belvedere.connect(str(tmp_path / "shop.db"), allow_remote=False) as again:
        assert again.execute("SELECT count(*) FROM t").fetchall() == [(60000,)]


def test_a_commit_under_way_is_answered(tmp_path: Path) -> None:
    con = open_shop(tmp_path / "shop.db")
    peer = RemoteSession(tmp_path / "shop.db", autocommit=False)
    peer.execute("INSERT INTO t VALUES (0, 0)")
    idle = RemoteSession(tmp_path / "shop.db")
    (store,) = [one for one in stores._open_stores.values() if one.owner is not None]
    owner = store.owner
    assert owner is not None
    reached, go = threading.Event(), threading.Event()

    def wait_in_commit() -> None:
        reached.set()
        go.wait(30)

    failpoints.arm("acknowledge.before", "call", call=wait_in_commit)
    try:
        committing = threading.Thread(target=peer.commit)
        committing.start()
        reached.wait(30)
        closing = threading.Thread(target=con.close)
        closing.start()
        until(lambda: len(owner._peers) == 1)  # the idle one is gone: it closes
        go.set()
        committing.join()  # an error would be an unhandled exception of the thread
        closing.join()
    finally:
        failpoints.disarm_all()
    assert peer.transactions.open is None
    with pytest.raises(Error) as refused:
        peer.execute("SELECT 1")
    assert (refused.value.sqlstate, refused.value.message) == ("08006", CLOSED)
    assert refused.value.detail == "the statement was not run"
    peer.close()
    idle.close()
    with belvedere.connect(str(tmp_path / "shop.db"), allow_remote=False) as again:
        assert again.execute("SELECT count(*) FROM t").fetchall() == [(60001,)]


def test_a_peer_in_a_transaction_is_told_that_it_is_lost(tmp_path: Path) -> None:
    con = open_shop(tmp_path / "shop.db")
    peer = RemoteSession(tmp_path / "shop.db", autocommit=False)
    peer.execute("INSERT INTO t VALUES (0, 0)")
    con.close()
    with pytest.raises(Error) as refused:
        peer.commit()
    assert (refused.value.sqlstate, refused.value.message) == ("08006", CLOSED)
    assert refused.value.detail == "the transaction is lost"
    peer.close()


def test_close_ends_the_wait_of_a_peer(tmp_path: Path) -> None:
    con = open_shop(tmp_path / "shop.db")
    store = Store.in_directory(tmp_path / "shop.db")
    position = store.position()

    def wait_for_more() -> None:
        with pytest.raises(Error):
            store.wait_past_position(position, 60)

    thread = threading.Thread(target=wait_for_more)
    (opened,) = [one for one in stores._open_stores.values() if one.owner is not None]
    assert opened.owner is not None
    owner = opened.owner
    thread.start()
    until(lambda: len(owner._peers) == 1)
    con.close()
    thread.join()


class _NoDescriptors:
    """A listener that is out of descriptors for a while."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.failures = 2

    def accept(self) -> tuple[socket.socket, Any]:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self._listener.accept()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._listener, name)


def test_an_owner_without_descriptors_accepts_again(tmp_path: Path) -> None:
    with open_shop(tmp_path / "shop.db"):
        store = Store.in_directory(tmp_path / "shop.db")
        (opened,) = [one for one in stores._open_stores.values() if one.owner is not None]
        assert opened.owner is not None
        broken = _NoDescriptors(opened.owner._listener)
        opened.owner._listener = cast("socket.socket", broken)
        for _ in range(3):  # the first one is accepted by the listener as it was
            assert store.position() > 0
        assert not broken.failures
