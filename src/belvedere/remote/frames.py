"""Wire format between a client and the owner of an open store, on a Unix socket in its directory.

A frame is a u32 length (big-endian) and that many bytes. A conversation is

    request    {verb, arguments, upload}                       one frame of msgpack
    upload     data frames, then an empty frame                only when the request says so
    reply      {value | failure, download}                     one frame of msgpack
    download   data frames, an empty frame, a last reply       only when the reply says so

Data frames are chunks of an Arrow IPC stream (`remote.streams`). A length over the limit ends the
conversation before anything is allocated; received names are never executed, only looked up.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from belvedere import errors
from belvedere.errors import Error, InvalidInput, Unavailable

FRAME_BYTES_MAX = 1024 * 1024
DATA_BYTES_MAX = 4 * 1024 * 1024
SOCKET_FILE = "owner.sock"
CLOSED = "the process that had the store open has closed it"
"""What an owner that closes answers to a request that it does not begin, and tells idle peers."""
_LENGTH = struct.Struct(">I")
_KINDS: dict[str, type[Error]] = {
    kind.__name__: kind
    for kind in (
        errors.InvalidInput,
        errors.Retry,
        errors.Unsupported,
        errors.Unavailable,
        errors.Corruption,
    )
}


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    verb: str
    arguments: dict[str, Any] = {}
    upload: bool = False


class Failure(msgspec.Struct, frozen=True):
    message: str
    sqlstate: str
    detail: str | None = None
    hint: str | None = None
    kind: str = "Unavailable"
    facts: dict[str, Any] = {}
    position: int | None = None


class Reply(msgspec.Struct, frozen=True):
    value: Any = None
    failure: Failure | None = None
    download: bool = False


def failure_from_error(error: Error) -> Failure:
    facts = {name: _plain_fact(value) for name, value in error.facts.items()}
    return Failure(
        error.message,
        error.sqlstate,
        error.detail,
        error.hint,
        type(error).__name__,
        facts,
        error.position,
    )


def _plain_fact(value: Any) -> Any:
    """A fact as it is where msgpack has its type, else as text."""
    plain = value is None or type(value) in (bool, float)
    if plain or (type(value) is int and abs(value) < 2**63):
        return value
    return str(value)[:1000]


def error_from_failure(failure: Failure) -> Error:
    """The error that the owner reported, to be raised in the client."""
    kind = _KINDS.get(failure.kind, Unavailable)
    return kind(
        failure.message,
        sqlstate=failure.sqlstate,
        detail=failure.detail,
        hint=failure.hint,
        position=failure.position,
        **failure.facts,
    )


def send_message(connection: socket.socket, message: Request | Reply) -> None:
    data = msgspec.msgpack.encode(message)
    if len(data) > FRAME_BYTES_MAX:
        raise InvalidInput("message is too long", sqlstate="54000", length=len(data))
    connection.sendall(_LENGTH.pack(len(data)) + data)


def receive_message(connection: socket.socket) -> bytes | None:
    """The bytes of the next message; None when the peer has closed between frames."""
    data = receive_data(connection, FRAME_BYTES_MAX)
    return None if data is None else bytes(data)


def receive_data(connection: socket.socket, bytes_max: int = DATA_BYTES_MAX) -> bytearray | None:
    head = _receive_exactly(connection, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > bytes_max:
        raise InvalidInput("frame is too long", sqlstate="08P01", length=length, limit=bytes_max)
    data = _receive_exactly(connection, length)
    if data is None:
        raise Unavailable("connection closed within a frame", sqlstate="08006")
    return data


def send_data(connection: socket.socket, data: bytes | memoryview) -> None:
    """One data frame; an empty one ends a stream."""
    connection.sendall(_LENGTH.pack(len(data)))
    if len(data):
        connection.sendall(data)


def _receive_exactly(connection: socket.socket, count: int) -> bytearray | None:
    data = bytearray(count)
    view, found = memoryview(data), 0
    while found < count:
        piece = connection.recv_into(view[found:])
        if not piece:
            if found:
                raise Unavailable("connection closed within a frame", sqlstate="08006")
            return None
        found += piece
    return data


@contextmanager
def socket_address(directory: Path) -> Iterator[str]:
    """A short path to the socket in `directory`: the length of socket paths is limited, that of
    directories is not."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET_FILE}"
    finally:
        os.close(descriptor)
