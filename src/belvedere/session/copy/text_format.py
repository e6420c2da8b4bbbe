"""CSV and PostgreSQL's text format: records of a file, with NULL distinct from empty text.

In CSV an unquoted NULL string (by default nothing at all) is NULL and a quoted one is text, which
the csv module cannot distinguish; so this module splits the records.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from belvedere.errors import InvalidInput
from belvedere.session.copy.options import Header, TextFormat
from belvedere.values.texts import require_text

Record = list[str | None]

_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPED = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_TO_ESCAPE = {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def read_records(
    lines: Iterable[str], style: TextFormat, number: int = 1, names: Sequence[str] = ()
) -> Iterator[tuple[int, Record]]:
    """The records after the header, each with the number of its first line; `number` is that of
    the first line given. `names`: what a header that has to match says."""
    lines = map(require_text, lines)
    records = (
        _read_csv_records(lines, style, number)
        if style.csv
        else _read_text_records(lines, style, number)
    )
    if style.header is not Header.NONE:
        first = next(records, None)
        if style.header is Header.MATCH and first is not None:
            _require_header_names(first[1], names)
    return records


def _require_header_names(header: Record, names: Sequence[str]) -> None:
    if len(header) != len(names):
        raise InvalidInput(
            "wrong number of fields in the header line",
            sqlstate="22P04",
            found=len(header),
            expected=len(names),
        )
    for number, (found, expected) in enumerate(zip(header, names), 1):
        if found != expected:
            raise InvalidInput(
                "column name mismatch in the header line",
                sqlstate="22P04",
                field=number,
                found=found,
                expected=expected,
            )


def is_end_marker(line: str) -> bool:
    """Whether the line ends the data, whatever follows."""
    return line.rstrip("\r\n") == "\\."


def _read_text_records(
    lines: Iterable[str], style: TextFormat, start: int
) -> Iterator[tuple[int, Record]]:
    for number, line in enumerate(lines, start):
        if is_end_marker(line):
            return
        body = line.rstrip("\r\n")
        if "\\" not in body:
            yield number, [None if p == style.null else p for p in body.split(style.delimiter)]
            continue
        parts = _split_text_fields(body, style.delimiter)
        yield (
            number,
            [None if part == style.null else _unescape_text_field(part, number) for part in parts],
        )


def _split_text_fields(body: str, delimiter: str) -> list[str]:
    """The fields as they are written. An escaped delimiter is no delimiter."""
    found, start, at = [], 0, 0
    while at < len(body):
        if body[at] == "\\":
            at += 2
        elif body.startswith(delimiter, at):
            found.append(body[start:at])
            start = at = at + len(delimiter)
        else:
            at += 1
    return [*found, body[start:]]


def _unescape_text_field(text: str, line: int) -> str:
    """Octal and hexadecimal escapes are bytes, which form UTF-8 with the text around them."""
    if "\\" not in text:
        return text
    try:
        return require_text(_ESCAPED.sub(_decode_escape_match, text.encode()).decode())
    except UnicodeDecodeError:
        raise InvalidInput("invalid byte sequence for UTF8", sqlstate="22021", line=line) from None


def _decode_escape_match(found: re.Match[bytes]) -> bytes:
    octal, hexadecimal, other = found.groups()
    if other is not None:
        return _ESCAPES.get(other.decode("latin-1"), "").encode() or other
    return bytes([int(octal, 8) & 0xFF if octal else int(hexadecimal, 16)])


def _read_csv_records(
    lines: Iterable[str], style: TextFormat, start: int
) -> Iterator[tuple[int, Record]]:
    pending, first = "", 0
    for number, line in enumerate(lines, start):
        if not pending:
            if is_end_marker(line):
                return
            if style.quote not in line:
                fields = line.rstrip("\r\n").split(style.delimiter)
                yield number, [None if field == style.null else field for field in fields]
                continue
            first = number
        pending += line
        record = _split_csv_fields(pending, style)
        if record is not None:
            yield first, record
            pending = ""
    if pending:
        raise InvalidInput("unterminated CSV quoted field", sqlstate="22P04", line=first)


def _split_csv_fields(text: str, style: TextFormat) -> Record | None:
    """The fields of a record, or None when a quoted field continues in the next line."""
    body = text.rstrip("\r\n")
    fields: Record = []
    at, size = 0, len(body)
    while True:
        if body.startswith(style.quote, at):
            found = _read_quoted_field(text, at + 1, style)
            if found is None:
                return None
            value, at = found
            end = body.find(style.delimiter, at)
            end = size if end < 0 else end
            fields.append(value + body[at:end])
        else:
            end = body.find(style.delimiter, at)
            end = size if end < 0 else end
            part = body[at:end]
            fields.append(None if part == style.null else part)
        if end >= size:
            return fields
        at = end + len(style.delimiter)


def _read_quoted_field(text: str, at: int, style: TextFormat) -> tuple[str, int] | None:
    parts = []
    while True:
        found = text.find(style.quote, at)
        escaped = text.find(style.escape, at) if style.escape != style.quote else -1
        if 0 <= escaped < found:
            parts.append(text[at:escaped] + text[escaped + 1 : escaped + 2])
            at = escaped + 2
            continue
        if found < 0:
            return None
        parts.append(text[at:found])
        if style.escape == style.quote and text.startswith(style.quote, found + 1):
            parts.append(style.quote)
            at = found + 2
            continue
        return "".join(parts), found + 1


def write_records(
    out: BinaryIO, style: TextFormat, names: list[str], records: Iterable[Record]
) -> int:
    """Write records, each by one call."""
    count = 0
    field = _format_csv_field if style.csv else _format_text_field
    if style.header is not Header.NONE:
        out.write(style.delimiter.join(field(name, style) for name in names).encode() + b"\n")
    quoted = style.force_quote
    for record in records:
        fields = [field(value, style) for value in record]
        for place in quoted:
            if (value := record[place]) is not None:
                fields[place] = _quote_csv_field(value, style)
        out.write(style.delimiter.join(fields).encode() + b"\n")
        count += 1
    return count


def _format_csv_field(value: str | None, style: TextFormat) -> str:
    if value is None:
        return style.null
    special = (style.delimiter, style.quote, "\n", "\r")
    if value == style.null or value == "\\." or any(one in value for one in special):
        return _quote_csv_field(value, style)
    return value


def _quote_csv_field(value: str, style: TextFormat) -> str:
    inner = value.replace(style.escape, style.escape * 2)
    if style.escape != style.quote:
        inner = inner.replace(style.quote, style.escape + style.quote)
    return f"{style.quote}{inner}{style.quote}"


def _format_text_field(value: str | None, style: TextFormat) -> str:
    if value is None:
        return style.null
    text = "".join(_TO_ESCAPE.get(sign, sign) for sign in value)
    return (
        text.replace(style.delimiter, "\\" + style.delimiter) if style.delimiter != "\t" else text
    )
