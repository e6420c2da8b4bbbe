"""Every option of COPY is honoured or refused, as PostgreSQL does or refuses it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import belvedere
from tests.oracle.postgres import Postgres

# Each with what it is refused for, and what PostgreSQL says: the same, unless it is not supported.
OPTIONS = (
    "",
    "format csv",
    "format csv, header",
    "format csv, header off",
    "header",
    "format csv, header 2",
    "format csv, header match",
    "format csv, delimiter ';'",
    "format csv, delimiter ';;'",
    "format csv, delimiter ''",
    r"format csv, delimiter E'\n'",
    "delimiter 'a'",
    "delimiter '.'",
    "delimiter '|'",
    "format csv, delimiter '\"'",
    "format csv, quote '|'",
    "quote '|'",
    "escape '|'",
    "format csv, quote '||'",
    "format csv, escape '\\'",
    "format csv, escape 'ab'",
    "format csv, null 'x'",
    r"format csv, null E'a\nb'",
    "format csv, null 'a,b'",
    "format csv, null 'a\"b'",
    "format csv, force_quote (a)",
    "format csv, force_quote *",
    "format csv, force_quote (nothing)",
    "force_quote (a)",
    "format csv, format csv",
    "format csv, header, header",
    "format nothing",
    "nothing true",
    "on_error stop",
    "encoding 'utf-8'",
    "freeze off",
)
NOT_SUPPORTED = (
    "encoding 'latin1'",
    "format csv, force_not_null (a)",
    "format csv, force_null (a)",
    "on_error ignore",
    "default 'd'",
    "log_verbosity verbose",
    "reject_limit 3",
    "format parquet, header",
    "format parquet, delimiter ';'",
)
ROWS = "(VALUES (1, 'x;y'), (2, 'q\"|\\'), (3, NULL), (4, '')) t (a, b)"


@pytest.mark.parametrize("options", OPTIONS)
def test_copy_options_mean_what_they_mean_to_postgres(
    options: str, tmp_path: Path, postgres: Postgres
) -> None:
    listed = f"({options})" if options else ""
    file = tmp_path / "file"
    select = f"COPY (SELECT a, b FROM {ROWS}) TO"
    with belvedere.connect(":memory:", autocommit=True) as con:
        sqlstate = run_here(con, f"{select} '{file}' {listed}")
        theirs, data = write_there(postgres, f"{select} STDOUT {listed}")
        assert sqlstate == theirs, options
        if sqlstate is None:
            assert file.read_bytes() == data
        else:
            file.write_text("1\n")
        con.execute("CREATE TABLE t (a int, b text)")
        postgres.run("DROP TABLE IF EXISTS copied")
        postgres.run("CREATE TABLE copied (a int, b text)")
        sqlstate = run_here(con, f"COPY t FROM '{file}' {listed}")
        assert sqlstate == read_there(postgres, f"COPY copied FROM STDIN {listed}", file), options
        rows = postgres.run("SELECT a, b FROM copied ORDER BY a").rows
        assert con.execute("SELECT a, b FROM t ORDER BY a").fetchall() == rows


def write_there(postgres: Postgres, text: str) -> tuple[str | None, bytes]:
    try:
        with postgres.connection.cursor().copy(text) as copy:
            return None, b"".join(map(bytes, copy))
    except psycopg.Error as error:
        return error.sqlstate, b""


def read_there(postgres: Postgres, text: str, file: Path) -> str | None:
    try:
        with postgres.connection.cursor().copy(text) as copy:
            copy.write(file.read_bytes())
    except psycopg.Error as error:
        return error.sqlstate
    return None


def run_here(con: belvedere.Connection, text: str) -> str | None:
    try:
        con.execute(text)
    except belvedere.Error as error:
        return error.sqlstate
    return None


@pytest.mark.parametrize("options", NOT_SUPPORTED)
@pytest.mark.parametrize("direction", ["FROM", "TO"])
def test_copy_options_that_are_not_supported_are_refused_by_name(
    options: str, direction: str, tmp_path: Path
) -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (a int, b text)")
        file = tmp_path / "file"
        file.write_text("1,x\n")
        with pytest.raises(belvedere.NotSupportedError, match=r"(?i)copy"):
            con.execute(f"COPY t {direction} '{file}' ({options})")
        assert con.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
        assert file.read_text() == "1,x\n"


@pytest.mark.parametrize(
    ("columns", "header", "sqlstate"),
    [
        ("", "a,b", None),
        ("", "b,a", "22P04"),
        ("", "a", "22P04"),
        ("", "a,b,c", "22P04"),
        ("", "A,b", "22P04"),
        ("", '"a","b"', None),
        ("", '"a\n",b', "22P04"),
        ("(b, a)", "b,a", None),
        ("(b, a)", "a,b", "22P04"),
        ("", "a,", "22P04"),
    ],
)
def test_header_match_compares_names(
    columns: str, header: str, sqlstate: str | None, tmp_path: Path, postgres: Postgres
) -> None:
    file = tmp_path / "file.csv"
    file.write_text(header + "\n1,2\n3,4\n")
    with belvedere.connect(":memory:", autocommit=True) as con:
        postgres.run("DROP TABLE IF EXISTS copied")
        for run in (con.execute, postgres.run):
            run("CREATE TABLE copied (a int, b int)")
        copy = f"COPY copied {columns} FROM {{}} (FORMAT csv, HEADER MATCH)"
        assert run_here(con, copy.format(f"'{file}'")) == sqlstate
        assert read_there(postgres, copy.format("STDIN"), file) == sqlstate
        read = "SELECT a, b FROM copied ORDER BY a"
        assert con.execute(read).fetchall() == postgres.run(read).rows


def test_header_match_holds_for_the_text_format(tmp_path: Path) -> None:
    file = tmp_path / "file.txt"
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (a int, b int)")
        file.write_text("b\ta\n1\t2\n")
        assert run_here(con, f"COPY t FROM '{file}' (HEADER MATCH)") == "22P04"
        file.write_text("a\tb\n1\t2\n")
        assert run_here(con, f"COPY t FROM '{file}' (HEADER MATCH)") is None
        assert con.execute("SELECT * FROM t").fetchall() == [(1, 2)]


def test_freeze_changes_nothing_but_is_not_of_copy_to(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("1\tx\n")
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (a int, b text)")
        con.execute(f"COPY t FROM '{file}' (freeze on)")
        assert con.execute("SELECT * FROM t").fetchall() == [(1, "x")]
        with pytest.raises(belvedere.NotSupportedError, match="FREEZE"):
            con.execute(f"COPY t TO '{file}' (freeze)")
