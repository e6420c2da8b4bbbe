"""Frames of PostgreSQL's protocol: one byte of type, four of length (which count themselves), body.

`MessageReader` never trusts a length: a frame over the limit is refused before memory is taken for
it, and what is taken grows with what has arrived. `MessageWriter` gathers messages and sends them
together, when it is told to or when they are many.
"""

from __future__ import annotations

import functools
import socket
import struct

from belvedere.errors import InvalidInput

RECEIVE_BYTES = 64 * 1024
SEND_BYTES = 64 * 1024
"""What is gathered before it is sent without being told to."""
STARTUP_BYTES_MAX = 10_000
MESSAGE_BYTES_MAX = 256 * 1024 * 1024
HEADER_BYTES = 5
COMPLETIONS_MAX = 10_000
_COUNTED = frozenset({"SELECT", "UPDATE", "DELETE", "COPY", "MOVE"})

_HEADER = struct.Struct("!BI")
_INT16 = struct.Struct("!H")
_INT32 = struct.Struct("!I")
_SIGNED32 = struct.Struct("!i")


class ConnectionEnd(Exception):
    """The client has closed the connection."""


class MessageReader:
    """Messages of one client, in order. `limit` is what the body of one may have in bytes."""

    def __init__(self, connection: socket.socket, limit: int = STARTUP_BYTES_MAX) -> None:
        self.connection = connection
        self.limit = limit
        self._buffer = b""
        self._at = 0

    def read_message(self) -> tuple[int, bytes]:
        """The type and the body of the next message, waiting for it."""
        while len(self._buffer) - self._at < _HEADER.size:
            self._receive()
        kind, length = _HEADER.unpack_from(self._buffer, self._at)
        self._at += 1
        return kind, self._read_body(length)

    def read_startup(self) -> bytes:
        """The body of a first message, which has no type."""
        while len(self._buffer) - self._at < _INT32.size:
            self._receive()
        (length,) = _INT32.unpack_from(self._buffer, self._at)
        return self._read_body(length)

    def receive_if_empty(self) -> None:
        """Wait until something has been received beyond what was read."""
        if self._at == len(self._buffer):
            self._receive()

    def peek_data(self) -> bytes:
        """What has been received and not been read."""
        return self._buffer if not self._at else self._buffer[self._at :]

    def put_data(self, data: bytes) -> None:
        """Take what somebody else has received, while nothing was left here."""
        self._buffer, self._at = data, 0

    def skip_data(self) -> None:
        """Take what has been received as read."""
        self._buffer, self._at = b"", 0

    def peek_kind(self) -> int | None:
        """The type of the next message if some of it is here already."""
        return self._buffer[self._at] if self._at < len(self._buffer) else None

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been received beyond what was read."""
        return self._at == len(self._buffer)

    def _read_body(self, length: int) -> bytes:
        """The body of a frame at whose length the buffer stands."""
        if not 4 <= length <= self.limit + 4:
            raise InvalidInput("invalid message length", sqlstate="08P01", length=length)
        start, end = self._at + 4, self._at + length
        if end <= len(self._buffer):
            self._at = end
            return self._buffer[start:end]
        return self._receive_body(start, end)

    def _receive_body(self, start: int, end: int) -> bytes:
        parts = [self._buffer[start:]]
        missing = end - len(self._buffer)
        while missing > 0:
            data = self.connection.recv(min(max(missing, RECEIVE_BYTES), 1 << 20))
            if not data:
                raise ConnectionEnd
            parts.append(data)
            missing -= len(data)
        body = b"".join(parts)
        size = end - start
        self._buffer, self._at = body[size:], 0
        return body[:size]

    def _receive(self) -> None:
        data = self.connection.recv(RECEIVE_BYTES)
        if not data:
            raise ConnectionEnd
        rest = self._buffer[self._at :]
        self._buffer = rest + data if rest else data
        self._at = 0


class MessageWriter:
    """Messages for one client."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, message: bytes) -> None:
        self._parts.append(message)
        self._size += len(message)
        if self._size >= SEND_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._parts:
            data = b"".join(self._parts)
            self._parts, self._size = [], 0
            self.connection.sendall(data)

    def take(self) -> bytes:
        """What was gathered, which somebody else sends."""
        data = b"".join(self._parts)
        self._parts, self._size = [], 0
        return data


def build_message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + _INT32.pack(len(body) + 4) + body


def pack_text(text: str) -> bytes:
    """A string of the protocol, which ends with a zero byte and so can hold none."""
    return text.replace("\0", "").encode() + b"\0"


def pack_int16(number: int) -> bytes:
    return _INT16.pack(number)


def pack_int32(number: int) -> bytes:
    return _INT32.pack(number)


def build_parameter_status(name: str, value: str) -> bytes:
    return build_message(b"S", pack_text(name) + pack_text(value))


def build_ready(status: bytes) -> bytes:
    return b"Z\x00\x00\x00\x05" + status


@functools.lru_cache(COMPLETIONS_MAX)
def build_completion(tag: str, affected: int, sent: int) -> bytes:
    return build_message(b"C", pack_text(build_tag(tag, affected, sent)))


def build_tag(tag: str, affected: int, sent: int) -> str:
    """The tag of a statement that is complete, as clients parse it."""
    if tag == "INSERT":
        return f"INSERT 0 {affected}"
    if tag == "CREATE TABLE AS":
        return f"SELECT {max(affected, 0)}"
    if tag in ("SELECT", "FETCH"):
        return f"{tag} {sent}"
    return f"{tag} {affected}" if tag in _COUNTED else tag


class BodyReader:
    """The fields of a message's body, one after the other. A body that is too short or too long is
    refused."""

    def __init__(self, body: bytes) -> None:
        self.data = body
        self.at = 0

    def read_text(self) -> str:
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise _malformed_error()
        data = self.data[self.at : end]
        self.at = end + 1
        return decode_text(data)

    def read_byte(self) -> int:
        return self.read_bytes(1)[0]

    def read_int16(self) -> int:
        number: int = _INT16.unpack(self.read_bytes(2))[0]
        return number

    def read_int16s(self) -> list[int]:
        """Several, with their number before them."""
        return [self.read_int16() for _ in range(self.read_int16())]

    def read_int32(self) -> int:
        number: int = _INT32.unpack(self.read_bytes(4))[0]
        return number

    def read_value(self) -> bytes | None:
        """A value with its length before it; -1 is NULL."""
        (length,) = _SIGNED32.unpack(self.read_bytes(4))
        if length == -1:
            return None
        if length < 0:
            raise _malformed_error()
        return self.read_bytes(length)

    def read_bytes(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            raise _malformed_error()
        data = self.data[self.at : end]
        self.at = end
        return data

    @property
    def is_at_end(self) -> bool:
        return self.at == len(self.data)

    def require_end(self) -> None:
        if not self.is_at_end:
            raise _malformed_error()


def decode_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            "invalid byte sequence for encoding UTF8", sqlstate="22021", at=error.start
        ) from None


def _malformed_error() -> InvalidInput:
    return InvalidInput("malformed message", sqlstate="08P01")
