"""A child that is forked beside a server takes none of the server's clients."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from belvedere.config import Durability
from belvedere.errors import InvalidInput
from belvedere.interfaces.server.listener import Endpoints, Listener
from belvedere.interfaces.stores import OpenOptions, acquire_store, release_store

HUNG_S = 30


def test_a_forked_child_has_no_socket_of_the_server(tmp_path: Path) -> None:
    store = acquire_store(
        str(tmp_path / "shop.db"), OpenOptions(durability=Durability.OFF, allow_remote=False)
    )
    listener = Listener(store.shared, "shop", Endpoints(address=("127.0.0.1", 0)))
    assert listener.port is not None
    with socket.create_connection(("127.0.0.1", listener.port), HUNG_S) as client:
        client.sendall(b"\0\0\0\x08\x04\xd2\x16/")  # asks for TLS: it is answered, so it is served
        assert client.recv(1) == b"N"
        ready, told = os.pipe()
        child = os.fork()
        if not child:
            try:
                listener.port  # noqa: B018 (refused)
            except InvalidInput as error:
                os.write(told, (error.sqlstate or "").encode())
            os.write(told, b".")
            signal.pause()
        try:
            assert os.read(ready, 6).startswith(b"08003")
            listener.close()
            assert client.recv(1) == b""  # the child's copy does not hold it open
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", listener.port), HUNG_S)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            release_store(store)
