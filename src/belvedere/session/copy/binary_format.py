"""PostgreSQL's binary format of COPY.

file      signature, flags (4 bytes), length of what else is in the header (4 bytes), rows, end
row       number of fields (2 bytes), then each: length (4 bytes, -1 for NULL), value
end       -1 as the number of fields

Nothing of a file is trusted: what does not fit is 22P04, a value that is none of its type 22P03.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO

from belvedere.errors import InvalidInput
from belvedere.types import Row, SqlType
from belvedere.values.binary.decoders import make_binary_decoder
from belvedere.values.binary.encoders import make_binary_encoder

SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_HEADER = SIGNATURE + b"\0\0\0\0" + b"\0\0\0\0"
_END = b"\xff\xff"
_NULL = b"\xff\xff\xff\xff"
_CRITICAL_FLAGS = 0xFFFF0000
_INT16 = struct.Struct("!h")
_INT32 = struct.Struct("!i")
_PAIR = struct.Struct("!Ii")


def write_binary_rows(
    write: Callable[[bytes], object], types: Sequence[SqlType], rows: Iterable[Row]
) -> int:
    """Write rows, each by one call; the header goes with the first, as clients expect it."""
    encoders = [make_binary_encoder(one) for one in types]
    start, count = _HEADER + _INT16.pack(len(types)), 0
    for row in rows:
        count += 1
        parts = [start]
        for encode, value in zip(encoders, row):
            if value is None:
                parts.append(_NULL)
            else:
                data = encode(value)
                parts.append(_INT32.pack(len(data)))
                parts.append(data)
        write(b"".join(parts))
        start = _INT16.pack(len(types))
    write(_END if count else _HEADER + _END)
    return count


def read_binary_rows(
    file: BinaryIO, types: Sequence[SqlType], names: Sequence[str]
) -> Iterator[Row]:
    """The rows of a file, up to its end; an error names the row and the column it is in."""
    _read_header(file)
    decoders, width, number = [make_binary_decoder(one) for one in types], len(types), 0
    while start := file.read(2):  # the end may be missing, as in PostgreSQL
        number += 1
        if len(start) == 1:
            raise _make_unexpected_end_error()
        (count,) = _INT16.unpack(start)
        if count == -1:
            break
        if count != width:
            raise _make_bad_file_error(
                "wrong number of fields", row=number, found=count, expected=width
            )
        values = []
        for name, decode in zip(names, decoders):
            (size,) = _INT32.unpack(_read_exactly(file, 4))
            if size < -1:
                raise _make_bad_file_error("invalid field size", row=number, column=name)
            try:
                values.append(None if size == -1 else decode(_read_exactly(file, size)))
            except InvalidInput as error:
                error.facts.setdefault("row", number)
                error.facts.setdefault("column", name)
                raise
        yield tuple(values)
    if file.read(1):
        raise _make_bad_file_error("received copy data after EOF marker")


def _read_header(file: BinaryIO) -> None:
    if file.read(len(SIGNATURE)) != SIGNATURE:
        raise _make_bad_file_error("COPY file signature not recognized")
    flags, extension = _PAIR.unpack(_read_exactly(file, _PAIR.size))
    if flags & _CRITICAL_FLAGS:
        raise _make_bad_file_error("unrecognized critical flags in COPY file header")
    if extension < 0:
        raise _make_bad_file_error("invalid COPY file header")
    _read_exactly(file, extension)


def _read_exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise _make_unexpected_end_error()
    return data


def _make_unexpected_end_error() -> InvalidInput:
    return _make_bad_file_error("unexpected EOF in COPY data")


def _make_bad_file_error(message: str, **facts: Any) -> InvalidInput:
    return InvalidInput(message, sqlstate="22P04", **facts)
