"""The parts of the shell that are only text: statements, carets, tables."""

from __future__ import annotations

import datetime
import io
import json
from decimal import Decimal

import pytest

import belvedere
from belvedere.interfaces.shell import shell as shell_module
from belvedere.interfaces.shell.render import OutputFormat, render
from belvedere.interfaces.shell.statements import (
    caret_lines,
    find_statement_end,
    is_complete,
    split_statements,
)
from belvedere.plan.fields import Field
from belvedere.types import BOOLEAN, DATE, INTEGER, NUMERIC, TEXT

FIELDS = (Field("id", INTEGER), Field("name", TEXT), Field("ok", BOOLEAN))
ROWS = [(1, "ann", True), (22, None, False), (3, "two\nlines", None)]


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("select 1; select 2", ["select 1;"], " select 2"),
        ("select ';' ; x", ["select ';' ;"], " x"),
        ("select 1 -- ; no\n;", ["select 1 -- ; no\n;"], ""),
        ("select $$ ; $$; y", ["select $$ ; $$;"], " y"),
        ("select 1; select 'open ; ", ["select 1;"], " select 'open ; "),
        (";;", [], ""),
    ],
)
def test_statements_end_at_semicolons_outside_of_text(
    text: str, statements: list[str], rest: str
) -> None:
    assert split_statements(text) == (statements, rest)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("select 1", False), ("select 1;", True), ("\\dt", True), ("select '", False), ("", True)],
)
def test_enter_waits_for_the_semicolon(text: str, expected: bool) -> None:
    assert is_complete(text) is expected


def test_the_caret_stands_below_the_place() -> None:
    text = "select 1,\n  frm t"
    assert caret_lines(text, text.index("frm") + 1) == ["LINE 2:   frm t", "          ^"]
    assert caret_lines(text, None) == []


def test_a_table_is_aligned() -> None:
    assert render(FIELDS, ROWS, OutputFormat.TABLE).splitlines() == [
        " id | name  | ok",
        "----+-------+----",
        "  1 | ann   | t",
        " 22 |       | f",
        "  3 | two   |",
        "    | lines |",
        "(3 rows)",
    ]


def test_wide_signs_take_two_columns() -> None:
    lines = render((Field("x", TEXT),), [("日本",), ("ab",)], OutputFormat.TABLE).splitlines()
    assert lines[1] == "------"


def test_expanded_rows_stand_below_each_other() -> None:
    assert render(FIELDS, ROWS[:1], OutputFormat.TABLE, expanded=True).splitlines() == [
        "-[ record 1 ]-",
        "id   | 1",
        "name | ann",
        "ok   | t",
    ]


def test_csv_has_a_header() -> None:
    assert render(FIELDS, ROWS[:2], OutputFormat.CSV).splitlines() == [
        "id,name,ok",
        "1,ann,t",
        "22,,f",
    ]


def test_json_keeps_kinds() -> None:
    fields = (*FIELDS, Field("n", NUMERIC), Field("d", DATE))
    row = (1, "ann", True, Decimal("1.5"), datetime.date(2024, 1, 2))
    assert json.loads(render(fields, [row], OutputFormat.JSON)) == [
        {"id": 1, "name": "ann", "ok": True, "n": 1.5, "d": "2024-01-02"}
    ]


def test_a_script_is_scanned_once_whatever_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    scanned: list[int] = []

    def count_characters(text: str, start: int = 0) -> int | None:
        end = find_statement_end(text, start)
        scanned.append((end or len(text)) - start)
        return end

    monkeypatch.setattr(shell_module, "find_statement_end", count_characters)
    out, errors = io.StringIO(), io.StringIO()
    text = "SELECT 1\n" + "\n".join(f", {i}" for i in range(400)) + ";\n" * 3 + "SELECT 2;\n"
    with belvedere.connect(":memory:") as con:
        assert shell_module.Shell(con, OutputFormat.CSV, out, errors).run_text(text)
    assert sum(scanned) <= len(text)
    assert out.getvalue().splitlines()[-1] == "2"


@pytest.mark.parametrize("end", [";", "';", '";', "$a$;", "*/;", "E'\\';"])
def test_a_statement_ends_only_outside_of_quotes_and_comments(end: str) -> None:
    text = f"""SELECT E'a\\';' || ';' || $a$;$$;$a$ || "b;" /* ; /* ; */ ; */ -- ;\n + 1; {end}"""
    assert find_statement_end(text) == text.index("1;") + 2


@pytest.mark.parametrize("text", ["'a;", '"a;', "$$a;", "/* /* */ ;", "E'\\';", "-- ;"])
def test_an_open_statement_has_no_end(text: str) -> None:
    assert find_statement_end("SELECT " + text) is None


HOSTILE = "a\x1b[31mred\x9b2J\x07\x00\x7f\rb\t"


def test_a_table_shows_terminal_escapes_of_values_and_names_escaped() -> None:
    shown = r"a\x1B[31mred\x9B2J\x07\x00\x7F\rb" + "\t"
    fields = (Field("n\x1b[1m\nm", TEXT), Field("x", INTEGER))
    for expanded in (False, True):
        text = render(fields, [(HOSTILE, 1)], OutputFormat.TABLE, expanded=expanded)
        assert r"n\x1B[1m\nm" in text
        assert f"{shown} | 1" in text or f"| {shown}" in text
        assert "\x1b" not in text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("form", OutputFormat)
def test_the_shell_prints_no_terminal_escapes_of_values(form: OutputFormat) -> None:
    out, errors = Terminal(), io.StringIO()
    with belvedere.connect(":memory:", autocommit=True) as con:
        shell = shell_module.Shell(con, form, out, errors)
        quoted = HOSTILE.replace("\0", "")
        assert shell.run_text(f"SELECT '{quoted}' AS \"{quoted}\"")
        assert not shell.run_text(f"SELECT '{quoted}'::int")
        assert not shell.run_text(f'SELECT "{quoted}"')
    for text in (out.getvalue(), errors.getvalue()):
        assert not set(text) & {"\x1b", "\x9b", "\x07", "\x7f", "\r"}


def test_csv_that_goes_to_a_file_holds_values_as_they_are() -> None:
    out = io.StringIO()
    with belvedere.connect(":memory:", autocommit=True) as con:
        shell_module.Shell(con, OutputFormat.CSV, out, out).run_text("SELECT E'\\x1b[1m' AS v")
    assert out.getvalue() == "v\n\x1b[1m\n"
