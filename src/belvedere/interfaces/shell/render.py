"""Rendering of rows as text: an aligned table, one column per line, CSV or JSON.

Tables are for people to look at: control characters of values and names are shown escaped, as psql
shows them, so that no value can move the cursor or give orders to the terminal. CSV and JSON are
for programs and hold values as they are; the shell escapes them when it prints to a terminal.
"""

from __future__ import annotations

import enum
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from belvedere.plan.fields import Fields
from belvedere.plan.functions import text_formatter
from belvedere.plan.functions.nested.json import json_encoder, quote_json_string
from belvedere.types import Kind, Row, SqlType

_RIGHT = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.NUMERIC, Kind.REAL, Kind.DOUBLE})


_CSV_QUOTED = re.compile(r'[",\n\r]')
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class OutputFormat(enum.StrEnum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def render(
    fields: Fields,
    rows: list[Row],
    form: OutputFormat,
    *,
    expanded: bool = False,
    null: str = "",
    tuples_only: bool = False,
) -> str:
    """`null` is how a table shows NULL; `tuples_only`: without heads and the number of rows."""
    match form:
        case OutputFormat.CSV:
            return _render_csv(fields, rows, tuples_only)
        case OutputFormat.JSON:
            return _render_json(fields, rows)
        case OutputFormat.TABLE if expanded:
            return _render_expanded(fields, rows, null)
        case OutputFormat.TABLE:
            lines = _render_table(fields, rows, null)
            return "\n".join(lines[2:-1] if tuples_only else lines)


def format_cell(value: Any, sql_type: SqlType, null: str = "") -> str:
    """A value as psql shows it."""
    if value is None:
        return null
    if isinstance(value, bool):
        return "t" if value else "f"
    return str(text_formatter(sql_type)(value))


def escape_controls(text: str) -> str:
    """The text with control characters other than tabs and line ends shown as escapes."""
    return _CONTROL.sub(_control_escape, text)


def _control_escape(found: re.Match[str]) -> str:
    sign = found[0]
    return "\\r" if sign == "\r" else f"\\x{ord(sign):02X}"


def _format_cells(fields: Fields, rows: list[Row], null: str) -> list[list[str]]:
    return [
        [format_cell(value, field.type, null) for value, field in zip(row, fields)] for row in rows
    ]


def _escape_cells(fields: Fields, rows: list[Row], null: str) -> tuple[list[str], list[list[str]]]:
    """Names and cells of a table, with control characters escaped."""
    cells = [[escape_controls(text) for text in row] for row in _format_cells(fields, rows, null)]
    return [escape_controls(field.name).replace("\n", "\\n") for field in fields], cells


def display_width(text: str) -> int:
    """The number of terminal columns that a text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    marks = sum(unicodedata.combining(sign) != 0 for sign in text)
    return len(text) + wide - marks


def _render_table(fields: Fields, rows: list[Row], null: str) -> list[str]:
    names, cells = _escape_cells(fields, rows, null)
    widths = [
        max([display_width(name), *(_widest_line(row[i]) for row in cells)])
        for i, name in enumerate(names)
    ]
    heads = [_center_text(name, width) for name, width in zip(names, widths)]
    lines = [" " + " | ".join(heads), "-" + "-+-".join("-" * width for width in widths) + "-"]
    rights = [field.type.kind in _RIGHT for field in fields]
    for row in cells:
        lines += _row_lines(row, widths, rights)
    count = len(rows)
    lines.append(f"({count} row{'' if count == 1 else 's'})")
    return [line.rstrip() for line in lines]


def _widest_line(text: str) -> int:
    return max(display_width(line) for line in text.split("\n"))


def _center_text(text: str, width: int) -> str:
    space = width - display_width(text)
    return " " * (space // 2) + text + " " * (space - space // 2)


def _row_lines(row: list[str], widths: list[int], rights: list[bool]) -> list[str]:
    """A row takes as many lines as its tallest cell."""
    parts = [text.split("\n") for text in row]
    height = max((len(part) for part in parts), default=1)
    lines = []
    for number in range(height):
        shown = []
        for part, width, right in zip(parts, widths, rights):
            text = part[number] if number < len(part) else ""
            space = " " * (width - display_width(text))
            shown.append(space + text if right else text + space)
        lines.append(" " + " | ".join(shown))
    return lines


def _render_expanded(fields: Fields, rows: list[Row], null: str) -> str:
    names, cells = _escape_cells(fields, rows, null)
    width = max(map(display_width, names), default=0)
    lines = []
    for number, row in enumerate(cells, 1):
        lines.append(f"-[ record {number} ]-" + "-" * max(width - 10, 0))
        lines += [
            f"{name}{' ' * (width - display_width(name))} | {text}"
            for name, text in zip(names, row)
        ]
    return "\n".join(lines) or "(0 rows)"


def _render_csv(fields: Fields, rows: list[Row], tuples_only: bool) -> str:
    """As COPY writes it: NULL is nothing, empty text is \"\"."""
    heads = [] if tuples_only else [",".join(_quote_csv(field.name) for field in fields)]
    return "\n".join(heads + [",".join(_csv_cells(fields, row)) for row in rows])


def _csv_cells(fields: Fields, row: Row) -> Iterator[str]:
    for value, field in zip(row, fields):
        yield "" if value is None else _quote_csv(format_cell(value, field.type))


def _quote_csv(text: str) -> str:
    if text and not _CSV_QUOTED.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'


def _render_json(fields: Fields, rows: list[Row]) -> str:
    """As PostgreSQL writes values in JSON: a number keeps its digits."""
    names = [quote_json_string(field.name) for field in fields]
    shows = [json_encoder(field.type) for field in fields]
    objects = []
    for row in rows:
        values = ["null" if value is None else show(value) for show, value in zip(shows, row)]
        inside = ",\n".join(f"  {name}: {value}" for name, value in zip(names, values))
        objects.append(f" {{\n{inside}\n }}")
    return "[\n" + ",\n".join(objects) + "\n]" if objects else "[]"
