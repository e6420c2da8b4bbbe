"""Asking the process that has a store open."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec

from belvedere.errors import Unavailable
from belvedere.remote.frames import SOCKET_FILE, Reply, Request, receive, send, socket_address


def is_reachable(directory: Path) -> bool:
    """Whether some process answers for this store."""
    connection = _connected(directory) if (directory / SOCKET_FILE).is_socket() else None
    if connection is None:
        return False
    connection.close()
    return True


def ask(directory: Path, request: Request, timeout_s: float = 3600.0) -> str | int | None:
    """The owner's answer; its failure comes back as the error it was."""
    connection = _connected(directory)
    if connection is None:
        raise Unavailable("nobody answers for the store", sqlstate="08001", path=str(directory))
    with connection:
        connection.settimeout(timeout_s)
        send(connection, request)
        data = receive(connection)
    if data is None:
        raise Unavailable("the owner of the store hung up", sqlstate="08006")
    reply = msgspec.msgpack.decode(data, type=Reply)
    if reply.failure is not None:
        failed = reply.failure
        raise Unavailable(
            failed.message, sqlstate=failed.sqlstate, detail=failed.detail, hint=failed.hint
        )
    return reply.value


def _connected(directory: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket_address(directory) as address:
            connection.connect(address)
    except OSError:
        connection.close()
        return None
    return connection
