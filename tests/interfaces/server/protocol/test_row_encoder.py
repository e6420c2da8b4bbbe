"""Rows as DataRow messages: few and many rows have the bytes of one value at a time."""

from __future__ import annotations

import datetime
import struct
from decimal import Decimal
from typing import Any

import pytest

from belvedere.interfaces.server.row_encoder import CHUNK_ROWS, FEW_ROWS, make_row_format
from belvedere.interfaces.server.value_encoders import make_text_encoder
from belvedere.plan.fields import Field
from belvedere.session.statement import bind
from belvedere.types import Kind, SqlType
from belvedere.values.binary.encoders import make_binary_encoder
from tests.interfaces.server.conftest import Connect

VALUES: dict[Kind, Any] = {
    Kind.INTEGER: -7,
    Kind.BIGINT: 2**62,
    Kind.TEXT: "naïve",
    Kind.NUMERIC: Decimal("12.50"),
    Kind.BOOLEAN: False,
    Kind.DOUBLE: 0.5,
    Kind.BYTEA: b"\0\xff",
    Kind.DATE: datetime.date(2024, 2, 29),
    Kind.TIMESTAMPTZ: datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC),
}
FIELDS = tuple(Field(kind.value, SqlType(kind)) for kind in VALUES)


def encode_one_by_one(rows: list[tuple[Any, ...]], code: int) -> bytes:
    sent = b""
    for row in rows:
        body = struct.pack("!H", len(row))
        for field, value in zip(FIELDS, row):
            make = make_binary_encoder if code else make_text_encoder
            data = b"" if value is None else make(field.type)(value)
            body += struct.pack("!i", -1 if value is None else len(data)) + data
        sent += b"D" + struct.pack("!I", len(body) + 4) + body
    return sent


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize("count", [0, 1, FEW_ROWS, FEW_ROWS + 1, CHUNK_ROWS + 3])
def test_rows_have_the_bytes_of_their_values(code: int, count: int) -> None:
    whole = tuple(VALUES.values())
    rows = [
        tuple(None if (i + j) % 4 == 0 else v for j, v in enumerate(whole)) for i in range(count)
    ]
    rows[count // 2 : count // 2 + 1] = [whole][:count]
    found = make_row_format(FIELDS, (code,) * len(FIELDS), datetime.UTC).encode_rows(rows)
    assert b"".join(found) == encode_one_by_one(rows, code)


@pytest.mark.parametrize("length", [0, 4_085, 4_086, 4_095, 4_096, 70_000])
def test_values_of_any_length_among_short_ones(length: int) -> None:
    rows = [(1, 2, "x" * size, None, True, 1.0, b"", None, None) for size in (1, length, 0, 2, 3)]
    found = make_row_format(FIELDS, (0,) * len(FIELDS), datetime.UTC).encode_rows(rows)
    assert b"".join(found) == encode_one_by_one(rows, 0)


def test_columns_that_are_null_in_all_rows() -> None:
    rows = [(None,) * len(FIELDS)] * 9
    found = make_row_format(FIELDS, (0,) * len(FIELDS), datetime.UTC).encode_rows(rows)
    assert b"".join(found) == encode_one_by_one(rows, 0)


def test_rows_without_columns() -> None:
    assert b"".join(make_row_format((), (), datetime.UTC).encode_rows([()] * 6)) == (
        b"D\0\0\0\6\0\0" * 6
    )


def test_text_with_a_plan_is_not_parsed_again(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect()
    client.execute("CREATE TABLE t (a int PRIMARY KEY)")
    client.execute("INSERT INTO t VALUES (1), (2)")
    text = "SELECT a FROM t WHERE a = %s"
    assert client.execute(text, (1,), prepare=False).fetchall() == [(1,)]
    parsed: list[str] = []
    parse = bind.parse_statements
    monkeypatch.setattr(bind, "parse_statements", lambda t: (parsed.append(t), parse(t))[1])
    assert client.execute(text, (2,), prepare=False).fetchall() == [(2,)]
    assert parsed == []
    client.execute("ALTER TABLE t ADD COLUMN b int")
    parsed.clear()
    assert client.execute(text, (2,), prepare=False).fetchall() == [(2,)]
    assert len(parsed) == 1
