from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belvedere.codec import accumulator, keyspace
from belvedere.codec.keys import KeyCodec, KeyColumn
from belvedere.codec.printer import (
    RelationDescription,
    print_key,
    print_name,
    print_pair,
    print_value,
)
from belvedere.codec.record import Change, encode_record
from belvedere.codec.rows import RowLayout, Slot
from belvedere.errors import Corruption
from belvedere.types import BIGINT, TEXT, Interval, numeric_type
from tests.codec.values import ROW_TYPES, corpus, examples

ORDERS = 107
COUNTS = 108
ORDERS_KEY = KeyCodec((KeyColumn(BIGINT),), keyspace.row_prefix(ORDERS))
ORDERS_LAYOUT = RowLayout((Slot(BIGINT), Slot(BIGINT), Slot(TEXT), Slot(numeric_type(10, 2))))
COUNTS_KEY = KeyCodec((KeyColumn(TEXT),))
COUNTS_LAYOUT = RowLayout((Slot(TEXT),))
KNOWN = {
    ORDERS: RelationDescription(
        "shop.orders", ORDERS_KEY, ORDERS_LAYOUT, ("id", "customer", None, "total")
    ),
    COUNTS: RelationDescription("shop.counts", COUNTS_KEY, COUNTS_LAYOUT, ("name",), True),
}
ROW = ORDERS_LAYOUT.encode((7, 3, None, Decimal("12.50")))


def shown(key: bytes, value: bytes) -> str:
    return print_pair(key, value, KNOWN.get)


def test_a_row_reads_like_a_sentence() -> None:
    assert shown(ORDERS_KEY.encode((7,)), ROW) == (
        "row shop.orders (7) -> {id: 7, customer: 3, total: 12.50}"
    )
    assert print_key(ORDERS_KEY.encode((7,)), KNOWN.get) == "row shop.orders (7)"


def test_a_key_is_shown_alone_whatever_its_text() -> None:
    description = RelationDescription("v", COUNTS_KEY, None, ())
    key = keyspace.row_prefix(COUNTS) + COUNTS_KEY.encode_first("a -> b  c")
    assert print_key(key, lambda relation: description) == "row v ('a -> b  c')"
    assert print_key(keyspace.log_key(42), KNOWN.get) == "log 42"
    assert print_key(b"", KNOWN.get) == "unknown \\x"


def test_a_relation_may_bring_its_own_words() -> None:
    def text(value: bytes) -> str:
        if not value:
            raise Corruption("nothing there")
        return f"table {value.decode()}"

    description = RelationDescription("catalog", COUNTS_KEY, None, (), text=text)
    key = keyspace.row_prefix(COUNTS) + COUNTS_KEY.encode_first("a")
    told = [print_pair(key, value, lambda relation: description) for value in (b"t\n'\\", b"")]
    assert told[0] == "row catalog ('a') -> table t\\u{a}'\\"
    assert told[1].startswith("row catalog ('a') -> damaged: nothing there")


def test_view_state_shows_payload_and_amounts() -> None:
    state = accumulator.encode(COUNTS_LAYOUT.encode(("a",)), (2, 15))
    assert shown(keyspace.row_prefix(COUNTS) + COUNTS_KEY.encode_first("a"), state) == (
        "row shop.counts ('a') -> {name: 'a'} amounts (2, 15)"
    )


def test_a_log_record_shows_its_changes() -> None:
    key = ORDERS_KEY.encode((7,))[keyspace.ROW_PREFIX_BYTES :]
    newer = ORDERS_LAYOUT.encode((7, 3, None, Decimal(1)))
    changes = [
        Change(ORDERS, key, None, ROW),
        Change(ORDERS, key, ROW, newer),
        Change(ORDERS, key, newer, None),
        Change(99, b"\x01", None, b""),
    ]
    record = encode_record(42, 5, 3, 1_700_000_000_000_000, bytes(16), changes)
    lines = shown(keyspace.log_key(42), record).splitlines()
    assert lines[0].startswith(
        "log 42  2023-11-14 22:13:20+00:00  transaction 00000000000000000000000000000000  catalog 3"
    )
    assert lines[1:] == [
        "  insert shop.orders (7) -> {id: 7, customer: 3, total: 12.50}",
        "  update shop.orders (7) -> {id: 7, customer: 3, total: 1.00}, "
        "was {id: 7, customer: 3, total: 12.50}",
        "  delete shop.orders (7), was {id: 7, customer: 3, total: 1.00}",
        "  insert relation 99 \\x01 -> ''",
    ]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (keyspace.meta_key("format"), b"1", "meta format -> '1'"),
        (keyspace.meta_key("a\nlog 9"), b"\xff", 'meta "a\\u{a}log 9" -> \\xff'),
        (keyspace.watermark_key(3), (42).to_bytes(8, "big"), "watermark of group 3 -> position 42"),
        (keyspace.row_prefix(500) + b"\x01", b"\0", "row relation 500 \\x01 -> \\x00"),
        (keyspace.row_prefix(1) + b"\x01", b"t", "row catalog \\x01 -> 't'"),
        (b"\x7f\x00", b"x", "unknown \\x7f00 -> \\x78  (key of an unknown family)"),
        (b"", b"", "unknown \\x -> \\x  (key does not follow its family)"),
    ],
)
def test_other_families_and_unknown_things_are_shown(
    key: bytes, value: bytes, expected: str
) -> None:
    assert shown(key, value) == expected


def test_damage_is_named_and_not_raised() -> None:
    assert "damaged: row cannot be decoded" in shown(ORDERS_KEY.encode((7,)), ROW[:-1])
    assert "damaged: key cannot be decoded" in shown(ORDERS_KEY.encode((7,)) + b"x", ROW)
    record = encode_record(42, 5, 3, 0, bytes(16), [])
    assert "damaged: log record" in shown(keyspace.log_key(43), record)
    assert "damaged: log record" in shown(keyspace.log_key(42), record[:-1])
    assert "damaged: view state" in shown(
        keyspace.row_prefix(COUNTS) + COUNTS_KEY.encode_first("a"), b"\x09"
    )
    assert shown(keyspace.log_key(1), encode_record(1, 0, 0, 2**63 - 1, bytes(16), []))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "NULL"),
        (True, "true"),
        ("it's", "'it''s'"),
        ("a\\b\n\u202e", "'a\\\\b\\u{a}\\u{202e}'"),
        (b"\x00\xff", "\\x00ff"),
        (Decimal("1E+2"), "100"),
        (Decimal("1E+999999"), "1E+999999"),
        (Interval(1, -2, -1_500_000), "1 months -2 days -00:00:01.500000"),
        (datetime.date(2020, 2, 29), "2020-02-29"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (0.1, "0.1"),
        ("x" * 300, "'" + "x" * 200 + "'... (100 more characters)"),
        (b"\0" * 70, "\\x" + "00" * 64 + "... (6 more bytes)"),
    ],
    ids=repr,
)
def test_values_are_shown_like_literals(value: Any, expected: str) -> None:
    assert print_value(value) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shop.orders", "shop.orders"),
        ("", '""'),
        ('a"b', '"a""b"'),
        ("a\x1b[31m", '"a\\u{1b}[31m"'),
        ("a, b: 1}", '"a, b: 1}"'),
        ("a\u2028b", '"a\\u{2028}b"'),
    ],
)
def test_hostile_names_print_safely(name: str, expected: str) -> None:
    assert print_name(name) == expected


@settings(max_examples=examples(150))
@given(st.binary(max_size=30) | st.just(ORDERS_KEY.encode((7,))), st.binary(max_size=90), st.text())
def test_printing_never_fails_and_keeps_to_its_line(key: bytes, value: bytes, name: str) -> None:
    description = RelationDescription(name, ORDERS_KEY, ORDERS_LAYOUT, (name, name, name, name))
    for line in (
        print_pair(key, value, lambda relation: description),
        print_pair(key, value, lambda relation: None),
    ):
        assert line.isprintable()


def test_every_value_prints_on_one_line() -> None:
    for sql_type in ROW_TYPES:
        for value in corpus(sql_type):
            assert print_value(value).isprintable()
