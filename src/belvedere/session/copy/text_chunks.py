"""Chunks of a text file as Arrow columns, where every value is spelled plainly.

Arrow splits and converts a chunk of lines many times faster than Python does. It only gets chunks
that mean the same to it and to PostgreSQL: complete records, one spelling for each type, values
that fit. Any other chunk is read record by record, which also finds its errors and their lines.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from belvedere.errors import InvalidInput
from belvedere.session.copy.options import TextFormat
from belvedere.types import TIMED_KINDS, Kind, SqlType

CHUNK_BYTES = 1024 * 1024

_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_PLAIN = {
    Kind.SMALLINT: "-?[0-9]{1,18}",
    Kind.INTEGER: "-?[0-9]{1,18}",
    Kind.BIGINT: "-?[0-9]{1,18}",
    Kind.DOUBLE: r"-?[0-9]{1,15}(\.[0-9]{1,15})?",
    Kind.BOOLEAN: "t|f|true|false",
    Kind.DATE: _DATE,
    Kind.TIMESTAMP: rf"{_DATE} [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]{{1,6}})?",
}
_TAKEN_OTHERWISE = (b"\n", b"\r\n", b"\xef\xbb\xbf")
"""Beginnings that Arrow takes for a row of NULLs, and for nothing."""
_TEXTS = (Kind.TEXT, Kind.VARCHAR, Kind.CHAR)


class TextChunk(NamedTuple):
    """Bytes of complete records; `number` is the line number of the first."""

    number: int
    data: bytes

    def split_lines(self) -> list[str]:
        try:
            return io.StringIO(self.data.decode(), newline="").readlines()
        except UnicodeDecodeError as error:
            raise InvalidInput(
                "invalid byte sequence for UTF8",
                sqlstate="22021",
                line=self.number + _count_lines(self.data[: error.start]),
            ) from None

    def has_plain_header(self, style: TextFormat) -> bool:
        """Whether the first line is a record, without a quoted line end."""
        return style.quote.encode() not in self._first_line

    def skip_line(self) -> TextChunk:
        return TextChunk(self.number + 1, self.data[len(self._first_line) :])

    @property
    def _first_line(self) -> bytes:
        return self.data.splitlines(keepends=True)[0]  # of bytes: only at \r, \n and \r\n


def split_text_chunks(file: BinaryIO, style: TextFormat) -> Iterator[TextChunk]:
    """The file in chunks that end where a record does, judged by the number of quotes. Where a
    quote is escaped otherwise than by itself that number says nothing: the file is one chunk."""
    quote = style.quote.encode() if style.csv else b""
    number, rest = 1, b""
    if style.csv and style.quote != style.escape:
        rest = file.read()
    while part := file.read(CHUNK_BYTES):
        data = rest + part
        end = _find_records_end(data, len(rest), quote)
        chunk, rest = data[:end], data[end:]
        if chunk:
            yield TextChunk(number, chunk)
            number += _count_lines(chunk)
    if rest:
        yield TextChunk(number, rest)


def _find_records_end(data: bytes, known: int, quote: bytes) -> int:
    """Where the last complete record ends; 0 if none does. None ends in the first `known` bytes."""
    end = _find_last_line_end(data, len(data))
    quotes = data.count(quote, 0, end) if quote else 0
    while end > known and quotes % 2:
        before = _find_last_line_end(data, data.rfind(quote, 0, end))
        quotes -= data.count(quote, before, end)
        end = before
    return end if end > known else 0


def _find_last_line_end(data: bytes, before: int) -> int:
    """The place after the last line of the data up to `before`; 0 if there is none. A carriage
    return ends a line only where it is plain that no line feed follows."""
    end = data.rfind(b"\n", 0, before) + 1
    return end or data.rfind(b"\r", 0, before - 1) + 1


def _count_lines(data: bytes) -> int:
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


def try_parse_arrow_columns(
    chunk: TextChunk, style: TextFormat, types: list[SqlType]
) -> list[Any] | None:
    """The columns of a chunk, or None when it has to be read record by record."""
    import pyarrow as pa  # heavy

    data = chunk.data
    if not _is_readable_by_arrow(data, style) or not all(
        _can_arrow_convert_type(one) for one in types
    ):
        return None
    try:
        table = _read_string_columns(data, style, len(types))
        if not style.csv and sum(c.null_count for c in table.columns) != data.count(b"\\"):
            return None
        found = [
            _try_convert_string_column(c.combine_chunks(), t) for c, t in zip(table.columns, types)
        ]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return None if any(one is None for one in found) else found


def _is_readable_by_arrow(data: bytes, style: TextFormat) -> bool:
    if b"\0" in data or not data.endswith(b"\n") or data.startswith(_TAKEN_OTHERWISE):
        return False
    returns = data.count(b"\r")
    if returns and returns != data.count(b"\r\n"):
        return False
    if b"\n\n" in data or (returns and b"\n\r\n" in data):  # Arrow takes it for a row of NULLs
        return False
    if style.csv:
        return style.quote == style.escape and b"\\." not in data
    return style.null == "\\N"


def _can_arrow_convert_type(sql_type: SqlType) -> bool:
    if sql_type.kind in TIMED_KINDS and sql_type.precision is not None:
        return False
    bounded = sql_type.kind is Kind.NUMERIC and (sql_type.scale or 0) >= 0
    return (
        sql_type.kind in _PLAIN
        or sql_type.kind in _TEXTS
        or (bounded and sql_type.precision is not None and sql_type.precision <= 38)
    )


def _read_string_columns(data: bytes, style: TextFormat, width: int) -> Any:
    import pyarrow as pa  # heavy
    import pyarrow.csv as files  # heavy

    names = [f"c{i}" for i in range(width)]
    quoting = {"quote_char": style.quote if style.csv else False}
    return files.read_csv(
        pa.py_buffer(data),
        files.ReadOptions(use_threads=False, column_names=names, block_size=len(data) + 1),
        files.ParseOptions(
            delimiter=style.delimiter,
            newlines_in_values=style.csv,
            **quoting,
        ),
        files.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[style.null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _try_convert_string_column(column: Any, sql_type: SqlType) -> Any:
    """The column with values of the type; None when a value is spelled otherwise."""
    import pyarrow as pa  # heavy
    import pyarrow.compute as pc  # heavy

    kind = sql_type.kind
    if kind in _TEXTS:
        return column  # lengths are checked when the rows are encoded
    if kind is Kind.NUMERIC:
        assert sql_type.precision is not None
        scale = sql_type.scale or 0
        form = rf"-?[0-9]{{1,{max(sql_type.precision - scale, 1)}}}"
        form += rf"(\.[0-9]{{1,{scale}}})?" if scale else ""
    else:
        form = _PLAIN[kind]
    if pc.all(pc.match_substring_regex(column, f"^({form})$")).as_py() is False:
        return None
    match kind:
        case Kind.NUMERIC:
            return column.cast(pa.decimal128(sql_type.precision, sql_type.scale or 0))
        case Kind.BOOLEAN:
            return pc.starts_with(column, "t")
        case Kind.DOUBLE:
            return column.cast(pa.float64())
        case Kind.DATE:
            return column.cast(pa.date32())
        case Kind.TIMESTAMP:
            return column.cast(pa.timestamp("us"))
        case _:
            return column.cast(pa.int64())
