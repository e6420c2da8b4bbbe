"""COPY of text by columns gives what COPY record by record gives, errors included."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere
from belvedere.session.copy import copy, text_chunks
from belvedere.session.copy.options import parse_copy_options

TABLE = (
    "CREATE TABLE t (id int PRIMARY KEY, s smallint, l bigint, n numeric(8, 2), f float8,"
    " b boolean, c char(4), v varchar(6), x text, d date, ts timestamp)"
)
FIRST = "1,2,3,4.50,1.5,t,ab,abc,text,2024-01-31,2024-01-31 12:30:00\n"
FILES = {
    "plain": FIRST + "2,-2,-3,-4,0,false,,,,2024-02-29,2024-01-31 00:00:00.123456\n",
    "nulls": FIRST + "2" + "," * 10 + "\n",
    "quoted": FIRST + '2,,,,,,"a","b,""c","",,\n3,,,,,,,,"two\nlines",,\n4,,,,,,,,"a"b,,\n',
    "quote inside": FIRST + '2,,,,,,,,a"b,,\n3,,,,,,,,c"d,,\n',
    "windows lines": FIRST.replace("\n", "\r\n") + "2" + "," * 10 + "\r\n",
    "no last line end": FIRST + "2" + "," * 10,
    "other spellings": FIRST + "2,+2,1_000,1e2,inf,yes,abcd  ,abc,x,20240229,2024-01-31T12:00\n",
    "rounded": FIRST + "2,,,1.005,,,,,,,\n",
    "blanks": FIRST + "2, 2,,,,,    ,     ,  ,,\n",
    "end marker": FIRST + "\\.\nnot,read\n",
    "not ascii": FIRST + "2,,,,,,äöüß,éééééé,日本語,,\n",
    "too large": FIRST + "2,40000,,,,,,,,,\n",
    "too many digits": FIRST + "2,,,1234567.00,,,,,,,\n",
    "no number": FIRST + "2,x,,,,,,,,,\n",
    "no date": FIRST + "2,,,,,,,,,2023-02-29,\n",
    "no year": FIRST + "2,,,,,,,,,0000-02-01,\n",
    "hour too many": FIRST + "2,,,,,,,,,,2024-01-31 25:00:00\n",
    "too long": FIRST + "2,,,,,,abcde,,,,\n",
    "too long by blanks": FIRST + "2,,,,,,,abc      ,,,\n",
    "missing column": FIRST + "2,3\n",
    "extra column": FIRST + "2" + "," * 11 + "\n",
    "empty line": FIRST + "\n",
    "null key": FIRST + "," * 10 + "\n",
    "same key": FIRST + FIRST,
    "byte order mark": "\ufeff" + FIRST,
    "open quote": FIRST + '2,,,,,,,,"a,,\n',
}
TEXTS = {
    "plain": "1\t2\t3\t4.5\t1\tt\ta\tb\tc d\t2024-01-01\t\\N\n",
    "escapes": "1\t2\t3\t4.5\t1\tt\ta\tb\tc\\td\t2024-01-01\t\\N\n",
    "end marker": "1" + "\t\\N" * 10 + "\n\\.\nx\n",
    "byte order mark": "\ufeff1" + "\t\\N" * 10 + "\n",
    "empty line": "1" + "\t\\N" * 10 + "\n\n",
    "two end marks": "1" + "\t\\N" * 10 + "\n\\.\n2" + "\t\\N" * 10 + "\n\\.\n",
    "quotes": '1\t\\N\t\\N\t\\N\t\\N\t\\N\t"\t"a"\t"\t\\N\t\\N\n',
}


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute(TABLE)
        yield opened


def outcome(con: belvedere.Connection, file: Path, options: str) -> object:
    """The rows afterwards, or the error."""
    con.execute("TRUNCATE t")
    try:
        con.execute(f"COPY t FROM '{file}' ({options})")
    except belvedere.Error as error:
        assert con.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
        return error.sqlstate, str(error)
    return repr(con.execute("SELECT * FROM t ORDER BY id").fetchall())


def both(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch, file: Path, options: str
) -> tuple[object, object]:
    found = outcome(con, file, options)
    with monkeypatch.context() as patch:
        patch.setattr(text_chunks, "try_parse_arrow_columns", lambda *_: None)
        return found, outcome(con, file, options)


@pytest.mark.parametrize("size", [1, 40, 2**20])
@pytest.mark.parametrize("name", FILES)
def test_csv(
    con: belvedere.Connection,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    size: int,
) -> None:
    monkeypatch.setattr(text_chunks, "CHUNK_BYTES", size)
    file = tmp_path / "t.csv"
    file.write_bytes(FILES[name].encode())
    columns, records = both(con, monkeypatch, file, "FORMAT csv")
    assert columns == records
    file.write_bytes(b"id,s,l,n,f,b,c,v,x,d,ts\n" + FILES[name].encode())
    columns, records = both(con, monkeypatch, file, "FORMAT csv, HEADER true")
    assert columns == records


@pytest.mark.parametrize("size", [1, 30, 2**20])
@pytest.mark.parametrize("name", TEXTS)
def test_text(
    con: belvedere.Connection,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    size: int,
) -> None:
    monkeypatch.setattr(text_chunks, "CHUNK_BYTES", size)
    file = tmp_path / "t.txt"
    file.write_bytes(TEXTS[name].encode())
    columns, records = both(con, monkeypatch, file, "FORMAT text")
    assert columns == records


def test_plain_chunks_are_taken_as_columns(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(text_chunks, "CHUNK_BYTES", 10 * len(FIRST))
    read: list[int] = []
    parsed = copy._parse_typed_records
    monkeypatch.setattr(
        copy,
        "_parse_typed_records",
        lambda lines, first, *rest: read.append(first) or parsed(lines, first, *rest),
    )
    rows = [FIRST.replace("1,", f"{number},", 1) for number in range(1, 41)]
    rows[24] = rows[24].replace("2024-01-31", "January 31 2024", 1)  # in the third chunk
    file = tmp_path / "t.csv"
    file.write_text("".join(rows))
    con.execute(f"COPY t FROM '{file}' (FORMAT csv)")
    assert con.execute("SELECT count(*), count(DISTINCT d) FROM t").fetchall() == [(40, 1)]
    (first,) = read
    assert 15 < first <= 25


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20, 1_000])
@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ({}, ["a\n", "b\r\n", "c"]),
        ({}, ["a\r", "b\r", "c\r"]),
        ({}, ["\r\n", "a\n", "\n", "\r\n"]),
        ({"format": "csv"}, ['1,"a\nb\r\nc"\n', '2,"""\n"""\r\n', '"\n",3\n', "4\n", '"5']),
        ({"format": "csv", "quote": "'"}, ['1,"\n', "2,'\n','\n'\n", "\n"]),
    ],
)
def test_chunks_are_whole_records(options: dict[str, str], lines: list[str], size: int) -> None:
    given = dict(options)
    style = parse_copy_options(given.pop("format", "text"), "from", given, ["a"])
    text = "".join(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_chunks, "CHUNK_BYTES", size)
        chunks = list(text_chunks.split_text_chunks(io.BytesIO(text.encode()), style))
    ends = [len("".join(lines[:count])) for count in range(len(lines) + 1)]
    at = 0
    for chunk in chunks:
        assert at in ends
        assert chunk.number == 1 + len(io.StringIO(text[:at], newline="").readlines())
        at += len(chunk.data)
    assert b"".join(chunk.data for chunk in chunks) == text.encode()


def test_a_file_is_not_read_ahead() -> None:
    class CountedFile(io.BytesIO):
        taken = 0

        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            self.taken += len(data)
            return data

    file = CountedFile(b"1\tsome text\n" * 1_000_000)
    chunks = text_chunks.split_text_chunks(file, parse_copy_options("text", "from", {}, ["a"]))
    for number, chunk in enumerate(chunks, 1):
        assert len(chunk.data) <= text_chunks.CHUNK_BYTES + 100
        assert file.taken <= number * text_chunks.CHUNK_BYTES


def test_a_mistake_far_down_says_its_line(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(text_chunks, "CHUNK_BYTES", 10 * len(FIRST))
    rows = [FIRST.replace("1,", f"{number},", 1) for number in range(1, 41)]
    rows[33] = rows[33].replace("4.50", "4.5x", 1)
    file = tmp_path / "t.csv"
    file.write_text("".join(rows))
    state, message = outcome(con, file, "FORMAT csv")  # type: ignore[misc]
    assert state == "22P02"
    assert "line=34" in message


@pytest.mark.parametrize("quoted", ["", '"'])
def test_a_refused_row_is_shown(con: belvedere.Connection, tmp_path: Path, quoted: str) -> None:
    con.execute("CREATE TABLE named (id int PRIMARY KEY, name text NOT NULL, note text)")
    (tmp_path / "a.csv").write_text(f"1,a,\n2,,{quoted}{'long' * 40}{quoted}\n")
    shown = rf"failing row contains \(2, null, {'long' * 16}\.\.\)"
    with pytest.raises(belvedere.IntegrityError, match=shown):
        con.execute(f"COPY named FROM '{tmp_path / 'a.csv'}' (format csv)")
    with pytest.raises(belvedere.IntegrityError, match=shown):
        con.execute("INSERT INTO named VALUES (2, NULL, ?)", ["long" * 40])
