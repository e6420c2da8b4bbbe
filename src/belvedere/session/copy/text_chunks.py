"""Chunks of a text file as Arrow columns, where every value is spelled plainly.

Arrow splits and converts a chunk of lines many times faster than Python does. It only gets chunks
that mean the same to it and to PostgreSQL: complete records, one spelling for each type, values
that fit. Any other chunk is read record by record, which also finds its errors and their lines.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from belvedere.session.copy.options import TextFormat
from belvedere.types import TIMED_KINDS, Kind, SqlType

CHUNK_LINES = 20_000

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
_TEXTS = (Kind.TEXT, Kind.VARCHAR, Kind.CHAR)


class LineChunk(NamedTuple):
    """Lines of complete records; `number` is the line number of the first."""

    number: int
    lines: list[str]


def split_line_chunks(lines: IO[str], style: TextFormat) -> Iterator[LineChunk]:
    """The file in chunks that end where a record does, judged by the number of quotes."""
    number, each = 1, iter(lines)
    while taken := list(itertools.islice(each, CHUNK_LINES)):
        if style.csv and style.quote == style.escape:
            open_quote = sum(line.count(style.quote) for line in taken) % 2
            while open_quote and (line := next(each, None)) is not None:
                taken.append(line)
                open_quote = (open_quote + line.count(style.quote)) % 2
        else:
            taken += each  # counting quotes does not find the ends of records
        yield LineChunk(number, taken)
        number += len(taken)


def try_parse_arrow_columns(
    chunk: LineChunk, style: TextFormat, types: list[SqlType]
) -> list[Any] | None:
    """The columns of a chunk, or None when it has to be read record by record."""
    import pyarrow as pa  # heavy

    text = "".join(chunk.lines)
    if "\n" in chunk.lines or "\r\n" in chunk.lines:  # Arrow takes these for a row of NULLs
        return None
    if not _is_readable_by_arrow(text, style) or not all(
        _can_arrow_convert_type(one) for one in types
    ):
        return None
    try:
        table = _read_string_columns(text, style, len(types))
        if not style.csv and sum(c.null_count for c in table.columns) != text.count("\\"):
            return None
        found = [
            _try_convert_string_column(c.combine_chunks(), t) for c, t in zip(table.columns, types)
        ]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeEncodeError):
        return None
    return None if any(one is None for one in found) else found


def _is_readable_by_arrow(text: str, style: TextFormat) -> bool:
    if "\0" in text or text.count("\r") != text.count("\r\n") or not text.endswith("\n"):
        return False
    if style.csv:
        return style.quote == style.escape and "\\." not in text
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


def _read_string_columns(text: str, style: TextFormat, width: int) -> Any:
    import pyarrow as pa  # heavy
    import pyarrow.csv as files  # heavy

    names = [f"c{i}" for i in range(width)]
    quoting = {"quote_char": style.quote if style.csv else False}
    return files.read_csv(
        pa.py_buffer(text.encode()),
        files.ReadOptions(use_threads=False, column_names=names, block_size=len(text) * 4 + 1),
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
            check_utf8=False,
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
