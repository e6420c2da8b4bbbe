"""The options of foreign servers, foreign tables and their columns, checked when they are made.

    server    gateways      'host:port[,host:port..]': Thrift2 gateways of an HBase
              connections   connections of this process to each gateway, at most
              timeout_ms    how long one request may take
    table     table         'namespace:name', or a name in the namespace `default`
              key           'a, b, c': the columns that the row key consists of, in order
              prefix        bytes that row keys of the table begin with; others are not its rows
              separator     bytes that end a text in the key, unless it is the last column
    column    column        'family:qualifier': the cell; columns of the key have none
              encoding      how the value is written: 'binary', 'ordered' or 'text'

Bytes are written as a BYTEA is: text, or `\\x` and hexadecimal digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from belvedere.catalog.model import CatalogColumn, ForeignTable
from belvedere.errors import Error, InvalidInput, Unsupported
from belvedere.types import Kind, SqlType
from belvedere.values.texts import parse_bytea

WRAPPERS = ("hbase",)
SERVER_OPTIONS = ("gateways", "connections", "timeout_ms")
TABLE_OPTIONS = ("table", "key", "prefix", "separator")
COLUMN_OPTIONS = ("column", "encoding")

BINARY, ORDERED, TEXT = "binary", "ordered", "text"
ENCODINGS = (BINARY, ORDERED, TEXT)
_WIDTHS = {
    Kind.SMALLINT: 2,
    Kind.INTEGER: 4,
    Kind.BIGINT: 8,
    Kind.REAL: 4,
    Kind.DOUBLE: 8,
    Kind.BOOLEAN: 1,
    Kind.TIMESTAMP: 8,
    Kind.TIMESTAMPTZ: 8,
    Kind.UUID: 16,
}
"""Types that have a binary form, and its bytes."""

_ORDERED_KINDS = frozenset(
    {Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.TIMESTAMP, Kind.TIMESTAMPTZ}
)
BAD_OPTION, MISSING_OPTION, BAD_VALUE = "HV00D", "HV00J", "HV024"


class ForeignColumn(NamedTuple):
    """How a column is written: in the row key, or as a cell of a family."""

    slot: int
    name: str
    type: SqlType
    not_null: bool
    encoding: str
    family: bytes = b""
    qualifier: bytes = b""

    @property
    def width(self) -> int | None:
        """The number of its bytes; None: any."""
        return None if self.encoding == TEXT else _WIDTHS.get(self.type.kind)


class ForeignLayout(NamedTuple):
    """A foreign table as its options describe it: the parts of the row key in order, and the cells
    by slot."""

    table: str
    prefix: bytes
    separator: bytes
    key: tuple[ForeignColumn, ...]
    cells: Mapping[int, ForeignColumn]


def require_known_options(options: Mapping[str, str], known: tuple[str, ...], of: str) -> None:
    for name in options:
        if name not in known:
            raise InvalidInput(
                "invalid option",
                sqlstate=BAD_OPTION,
                hint=f"options of a {of} are {', '.join(known)}",
                option=name,
            )


def require_options(options: Mapping[str, str], names: tuple[str, ...], of: str) -> None:
    for name in names:
        if not options.get(name):
            raise InvalidInput(f"a {of} needs this option", sqlstate=MISSING_OPTION, option=name)


def build_layout(table: ForeignTable) -> ForeignLayout:
    """What the options of a table say; InvalidInput names what is wrong with them."""
    require_known_options(table.options, TABLE_OPTIONS, "foreign table")
    require_options(table.options, ("table", "key"), "foreign table")
    columns = {column.name: column for column in table.columns}
    names = [name.strip() for name in table.options["key"].split(",")]
    key = tuple(_build_key_column(table, columns, name) for name in names)
    if len(set(names)) < len(names):
        raise _bad_value("key", table.options["key"], "a column is named twice")
    separator = _parse_bytes("separator", table.options)
    for part in key[:-1]:
        if part.width is None and not separator:
            raise _bad_value("key", table.options["key"], f"{part.name} needs a separator after it")
    cells = {
        column.slot: _build_cell_column(table, column)
        for column in table.columns
        if column.name not in names
    }
    return ForeignLayout(
        table.options["table"], _parse_bytes("prefix", table.options), separator, key, cells
    )


def _build_key_column(
    table: ForeignTable, columns: dict[str, CatalogColumn], name: str
) -> ForeignColumn:
    if name not in columns:
        raise InvalidInput("column of the key does not exist", sqlstate="42703", column=name)
    column = columns[name]
    options = table.column_options[column.slot]
    if "column" in options:
        raise _bad_value("column", options["column"], f"{name} is a part of the row key")
    return ForeignColumn(column.slot, name, column.type, True, _find_encoding(column, options))


def _build_cell_column(table: ForeignTable, column: CatalogColumn) -> ForeignColumn:
    options = table.column_options[column.slot]
    encoding = _find_encoding(column, options)
    written = options.get("column", "")
    family, colon, qualifier = written.partition(":")
    if not family or not colon:
        raise InvalidInput(
            "a column needs this option, unless it is in the key",
            sqlstate=MISSING_OPTION,
            hint="OPTIONS (column 'family:qualifier')",
            option="column",
            column=column.name,
        )
    place = (family.encode(), qualifier.encode())
    return ForeignColumn(column.slot, column.name, column.type, column.not_null, encoding, *place)


def _find_encoding(column: CatalogColumn, options: Mapping[str, str]) -> str:
    require_known_options(options, COLUMN_OPTIONS, "foreign column")
    kind = column.type.kind
    if kind is Kind.ARRAY:
        raise Unsupported("array column of a foreign table", column=column.name)
    encoding = options.get("encoding", BINARY if kind in _WIDTHS else TEXT).lower()
    if encoding not in ENCODINGS:
        raise _bad_value("encoding", encoding, f"one of {', '.join(ENCODINGS)}")
    known = _ORDERED_KINDS if encoding == ORDERED else _WIDTHS
    if encoding != TEXT and kind not in known:
        raise _bad_value("encoding", encoding, f"{column.type} has no such form")
    return encoding


def _parse_bytes(name: str, options: Mapping[str, str]) -> bytes:
    try:
        return parse_bytea(options.get(name, ""))
    except Error as error:
        raise _bad_value(name, options[name], str(error)) from error


def _bad_value(name: str, value: str, why: str) -> InvalidInput:
    return InvalidInput(
        "invalid value of an option", sqlstate=BAD_VALUE, detail=why, option=name, value=value
    )
