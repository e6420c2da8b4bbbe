"""COPY FROM STDIN and TO STDOUT as messages: what the session reads and writes as files.

Data goes through as it comes: rows are stored while the client sends more, and sent while more are
computed. So a COPY that loses a race fails, and is not run again.

    in    CopyInResponse -> CopyData* (CopyDone | CopyFail)
    out   CopyOutResponse CopyData* CopyDone, one CopyData a row
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, BinaryIO, cast

from belvedere import interrupts
from belvedere.errors import InvalidInput, Unavailable
from belvedere.interfaces.server.messages import (
    MessageReader,
    MessageWriter,
    build_message,
    decode_text,
    pack_int16,
)
from belvedere.session.context.copy_streams import CopyStreams

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

BUFFER_BYTES = 64 * 1024
_DATA, _DONE, _FAIL, _FLUSH, _SYNC = map(ord, "dcfHS")
_COPY_DONE = build_message(b"c")


class ReceivedData(io.RawIOBase):
    """What a client sends in one COPY, as a file."""

    def __init__(self, reader: MessageReader) -> None:
        self._reader = reader
        self._rest = memoryview(b"")
        self._is_ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        while not self._rest and not self._is_ended:
            self._receive_data()
        place = memoryview(buffer).cast("B")
        count = min(len(place), len(self._rest))
        place[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def _receive_data(self) -> None:
        interrupts.check_statement()
        kind, body = self._reader.read_message()
        if kind == _DATA:
            self._rest = memoryview(body)
        elif kind == _DONE:
            self._is_ended = True
        elif kind == _FAIL:
            reason = decode_text(body.rstrip(b"\0"))
            raise Unavailable("COPY from stdin failed", sqlstate="57014", detail=reason)
        elif kind not in (_FLUSH, _SYNC):
            raise InvalidInput(
                "unexpected message during COPY from stdin", sqlstate="08P01", type=chr(kind)
            )


class SentData(io.RawIOBase):
    """A file of which every write is a message."""

    def __init__(self, writer: MessageWriter) -> None:
        self._writer = writer

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer) -> int:
        body = bytes(data)
        self._writer.add(build_message(b"d", body))
        return len(body)


class ClientCopies:
    """The COPY statements of one client."""

    def __init__(self, streams: CopyStreams, reader: MessageReader, writer: MessageWriter) -> None:
        self._streams = streams
        self._reader = reader
        self._writer = writer
        self._is_sending = False
        streams.input, streams.output = self._open_input, self._open_output
        streams.can_rewrite = False

    def add_end(self) -> None:
        """Tell the client that what it gets is complete, if it gets a COPY."""
        if self._is_sending:
            self._is_sending = False
            self._writer.add(_COPY_DONE)

    def abandon_output(self) -> None:
        """An error ends the COPY."""
        self._is_sending = False

    def _open_input(self) -> BinaryIO:
        self._writer.add(build_message(b"G", self._describe_columns()))
        self._writer.flush()
        return cast("BinaryIO", io.BufferedReader(ReceivedData(self._reader), BUFFER_BYTES))

    def _open_output(self) -> BinaryIO:
        self._writer.add(build_message(b"H", self._describe_columns()))
        self._is_sending = True
        return cast("BinaryIO", SentData(self._writer))

    def _describe_columns(self) -> bytes:
        """The format as a whole, and of each column."""
        each = pack_int16(int(self._streams.binary))
        count = self._streams.column_count
        return each[1:] + pack_int16(count) + each * count
