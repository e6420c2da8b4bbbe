from __future__ import annotations

import datetime
import decimal
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import belvedere
from belvedere.errors import InvalidInput
from belvedere.session.statement.parameters import infer_sql_type, make_assignment_converter
from belvedere.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    NUMERIC,
    SMALLINT,
    TEXT,
    TIMESTAMPTZ,
    UUID,
    VARCHAR,
    Interval,
    SqlType,
    array_of,
    char_type,
    numeric_type,
    varchar_type,
)

D = decimal.Decimal
PLUS_TWO = datetime.timezone(datetime.timedelta(hours=2))


@pytest.mark.parametrize(
    ("sql_type", "given", "expected"),
    [
        (INTEGER, 7, 7),
        (INTEGER, "7", 7),
        (INTEGER, 7.0, 7),
        (BIGINT, 2**40, 2**40),
        (NUMERIC, 7, D(7)),
        (numeric_type(5, 2), "1.005", D("1.01")),
        (DOUBLE, D("0.5"), 0.5),
        (TEXT, 5, "5"),
        (TEXT, "x", "x"),
        (BOOLEAN, "yes", True),
        (BYTEA, bytearray(b"a"), b"a"),
        (DATE, "2024-02-29", datetime.date(2024, 2, 29)),
        (UUID, "00000000-0000-0000-0000-000000000001", uuid.UUID(int=1)),
        (INTERVAL, datetime.timedelta(days=1, seconds=2), Interval(0, 1, 2_000_000)),
        (array_of(INTEGER), [1, None, "3"], [1, None, 3]),
        (INTEGER, None, None),
        (
            TIMESTAMPTZ,
            datetime.datetime(2024, 1, 1, 2, tzinfo=PLUS_TWO),
            datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
        ),
    ],
)
def test_values_become_values_of_the_type(sql_type: SqlType, given: Any, expected: Any) -> None:
    (found,) = make_assignment_converter((sql_type,))((given,))
    assert found == expected
    assert type(found) is type(expected)


def test_one_converter_takes_values_of_many_python_types_again_and_again() -> None:
    convert = make_assignment_converter([numeric_type(5, 2), DATE])
    day = datetime.date(2024, 2, 29)
    for _ in range(3):
        assert convert(("1.005", day)) == (D("1.01"), day)
        assert convert((D("1.005"), "2024-02-29")) == (D("1.01"), day)
        assert convert((2, None)) == (D(2), None)
        with pytest.raises(InvalidInput):
            convert((D("1000.00"), day))
        with pytest.raises(InvalidInput):
            convert(("1.00", True))


@pytest.mark.parametrize(
    ("sql_type", "given", "sqlstate"),
    [
        (INTEGER, 1.5, "42804"),
        (INTEGER, True, "42804"),
        (INTEGER, 2**31, "22003"),
        (SMALLINT, 40_000, "22003"),
        (INTEGER, "x", "22P02"),
        (INTEGER, object(), "42804"),
        (array_of(INTEGER), 5, "42804"),
    ],
)
def test_what_does_not_fit_is_refused(sql_type: SqlType, given: Any, sqlstate: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        make_assignment_converter((sql_type,))((given,))
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize("given", [(), (1,), (1, 2, 3)])
def test_the_number_of_parameters_must_be_right(given: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput) as caught:
        make_assignment_converter((INTEGER, INTEGER))(given)
    assert caught.value.sqlstate == "08P01"


def test_integers_have_the_smallest_type_that_holds_them() -> None:
    assert [infer_sql_type(v) for v in (1, 2**31, 2**63)] == [INTEGER, BIGINT, NUMERIC]


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800", "é\udc80"])
@pytest.mark.parametrize(
    "sql_type", [TEXT, JSON, varchar_type(9), VARCHAR, char_type(9), array_of(TEXT)]
)
def test_text_without_an_encoding_is_refused(sql_type: SqlType, text: str) -> None:
    convert = make_assignment_converter([sql_type])
    for given in (text, [text]) if sql_type.element is not None else (text, text):
        with pytest.raises(InvalidInput) as caught:
            convert((given,))
        assert caught.value.sqlstate == "22021"


def test_nul_and_halves_of_characters_are_refused_at_every_door(tmp_path: Path) -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")
        wrong = [
            ("SELECT ?", ("a\0",)),
            ("SELECT $1 || $2", ("a", "\ud800")),
            ("INSERT INTO t VALUES (1, 'x'), (2, ?)", ("\0",)),
            ("SELECT * FROM t WHERE b = ANY (?)", (["x", "\0"],)),
            ("SELECT '\ud800'", ()),
            ("SELECT chr(0)", ()),
        ]
        for statement, given in wrong:
            with pytest.raises(belvedere.Error) as caught:
                con.execute(statement, given).fetchall()
            assert caught.value.sqlstate in ("22021", "54000")
        with pytest.raises(belvedere.DataError):
            con.executemany("INSERT INTO t VALUES (?, ?)", [(3, "x"), (4, "\0")])
        path = tmp_path / "rows"
        files = {"csv": "5,x\n6,a\0\n", "text": "5\tx\n6\ta\\000\n"}
        for form, text in files.items():
            path.write_text(text)
            with pytest.raises(belvedere.DataError) as caught:
                con.execute(f"COPY t FROM '{path}' (FORMAT {form})")
            assert caught.value.sqlstate == "22021"
        parquet.write_table(pa.table({"a": pa.array([7], pa.int32()), "b": ["a\0"]}), path)
        with pytest.raises(belvedere.DataError) as caught:
            con.execute(f"COPY t FROM '{path}' (FORMAT parquet)")
        assert caught.value.sqlstate == "22021"
        assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)
