"""COPY in binary format: the same bytes as PostgreSQL's, in both directions."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import belvedere
from tests.interfaces.server.conftest import Connect
from tests.oracle.postgres import Postgres

COLUMNS = """id int PRIMARY KEY, s smallint, b bigint, t text, v varchar(5), c char(3), n numeric,
  m numeric(8,2), d date, ts timestamp, tz timestamptz, tm time, iv interval, u uuid, by bytea,
  f double precision, r real, ok boolean"""
ROWS = """INSERT INTO kinds VALUES
  (1, 2, 3, 'täxt', 'abc', 'x', 12345.678900, 1.5, '2024-02-29', '1999-12-31 23:59:59.5',
   '2024-01-01 00:00:00+00', '12:34:56.789', '1 year 2 days 3 seconds',
   '00000000-0000-0000-0000-000000000007', '\\x00ff', 1.25, -0.5, true),
  (2, -2, -3, '', '', '', -0.0001, -99999.99, '0001-01-01', '2000-01-01', '1970-01-01 00:00:00+00',
   '00:00', '-1 month', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '', 'NaN', 'Infinity', false),
  (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
   NULL, NULL),
  (4, 0, 0, '0', '0', '0', 'NaN', 0, '9999-12-31', '2000-01-01', '2000-01-01 00:00:00+00',
   '23:59:59', '0', '00000000-0000-0000-0000-000000000000', '\\x01', 0, 0, false)"""
OUT = "COPY (SELECT * FROM kinds ORDER BY id) TO STDOUT (FORMAT binary)"
SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)


@pytest.fixture
def here(connect: Connect) -> psycopg.Connection[Any]:
    return connect()


@pytest.fixture
def there(postgres: Postgres) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres.uri, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS kinds")
        yield connection
        connection.execute("DROP TABLE IF EXISTS kinds")


def copy_out(connection: psycopg.Connection[Any], statement: str = OUT) -> list[bytes]:
    with connection.cursor().copy(statement) as copy:
        return [bytes(part) for part in copy]


def copy_in(connection: psycopg.Connection[Any], data: bytes) -> None:
    with connection.cursor().copy("COPY kinds FROM STDIN (FORMAT binary)") as copy:
        copy.write(data)


def test_messages_are_those_of_postgres(
    here: psycopg.Connection[Any], there: psycopg.Connection[Any]
) -> None:
    for connection in (here, there):
        connection.execute(f"CREATE TABLE kinds ({COLUMNS})")
        assert copy_out(connection) == [SIGNATURE + b"\xff\xff"]
        connection.execute(ROWS)
    assert copy_out(here) == copy_out(there)
    there.execute("DELETE FROM kinds")
    before = here.execute("SELECT * FROM kinds ORDER BY id").fetchall()
    copy_in(there, b"".join(copy_out(here)))
    data = b"".join(copy_out(there))
    here.execute("DELETE FROM kinds")
    copy_in(here, data)
    assert repr(here.execute("SELECT * FROM kinds ORDER BY id").fetchall()) == repr(before)


def field(data: bytes) -> bytes:
    return struct.pack("!i", len(data)) + data


ONE = struct.pack("!i", 1)
BAD = {
    "nothing": b"",
    "signature": b"PGCOPY\n\r\n\0" + bytes(20),
    "no flags": SIGNATURE[:11],
    "critical flags": SIGNATURE[:11] + b"\0\1\0\0" + bytes(4),
    "extension": SIGNATURE[:15] + b"\xff\xff\xff\xfe",
    "wide row": SIGNATURE + b"\0\3" + field(ONE) * 3 + b"\xff\xff",
    "short row": SIGNATURE + b"\0\2" + field(ONE),
    "field size": SIGNATURE + b"\0\2" + b"\xff\xff\xff\xfe",
    "integer of 8 bytes": SIGNATURE + b"\0\2" + field(bytes(8)) + field(b"x") + b"\xff\xff",
    "no text": SIGNATURE + b"\0\2" + field(ONE) + field(b"\xff") + b"\xff\xff",
    "zero byte": SIGNATURE + b"\0\2" + field(ONE) + field(b"a\0b") + b"\xff\xff",
    "too long": SIGNATURE + b"\0\2" + field(ONE) + field(b"abcdefgh") + b"\xff\xff",
    "null key": SIGNATURE + b"\0\2" + b"\xff\xff\xff\xff" * 2 + b"\xff\xff",
    "twice": SIGNATURE + (b"\0\2" + field(ONE) + field(b"x")) * 2 + b"\xff\xff",
    "more after the end": SIGNATURE + b"\xff\xff" + b"x",
}


def state_of(connection: psycopg.Connection[Any], data: bytes) -> str | None:
    with pytest.raises(psycopg.Error) as told:
        copy_in(connection, data)
    assert connection.execute("SELECT count(*) FROM kinds").fetchone() == (0,)
    return told.value.sqlstate


def test_bad_data_is_refused_as_by_postgres(
    here: psycopg.Connection[Any], there: psycopg.Connection[Any]
) -> None:
    for connection in (here, there):
        connection.execute("CREATE TABLE kinds (id int PRIMARY KEY, v varchar(5))")
        copy_in(connection, SIGNATURE)  # the end may be missing
    found = {what: state_of(here, data) for what, data in BAD.items()}
    assert found == {what: state_of(there, data) for what, data in BAD.items()}
    assert state_of(here, SIGNATURE + b"\0") == "22P04"  # which PostgreSQL takes for the end
    assert state_of(here, SIGNATURE + b"\0\2\x7f\xff\xff\xff") == "22P04"


def test_text_that_is_no_json_is_refused_as_by_postgres(
    here: psycopg.Connection[Any], there: psycopg.Connection[Any]
) -> None:
    data = SIGNATURE + b"\0\2" + field(ONE) + field(b"abc") + b"\xff\xff"
    for connection in (here, there):
        connection.execute("CREATE TABLE kinds (id int PRIMARY KEY, j json)")
        assert state_of(connection, data) == "22P02"


@pytest.mark.parametrize("option", ["delimiter ','", "null ''", "header", "quote 'x'"])
def test_options_of_text_are_refused_as_by_postgres(
    here: psycopg.Connection[Any], there: psycopg.Connection[Any], option: str
) -> None:
    states = []
    for connection in (here, there):
        connection.execute("CREATE TABLE kinds (id int PRIMARY KEY)")
        with pytest.raises(psycopg.Error) as told:
            connection.execute(f"COPY kinds TO STDOUT (FORMAT binary, {option})")
        states.append(told.value.sqlstate)
    assert states[0] == states[1]


def test_files_and_the_embedded_door_have_the_same_bytes(
    here: psycopg.Connection[Any], tmp_path: Path
) -> None:
    here.execute("CREATE TABLE kinds (id int PRIMARY KEY, v varchar(5))")
    here.execute("INSERT INTO kinds VALUES (1, 'a'), (2, NULL)")
    expected = b"".join(copy_out(here))
    here.execute(f"COPY kinds TO '{tmp_path}/kinds.bin' (FORMAT binary)")
    assert (tmp_path / "kinds.bin").read_bytes() == expected
    with belvedere.connect(":memory:") as embedded:
        embedded.execute("CREATE TABLE kinds (id int PRIMARY KEY, v varchar(5))")
        embedded.execute(f"COPY kinds FROM '{tmp_path}/kinds.bin' (FORMAT binary)")
        with embedded.cursor().copy("COPY kinds TO STDOUT (FORMAT binary)") as copy:
            assert b"".join(copy) == expected
        embedded.execute("DELETE FROM kinds")
        with embedded.cursor().copy("COPY kinds FROM STDIN (FORMAT binary)") as copy:
            copy.write(expected)
        rows = embedded.execute("SELECT * FROM kinds ORDER BY id").fetchall()
    assert [tuple(row) for row in rows] == [(1, "a"), (2, None)]
