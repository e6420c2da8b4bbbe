"""Arrow batches over a connection, as chunks of an IPC stream in bounded data frames.

A reader never allocates more for one read than `READ_BYTES_MAX`, whatever the received metadata
asks for, and every batch is validated before use: completely when a client sent it, by its offsets
and lengths when the owner sent it.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from belvedere.errors import InvalidInput, Unavailable
from belvedere.remote.frames import DATA_BYTES_MAX, receive_data, send_data

READ_BYTES_MAX = 1024 * 1024 * 1024
_GATHER_BYTES = 64 * 1024


def send_batches(
    connection: socket.socket, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> int:
    """Send all batches and the end of the stream; returns the number of rows."""
    sink = FrameSink(connection)
    rows = write_batches(sink, schema, batches)
    sink.finish()
    return rows


def write_batches(sink: FrameSink, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    rows = 0
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def receive_batches(connection: socket.socket) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema, and the batches as they arrive. The iterator ends after the empty frame."""
    return read_batches(FrameSource(connection), full=False)


def read_batches(source: FrameSource, *, full: bool) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Read and validate batches: every value with `full`, else only offsets and lengths."""
    try:
        reader = pa.ipc.open_stream(pa.PythonFile(source, mode="r"))
    except (pa.ArrowException, OSError) as error:
        source.drain()
        raise _not_arrow(error) from error
    return reader.schema, _validate_batches(reader, source, full)


def _validate_batches(reader: Any, source: FrameSource, full: bool) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            batch = reader.read_next_batch()
            batch.validate(full=full)
        except StopIteration:
            source.drain()
            return
        except pa.ArrowException as error:
            source.drain()
            raise _not_arrow(error) from error
        yield batch


def _not_arrow(error: Exception) -> InvalidInput:
    return InvalidInput("not an arrow stream", sqlstate="08P01", detail=str(error)[:200])


class FrameSink:
    """The file an IPC writer writes to."""

    closed = False

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = bytearray()

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        if len(view) < _GATHER_BYTES:
            self._buffer += view
            if len(self._buffer) >= _GATHER_BYTES:
                self.flush()
            return len(view)
        self.flush()
        for at in range(0, len(view), DATA_BYTES_MAX):
            send_data(self._connection, view[at : at + DATA_BYTES_MAX])
        return len(view)

    def flush(self) -> None:
        if self._buffer:
            send_data(self._connection, bytes(self._buffer))
            self._buffer.clear()

    def finish(self) -> None:
        self.flush()
        send_data(self._connection, b"")

    def close(self) -> None:
        """Called by Arrow; the connection stays open."""


class FrameSource:
    """The file an IPC reader reads from, up to the empty frame."""

    closed = False

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._frame = memoryview(b"")
        self.ended = False
        self.broken = False
        """The framing is lost, and with it the rest of the conversation."""

    def read(self, count: int = -1) -> bytes:
        if count < 0 or count > READ_BYTES_MAX:
            raise InvalidInput("part of an arrow stream is too long", sqlstate="08P01")
        if len(self._frame) >= count:
            taken, self._frame = self._frame[:count], self._frame[count:]
            return bytes(taken)
        pieces, missing = [], count
        while missing and (self._frame or self._next_frame()):
            piece, self._frame = self._frame[:missing], self._frame[missing:]
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    def drain(self) -> None:
        """Skip to the end of the stream, so that the connection stays usable."""
        while self._next_frame():
            pass

    def _next_frame(self) -> bool:
        if self.ended:
            return False
        try:
            data = receive_data(self._connection)
            if data is None:
                raise Unavailable("connection closed within a stream", sqlstate="08006")
        except Exception:
            self.ended = self.broken = True
            raise
        self._frame = memoryview(data)
        self.ended = not data
        return not self.ended

    def close(self) -> None:
        """Called by Arrow; the connection stays open."""
