"""docs/keyspace.md shows what the program prints; `--update` writes the examples anew."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from belvedere.codec import accumulator, keyspace
from belvedere.codec.keys import KeyCodec, KeyColumn
from belvedere.codec.printer import RelationDescription, print_pair, print_value
from belvedere.codec.record import Change, encode_record
from belvedere.codec.rows import RowLayout, Slot
from belvedere.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NUMERIC,
    SMALLINT,
    TEXT,
    TIMESTAMPTZ,
    UUID,
    Interval,
    SqlType,
    char_type,
    numeric_type,
)

PAGE = Path(__file__).parents[2] / "docs" / "keyspace.md"
BLOCK = re.compile(r"<!-- printed: (\w+) -->\n```text\n(.*?)```\n", re.DOTALL)

ORDERS = 107
KEY = KeyCodec((KeyColumn(BIGINT),), keyspace.row_prefix(ORDERS))
LAYOUT = RowLayout((Slot(BIGINT), Slot(INTEGER), Slot(TEXT), Slot(numeric_type(10, 2)), Slot(TEXT)))
ROW = (7, 3, "tea", Decimal("12.50"), None)
DESCRIPTION = RelationDescription(
    "shop.orders", KEY, LAYOUT, ("id", "customer", "item", "total", "note")
)


def spaced(data: bytes) -> str:
    return data.hex(" ")


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """Columns side by side, each as wide as its widest entry."""
    lines = list(rows)
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip() + "\n"
        for line in lines
    )


def families() -> str:
    return table(
        [
            ("meta 'format'", spaced(keyspace.meta_key("format"))),
            ("log 42", spaced(keyspace.log_key(42))),
            ("watermark of group 3", spaced(keyspace.watermark_key(3))),
            ("every row of relation 107", spaced(keyspace.row_prefix(ORDERS)) + " ..."),
            ("row (7) of relation 107", spaced(KEY.encode((7,)))),
        ]
    )


def keys() -> str:
    shown: list[tuple[SqlType, Any]] = [
        *((SMALLINT, 7), (BIGINT, 7), (BIGINT, -1), (BOOLEAN, True)),
        *((DOUBLE, 1.5), (DOUBLE, -1.5), (DOUBLE, -0.0), (DOUBLE, float("nan"))),
        *((NUMERIC, Decimal("12.5")), (NUMERIC, Decimal("12.50")), (NUMERIC, Decimal("-12.5"))),
        *((NUMERIC, Decimal("1E+2")), (NUMERIC, Decimal(0)), (NUMERIC, Decimal("NaN"))),
        *((TEXT, ""), (TEXT, "a"), (TEXT, "a\0b"), (char_type(4), "a   "), (BYTEA, b"\x00\xff")),
        *((DATE, date(1970, 1, 2)), (TIMESTAMPTZ, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))),
        *((INTERVAL, Interval(1, 0, 0)), (INTERVAL, Interval(0, 30, 0))),
        *((UUID, uuid.UUID(int=1)), (BIGINT, None)),
    ]
    return table(
        (
            str(sql_type),
            print_value(value),
            spaced(KeyCodec((KeyColumn(sql_type),)).encode_first(value)),
        )
        for sql_type, value in shown
    )


def directions() -> str:
    rows = []
    for order, column in (
        ("ASC", KeyColumn(INTEGER)),
        ("ASC NULLS FIRST", KeyColumn(INTEGER, nulls_first=True)),
        ("DESC", KeyColumn(INTEGER, descending=True)),
        ("DESC NULLS LAST", KeyColumn(INTEGER, descending=True, nulls_first=False)),
    ):
        codec = KeyCodec((column,))
        rows += [
            (order, print_value(value), spaced(codec.encode_first(value))) for value in (7, None)
        ]
    return table(rows)


def ranges() -> str:
    codec = KeyCodec((KeyColumn(INTEGER), KeyColumn(TEXT)))
    shown = [
        ("a = 7", codec.prefix_range((7,))),
        ("a = 7 and b >= 'x'", codec.bounded_range((7,), low="x")),
        ("a = 7 and b > 'x'", codec.bounded_range((7,), low="x", low_inclusive=False)),
        ("a = 7 and b < 'x'", codec.bounded_range((7,), high="x", high_inclusive=False)),
        ("a = 7 and b is null", codec.null_range((7,))),
        ("a > 7", codec.bounded_range((), low=7, low_inclusive=False)),
    ]
    lines = []
    for condition, (start, end) in shown:
        lines += [(condition, "from", spaced(start)), ("", "to", spaced(end or b""))]
    return table(lines)


def row() -> str:
    data = LAYOUT.encode(ROW)
    shape = LAYOUT.shape_for(len(LAYOUT.slots))
    field = shape.fields
    cut = [
        ("slots", 0, 2),
        ("null bitmap", 2, 3),
        *(
            (f"{DESCRIPTION.columns[index]}", field[index].offset, field[index].offset + width)
            for index, width in ((0, 8), (1, 4), (3, 8))
        ),
        ("end of item", field[2].offset, field[2].offset + 4),
        ("end of note", field[4].offset, field[4].offset + 4),
        ("tail", shape.tail, len(data)),
    ]
    return (
        table((str(start), name, spaced(data[start:end])) for name, start, end in cut)
        + f"\n{print_pair(KEY.encode((7,)), data, lambda relation: DESCRIPTION)}\n"
    )


def record() -> str:
    key = KEY.encode((7,))[keyspace.ROW_PREFIX_BYTES :]
    changes = [
        Change(ORDERS, key, None, LAYOUT.encode(ROW)),
        Change(ORDERS, key, LAYOUT.encode(ROW), LAYOUT.encode((*ROW[:4], "gift"))),
    ]
    data = encode_record(
        42, 0x0102030405060708, 3, 1_700_000_000_000_000, bytes(15) + b"\x09", changes
    )
    names = (
        *(("hash", 8), ("length", 4), ("position", 8), ("hash of the record before", 8)),
        *(("catalog version", 8), ("commit time", 8), ("transaction", 16), ("changes", 4)),
        *(("first change", 20), ("second change", 20)),
    )
    lines, start = [], 0
    for name, width in names:
        lines.append((str(start), name, spaced(data[start : start + width])))
        start += width
    lines.append((str(start), "tail", f"{len(data) - start} bytes"))
    pair = print_pair(keyspace.log_key(42), data, lambda relation: DESCRIPTION)
    return table(lines) + f"\n{pair}\n"


def state() -> str:
    payload = b"p"
    return table(
        (str(amounts), spaced(accumulator.encode(payload, amounts)))
        for amounts in ((2, 15), (2, 2**64))
    )


EXAMPLES: dict[str, Callable[[], str]] = {
    function.__name__: function
    for function in (families, keys, directions, ranges, row, record, state)
}


def test_the_page_shows_every_example_once() -> None:
    assert sorted(name for name, _ in BLOCK.findall(PAGE.read_text())) == sorted(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_page_shows_what_the_program_prints(name: str, update_golden: bool) -> None:
    printed = EXAMPLES[name]()
    text = PAGE.read_text()
    if update_golden:
        start = text.index(f"<!-- printed: {name} -->\n```text\n")
        begin = text.index("```text\n", start) + len("```text\n")
        PAGE.write_text(text[:begin] + printed + text[text.index("```\n", begin) :])
        return
    assert dict(BLOCK.findall(text))[name] == printed
