"""COPY FROM STDIN and TO STDOUT as messages: what the session reads and writes as files.

A statement that loses a race runs again, so data of a client is kept (in memory, then in a
temporary file) until the statement is complete, and rows for it are sent when they are final.

    in    CopyInResponse -> CopyData* (CopyDone | CopyFail)
    out   CopyOutResponse CopyData* CopyDone, one CopyData a row
"""

from __future__ import annotations

import io
import tempfile
from typing import IO, TYPE_CHECKING, BinaryIO, cast

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
    from _typeshed import ReadableBuffer as Buffer

SPOOL_BYTES = 8 * 1024 * 1024
PART_BYTES = 64 * 1024
_DATA, _DONE, _FAIL, _FLUSH, _SYNC = map(ord, "dcfHS")
_COPY_DONE = build_message(b"c")


class ReceivedText(io.TextIOWrapper):
    """What a client sends, as a text file. It is asked for at the first `seek`."""

    def __init__(self, streams: CopyStreams, reader: MessageReader, writer: MessageWriter) -> None:
        self._spool = _open_spool()
        super().__init__(self._spool, encoding="utf-8", newline="")
        self._streams = streams
        self._messages = (reader, writer)
        self._received = False

    def seek(self, at: int, whence: int = 0) -> int:
        if not self._received:
            self._received = True
            self._receive_data()
        return super().seek(at, whence)

    def forget_data(self) -> None:
        """Ask the client again at the next COPY."""
        if self._received:
            self._received = False
            super().seek(0)
            self.truncate()

    def _receive_data(self) -> None:
        reader, writer = self._messages
        writer.add(build_message(b"G", _describe_columns(self._streams)))
        writer.flush()
        while True:
            kind, body = reader.read_message()
            if kind == _DATA:
                self._spool.write(body)
            elif kind == _DONE:
                return
            elif kind == _FAIL:
                reason = decode_text(body.rstrip(b"\0"))
                raise Unavailable("COPY from stdin failed", sqlstate="57014", detail=reason)
            elif kind not in (_FLUSH, _SYNC):
                raise InvalidInput(
                    "unexpected message during COPY from stdin", sqlstate="08P01", type=chr(kind)
                )


class MessageBuffer(io.BufferedIOBase):
    """A binary file of which every write is a message."""

    def __init__(self, spool: IO[bytes]) -> None:
        self._spool = spool

    def write(self, data: Buffer) -> int:
        self._spool.write(build_message(b"d", bytes(data)))
        return len(bytes(data))


class SentText(io.StringIO):
    """What a client gets, as a text file that is written a row at a time."""

    def __init__(self, streams: CopyStreams) -> None:
        super().__init__()
        self._streams = streams
        self._spool = _open_spool()
        self._is_used = False

    def seek(self, at: int, whence: int = 0) -> int:
        self._is_used = True
        return self._spool.seek(at, whence)

    def truncate(self, size: int | None = None) -> int:
        return self._spool.truncate(size)

    def write(self, text: str) -> int:
        self._spool.write(build_message(b"d", text.encode()))
        return len(text)

    @property
    def buffer(self) -> BinaryIO:
        return cast("BinaryIO", MessageBuffer(self._spool))

    def send_rows(self, writer: MessageWriter) -> None:
        """Send what one statement wrote, if it was a COPY to here."""
        if not self._is_used:
            return
        writer.add(build_message(b"H", _describe_columns(self._streams)))
        self._spool.seek(0)
        while part := self._spool.read(PART_BYTES):
            writer.add(part)
        writer.add(_COPY_DONE)
        self.forget_rows()

    def forget_rows(self) -> None:
        if self._is_used:
            self._is_used = False
            self._spool.seek(0)
            self._spool.truncate()

    def close(self) -> None:
        self._spool.close()
        super().close()


def _open_spool() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(SPOOL_BYTES)


def _describe_columns(streams: CopyStreams) -> bytes:
    """The format as a whole, and of each column."""
    each = pack_int16(int(streams.binary))
    return each[1:] + pack_int16(streams.column_count) + each * streams.column_count
