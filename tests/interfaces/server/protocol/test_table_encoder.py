"""Arrow columns are sent as the same bytes as the rows that they would become."""

from __future__ import annotations

import datetime
import random
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from belvedere.execution.duckdb.rows import rows_of
from belvedere.interfaces.server import table_encoder
from belvedere.interfaces.server.row_encoder import make_row_format
from belvedere.interfaces.server.table_encoder import TableEncoder
from belvedere.plan.fields import Field
from belvedere.session.context.result import Result
from belvedere.types import Kind, SqlType
from tests.interfaces.server.conftest import Connect
from tests.interfaces.server.protocol.test_fuzz import message
from tests.interfaces.server.protocol.test_prepared_rounds import (
    EXECUTE,
    SYNC,
    RawClient,
    bind,
)

NOW = datetime.datetime(2024, 2, 29, 12, 30, 1, 5)
COLUMNS: dict[str, tuple[SqlType, pa.DataType, list[Any]]] = {
    "smallint": (SqlType(Kind.SMALLINT), pa.int16(), [0, 1, -1, 2**15 - 1, -(2**15)]),
    "int": (SqlType(Kind.INTEGER), pa.int32(), [0, 7, -12, 2**31 - 1, -(2**31)]),
    "bigint": (SqlType(Kind.BIGINT), pa.int64(), [0, 10**18, -(2**63), 2**63 - 1]),
    "text": (SqlType(Kind.TEXT), pa.string(), ["", "a", "naïve €𝄞", "x" * 5000]),
    "large text": (SqlType(Kind.TEXT), pa.large_string(), ["", "b", "é" * 300]),
    "words": (SqlType(Kind.VARCHAR), pa.dictionary(pa.int8(), pa.string()), ["", "b", "é"]),
    "char": (SqlType(Kind.CHAR, 3), pa.string(), ["a  ", "abc"]),
    "json": (SqlType(Kind.JSON), pa.string(), ['{"a": 1}', "null"]),
    "boolean": (SqlType(Kind.BOOLEAN), pa.bool_(), [True, False]),
    "numeric": (SqlType(Kind.NUMERIC, 9, 2), pa.decimal128(9, 2), [Decimal("1.50"), Decimal("-7")]),
    "double": (SqlType(Kind.DOUBLE), pa.float64(), [0.1, 1e300, float("nan"), float("-inf")]),
    "real": (SqlType(Kind.REAL), pa.float32(), [0.5, 1.25]),
    "bytea": (SqlType(Kind.BYTEA), pa.binary(), [b"", b"\0\xff\\"]),
    "date": (SqlType(Kind.DATE), pa.date32(), [datetime.date(1, 1, 1), datetime.date(2024, 2, 29)]),
    "timestamp": (SqlType(Kind.TIMESTAMP), pa.timestamp("us"), [NOW]),
    "timestamptz": (SqlType(Kind.TIMESTAMPTZ), pa.timestamp("us", "UTC"), [NOW]),
    "uuid": (SqlType(Kind.UUID), pa.binary(16), [uuid.UUID(int=5).bytes]),
}
FIELDS = tuple(Field(name, one[0]) for name, one in COLUMNS.items())


def make_table(rows: int, nulls: float, chosen: random.Random) -> pa.Table:
    made = []
    for _, arrow, values in COLUMNS.values():
        column = [
            None if chosen.random() < nulls else values[chosen.randrange(len(values))]
            for _ in range(rows + 3)
        ]
        made.append(pa.array(column, arrow).slice(2, rows))  # not from the start of its buffers
    return pa.table(made, names=list(COLUMNS))


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize("nulls", [0, 0.3, 1])
@pytest.mark.parametrize("rows", [0, 1, 70])
def test_columns_have_the_bytes_of_their_rows(
    code: int, nulls: float, rows: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_encoder, "BATCH_ROWS", 16)
    chosen = random.Random(seed)
    parts = [make_table(rows, nulls, chosen), make_table(rows // 2, nulls, chosen)]
    table = pa.concat_tables(parts)
    zone = datetime.timezone(datetime.timedelta(hours=9))
    row_format = make_row_format(FIELDS, (code,) * len(FIELDS), zone)
    found = b"".join(row_format.encode_result(Result("SELECT", FIELDS, table=table)))
    wanted = list(rows_of(table, tuple(field.type for field in FIELDS)))
    assert found == b"".join(map(row_format._encode_row, wanted))


def test_batches_are_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_encoder, "BATCH_BYTES", 10_000)
    fields = (Field("a", SqlType(Kind.TEXT)),)
    table = pa.table({"a": ["x" * 3000] * 20})
    row_format = make_row_format(fields, (0,), datetime.UTC)
    parts = list(row_format.encode_result(Result("SELECT", fields, table=table)))
    assert len(parts) > 5
    assert b"".join(parts) == b"".join(row_format.encode_rows([("x" * 3000,)] * 20))


@pytest.fixture
def sent_tables(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the results that were sent by their columns."""
    found: list[int] = []
    encode = TableEncoder.encode_table

    def encode_and_note(self: TableEncoder, table: pa.Table) -> Iterator[bytes]:
        found.append(table.num_rows)
        return encode(self, table)

    monkeypatch.setattr(TableEncoder, "encode_table", encode_and_note)
    return found


@pytest.mark.parametrize("binary", [False, True])
def test_many_rows_over_the_wire(connect: Connect, sent_tables: list[int], *, binary: bool) -> None:
    con = connect()
    con.execute("CREATE TABLE t (a int PRIMARY KEY, b text, c boolean, d numeric(9, 2))")
    con.execute(
        "INSERT INTO t SELECT i, CASE WHEN i % 3 > 0 THEN 'n' || i END, i % 2 = 0, i * 0.25"
        " FROM generate_series(1, 9000) g (i)"
    )
    text = "SELECT a, b, c, d FROM t WHERE a > %s ORDER BY a"
    wanted = [
        (i, f"n{i}" if i % 3 else None, i % 2 == 0, Decimal(f"{i * 0.25:.2f}"))
        for i in range(1, 9001)
    ]
    with con.cursor(binary=binary) as cursor:
        assert cursor.execute(text, (0,)).rowcount == 9000
        assert cursor.fetchall() == wanted
        for _ in range(3):  # one prepared, in one packet and in parts
            assert len(cursor.execute(text, (8000,), prepare=True).fetchall()) == 1000
    many = "SELECT a, b, c, d FROM t WHERE a < 9001"
    assert con.execute(many).fetchall() == wanted
    for _ in range(3):
        assert con.execute(many, prepare=True, binary=binary).fetchall() == wanted
    assert sent_tables == [9000] * 4
    with con.transaction(), con.pipeline():
        assert len(con.execute(text, (10,)).fetchall()) == 8990


def test_a_portal_that_was_read_to_its_end_has_no_more_rows(
    server: Path, connect: Connect, sent_tables: list[int]
) -> None:
    con = connect()
    con.execute("CREATE TABLE t (a int PRIMARY KEY)")
    con.execute("INSERT INTO t SELECT i FROM generate_series(1, 9000) g (i)")
    client = RawClient(server, con.info.user)
    client.prepare("many", "SELECT a, a FROM t WHERE a > 0", ())
    answer = client.ask(bind("many", []) + EXECUTE + EXECUTE + SYNC)
    assert [one[5:-1] for one in answer if one[:1] == b"C"] == [b"SELECT 9000", b"SELECT 0"]
    assert sum(one[:1] == b"D" for one in answer) == 9000
    limited = message(b"E", b"\0\0\0\x11\x94")  # 4,500
    answer = client.ask(bind("many", []) + limited + EXECUTE + EXECUTE + SYNC)
    assert [one[:1] for one in answer if one[:1] != b"D"] == [b"2", b"s", b"C", b"C", b"Z"]
    assert [one[5:-1] for one in answer if one[:1] == b"C"] == [b"SELECT 4500", b"SELECT 0"]
    assert sent_tables == [9000]
    client.connection.close()
