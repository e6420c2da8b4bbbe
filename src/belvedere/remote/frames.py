"""Messages between a client and the owner of an open store, on a Unix socket in its directory.

A frame is a u32 length (big-endian) and that many bytes of msgpack: a request `{verb, arguments}`
or a reply `{ok, value | error}`. A length over the limit ends the conversation before anything is
allocated; nothing that arrives is ever executed, only looked up.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from belvedere.errors import InvalidInput, Unavailable

FRAME_BYTES_MAX = 1024 * 1024
SOCKET_FILE = "owner.sock"
_LENGTH = struct.Struct(">I")


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    verb: str
    arguments: dict[str, str | int | None] = {}


class Failure(msgspec.Struct, frozen=True):
    message: str
    sqlstate: str
    detail: str | None = None
    hint: str | None = None


class Reply(msgspec.Struct, frozen=True):
    value: str | int | None = None
    failure: Failure | None = None


def send(connection: socket.socket, message: Request | Reply) -> None:
    data = msgspec.msgpack.encode(message)
    connection.sendall(_LENGTH.pack(len(data)) + data)


def receive(connection: socket.socket) -> bytes | None:
    """The bytes of the next frame; None when the other side has closed between frames."""
    head = _exactly(connection, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > FRAME_BYTES_MAX:
        raise InvalidInput("frame is too long", sqlstate="08P01", length=length)
    data = _exactly(connection, length)
    if data is None:
        raise Unavailable("connection closed within a frame", sqlstate="08006")
    return data


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            if data:
                raise Unavailable("connection closed within a frame", sqlstate="08006")
            return None
        data += piece
    return data


@contextmanager
def socket_address(directory: Path) -> Iterator[str]:
    """A short name for the socket in `directory`: socket names have a limit, directories have
    not."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET_FILE}"
    finally:
        os.close(descriptor)
