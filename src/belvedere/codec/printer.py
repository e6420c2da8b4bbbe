"""Readable text of any key and value of a store.

    row shop.orders (7) -> {id: 7, customer: 3, total: 12.50}
    log 42  2026-11-15 12:00:00+00:00  transaction 0102..  catalog 3
      insert shop.orders (7) -> {id: 7, customer: 3, total: 12.50}

Printing never fails: an unknown relation is shown by number and bytes, a damaged value with what is
wrong with it. Names and texts come from users, so control characters, line breaks and everything
else that does not print are escaped: one pair can never be mistaken for two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from belvedere.codec import accumulator, keyspace
from belvedere.codec.keys import KeyCodec
from belvedere.codec.record import Change, decode_record, record_length
from belvedere.codec.rows import RowLayout
from belvedere.codec.scalars import numeric_text
from belvedere.errors import Corruption
from belvedere.types import Interval, Row

TEXT_LENGTH_MAX = 200
BYTES_LENGTH_MAX = 64
_SHOWN_BYTES_MAX = 1024 * 1024
_PLAIN_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$")


@dataclass(frozen=True, slots=True)
class RelationDescription:
    """What the printer has to know of a relation.

    `layout` None: the value is not a row; `text` may know how to print it, and raises Corruption
    when it cannot. `accumulates`: the value is linear view state, and the layout, if there is one,
    is its payload's. A column name of None is a dropped column. `longer` is the key of entries that
    `key` does not fit: those of a unique index with a NULL among their values.
    """

    name: str
    key: KeyCodec
    layout: RowLayout | None
    columns: tuple[str | None, ...]
    accumulates: bool = False
    text: Callable[[bytes], str] | None = None
    longer: KeyCodec | None = None


Describe = Callable[[int], RelationDescription | None]


def print_pair(key: bytes, value: bytes, describe: Describe) -> str:
    """One line for a key and its value; a log record has one more line for each change."""
    shown = print_key(key, describe)
    try:
        parsed = keyspace.parse_key(key)
    except Corruption as error:
        return f"{shown} -> {print_bytes(value)}  ({error.message})"
    match parsed:
        case keyspace.MetaKey():
            return f"{shown} -> {print_raw(value)}"
        case keyspace.LogKey(position):
            return f"{shown}  {_print_record(position, value, describe)}"
        case keyspace.WatermarkKey():
            return f"{shown} -> {_print_position(value)}"
        case keyspace.PieceKey():
            return f"{shown} -> {len(value)} bytes"
        case keyspace.StreamKey() | keyspace.ClaimKey():
            return f"{shown} -> {print_bytes(value)}"
        case keyspace.RowKey(relation, _):
            return f"{shown} -> {_print_value(value, describe(relation))}"


def print_key(key: bytes, describe: Describe) -> str:
    """A key without its value: the family, and the fields of that family."""
    try:
        parsed = keyspace.parse_key(key)
    except Corruption:
        return f"unknown {print_bytes(key)}"
    match parsed:
        case keyspace.MetaKey(name):
            return f"meta {print_name(name)}"
        case keyspace.LogKey(position):
            return f"log {position}"
        case keyspace.WatermarkKey(group):
            return f"watermark of {_group_or_view_name(group, describe)}"
        case keyspace.StreamKey(view, position, number):
            return (
                f"changes of {_group_or_view_name(view, describe)} at {position}, number {number}"
            )
        case keyspace.ClaimKey(group):
            return f"claim of {_group_or_view_name(group, describe)}"
        case keyspace.PieceKey(position, number):
            return f"piece {number} of log {position}"
        case keyspace.RowKey(relation, row_key):
            description = describe(relation)
            name = _relation_name(relation, description)
            return f"row {name} {_print_key(row_key, description)}"


def print_value(value: Any) -> str:
    """One SQL value, much as PostgreSQL would write it as a literal."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case str():
            return _print_text(value)
        case bytes():
            return print_bytes(value)
        case Decimal():
            return _print_decimal(value)
        case Interval():
            clock = _print_clock(value.microseconds)
            return f"{value.months} months {value.days} days {clock}"
        case _:
            return str(value)


def print_name(name: str) -> str:
    """A name as it is when it is harmless, quoted and escaped when it is not."""
    if name and _PLAIN_NAME.issuperset(name):
        return name
    return f'"{_escape_text(name, chr(34))}"'


def print_bytes(data: bytes) -> str:
    """Hexadecimal, cut when long."""
    shown = data[:BYTES_LENGTH_MAX].hex()
    rest = len(data) - BYTES_LENGTH_MAX
    return f"\\x{shown}" + (f"... ({rest} more bytes)" if rest > 0 else "")


def print_raw(data: bytes) -> str:
    """Bytes of unknown meaning: as text when they are printable text, otherwise hexadecimal."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return print_bytes(data)
    return _print_text(text) if text.isprintable() else print_bytes(data)


def _print_record(position: int, value: bytes, describe: Describe) -> str:
    try:
        record = decode_record(value, position)
        changes = list(record.changes())
    except Corruption as error:
        if len(value) > _SHOWN_BYTES_MAX:
            return f"{len(value)} of {record_length(value)} bytes: {error.message}"
        return f"damaged: {error.message}  {print_bytes(value)}"
    time = datetime(1970, 1, 1, tzinfo=UTC)
    try:
        shown_time = str(time + timedelta(microseconds=record.time))
    except OverflowError:
        shown_time = f"{record.time} us"
    head = f"{shown_time}  transaction {record.transaction.hex()}"
    head += f"  catalog {record.catalog_version}"
    head += f"  hash {record.hash:016x} after {record.previous_hash:016x}"
    return "\n".join([head, *("  " + _print_change(change, describe) for change in changes)])


def _print_change(change: Change, describe: Describe) -> str:
    description = describe(change.relation)
    name = _relation_name(change.relation, description)
    where = f"{name} {_print_key(change.key, description)}"
    old = None if change.old is None else _print_value(change.old, description)
    new = None if change.new is None else _print_value(change.new, description)
    if old is None:
        return f"insert {where} -> {new}"
    if new is None:
        return f"delete {where}, was {old}"
    return f"update {where} -> {new}, was {old}"


def _group_or_view_name(id_: int, describe: Describe) -> str:
    """A view, or a group of them, which has no name."""
    description = describe(id_)
    return f"group {id_}" if description is None else f"view {print_name(description.name)}"


def _relation_name(relation: int, description: RelationDescription | None) -> str:
    if description is not None:
        return print_name(description.name)
    system = {keyspace.CATALOG_RELATION: "catalog", keyspace.SEQUENCE_RELATION: "sequences"}
    return system.get(relation, f"relation {relation}")


def _print_key(key: bytes, description: RelationDescription | None) -> str:
    """`key` is without family and relation, which are part of the codec's prefix if it has one."""
    if description is None:
        return print_bytes(key)
    try:
        values = _decode_key(key, description)
    except Corruption as error:
        return f"{print_bytes(key)} (damaged: {error.message})"
    return "(" + ", ".join(map(print_value, values)) + ")"


def _decode_key(key: bytes, description: RelationDescription) -> Row:
    try:
        return description.key.decode(description.key.prefix + key)
    except Corruption:
        if description.longer is None:
            raise
        return description.longer.decode(description.longer.prefix + key)


def _print_value(value: bytes, description: RelationDescription | None) -> str:
    if description is None:
        return print_raw(value)
    try:
        if description.text is not None:
            return _escape_text(description.text(value), "")
        if description.accumulates:
            payload, amounts = accumulator.decode(value)
            return f"{_print_payload(payload, description)} amounts {amounts}"
        return _print_payload(value, description)
    except Corruption as error:
        return f"damaged: {error.message}  {print_bytes(value)}"


def _print_payload(payload: bytes, description: RelationDescription) -> str:
    if description.layout is None:
        return print_raw(payload)
    return print_row(description.columns, description.layout.decode(payload))


def print_row(columns: tuple[str | None, ...], row: Row) -> str:
    """{name: value, ...} without the dropped columns."""
    pairs = (
        f"{print_name(name)}: {print_value(value)}"
        for name, value in zip(columns, row)
        if name is not None
    )
    return "{" + ", ".join(pairs) + "}"


def _print_position(value: bytes) -> str:
    if len(value) == 8:
        return f"position {int.from_bytes(value, 'big')}"
    return print_raw(value)


def _print_decimal(value: Decimal) -> str:
    try:
        return numeric_text(value)
    except OverflowError:
        return str(value)


def _print_clock(microseconds: int) -> str:
    sign = "-" if microseconds < 0 else ""
    seconds, fraction = divmod(abs(microseconds), 1_000_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    clock = f"{sign}{hours:02}:{minute:02}:{second:02}"
    return clock + (f".{fraction:06}" if fraction else "")


def _print_text(text: str) -> str:
    rest = len(text) - TEXT_LENGTH_MAX
    shown = f"'{_escape_text(text[:TEXT_LENGTH_MAX], chr(39))}'"
    return shown + (f"... ({rest} more characters)" if rest > 0 else "")


def _escape_text(text: str, quote: str) -> str:
    """Doubles the quote and the backslash, and writes what does not print as \\u{...}."""
    return "".join(
        char * 2
        if quote and char in (quote, "\\")
        else char
        if char.isprintable()
        else f"\\u{{{ord(char):x}}}"
        for char in text
    )
