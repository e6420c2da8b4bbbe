r"""Backslash commands of the shell, and how results are shown."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere
from belvedere.interfaces import cli
from belvedere.interfaces.shell import shell as shell_module
from belvedere.interfaces.shell.progress import ProgressBar
from belvedere.interfaces.shell.render import OutputFormat
from belvedere.interfaces.shell.shell import Shell

SCHEMA = """
CREATE TABLE c (id int PRIMARY KEY, city text);
CREATE TABLE o (id int PRIMARY KEY, c int REFERENCES c, t numeric(10, 2));
CREATE INDEX ON o (t);
CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred', max_lag = '1 hour') AS
  SELECT c, sum(t) AS s FROM o GROUP BY c;
CREATE INDEX ON v (s);
CREATE MATERIALIZED VIEW top AS SELECT max(s) AS m FROM (SELECT c, sum(t) AS s FROM o GROUP BY c) q;
CREATE VIEW p AS SELECT * FROM o;
CREATE SEQUENCE q;
INSERT INTO c VALUES (1, 'x'), (2, NULL), (3, '');
"""


class Driven:
    """A shell whose output can be looked at."""

    def __init__(self, connection: belvedere.Connection) -> None:
        self.out, self.errors = io.StringIO(), io.StringIO()
        self.shell = Shell(connection, OutputFormat.TABLE, self.out, self.errors)

    def run(self, text: str) -> str:
        self.out.seek(0)
        self.out.truncate()
        assert self.shell.run_text(text), self.errors.getvalue()
        return self.out.getvalue()

    def fail(self, text: str) -> str:
        self.errors.seek(0)
        self.errors.truncate()
        assert not self.shell.run_text(text)
        return self.errors.getvalue()

    def list_names(self, command: str) -> list[str]:
        return [line.split("|")[1].strip() for line in self.run(command).splitlines()[2:-1]]


@pytest.fixture
def driven(con: belvedere.Connection) -> Iterator[Driven]:
    made = Driven(con)
    made.run(SCHEMA)
    yield made
    made.shell.redirect_output(None)


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("\\d", ["c", "o", "p", "q", "top", "v"]),
        ("\\d+", ["c", "o", "p", "q", "top", "v"]),
        ("\\dt", ["c", "o"]),
        ("\\dt c*", ["c"]),
        ("\\dt public.?", ["c", "o"]),
        ("\\dt other.*", []),
        ("\\dv", ["p"]),
        ("\\dm", ["top", "v"]),
        ("\\di", ["o_t_idx", "v_s_idx"]),
        ("\\ds", ["q"]),
    ],
)
def test_lists_have_what_the_user_made(driven: Driven, command: str, names: list[str]) -> None:
    assert driven.list_names(command) == names


def test_lists_with_more(driven: Driven) -> None:
    assert "views: top, v\n" in driven.run("\\dt+").replace(" \n", "\n")
    assert "deferred, max_lag 1 hour" in driven.run("\\dm+")
    assert "index o_t_idx (t)" in driven.run("\\di+")


def test_a_view_is_described_with_its_maintenance_and_indexes(driven: Driven) -> None:
    text = driven.run("\\d v")
    assert "maintenance: deferred, max_lag 1 hour, group" in text
    assert "indexes:\n  index v_s_idx (s)\n" in text
    assert "definition:\n  select c, sum(t) as s from o group by c" in text
    assert "backlog" not in text


def test_more_of_a_relation_is_what_is_measured(driven: Driven) -> None:
    assert "belvedere.views:\n  maintenance: deferred\n" in driven.run("\\d+ v")
    assert "  rows_estimate: " in driven.run("\\d+ o;")
    assert driven.run("\\d o_t_idx").endswith("index o_t_idx (t) on o\n")
    assert "there is no relation nosuch" in driven.fail("\\d nosuch")


def test_null_is_told_from_empty_text(driven: Driven) -> None:
    select = "SELECT city FROM c ORDER BY id;"
    assert driven.run(select).splitlines()[2:5] == [" x", " NULL", ""]
    driven.run("\\pset null '-'")
    assert driven.run(select).splitlines()[2:5] == [" x", " -", ""]
    driven.run("\\pset format csv")
    assert driven.run(select).splitlines() == ["city", "x", "", '""']


def test_display_settings(driven: Driven) -> None:
    assert driven.run("\\x on") == "expanded display is on\n"
    assert "-[ record 1 ]-" in driven.run("SELECT 1;")
    assert driven.run("\\x") == "expanded display is off\n"
    driven.run("\\pset tuples_only on")
    assert driven.run("SELECT 7, 8;") == "        7 |        8\n"
    assert "null         'NULL'\n" in driven.run("\\pset")
    assert "no setting border" in driven.fail("\\pset border 2")
    assert "no format html" in driven.fail("\\pset format html")


def test_output_goes_to_a_file_and_back(driven: Driven, tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    assert driven.run(f"\\o {path}\nSELECT 42;") == ""
    assert "41" not in driven.run("\\o\nSELECT 1;")
    assert "42" in path.read_text()
    assert "error" in driven.fail(f"\\o {tmp_path}/no/such")


def test_watch_runs_the_last_statement_again(driven: Driven) -> None:
    assert "no statement" in Driven(driven.shell.connection).fail("\\watch")
    text = driven.run("SELECT 'tick';\n\\watch 0 c=3")
    assert text.count("tick") == 4
    assert driven.run("\\watch i=0 count=2").count("tick") == 2
    assert "usage" in driven.fail("\\watch soon")


def test_the_editor_changes_the_last_statement(
    driven: Driven, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sed -i s/1/2/")
    driven.run("SELECT 1 AS n;")
    assert driven.run("\\e").splitlines()[2].strip() == "2"
    file = tmp_path / "f.sql"
    file.write_text("SELECT 11 AS n;")
    assert driven.run(f"\\e {file}").splitlines()[2].strip() == "21"
    monkeypatch.setenv("EDITOR", "false")
    assert "the editor failed" in driven.fail("\\e")


def test_timing_is_of_the_statement_and_not_of_the_pager(
    driven: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]

    def wait_in_pager(text: str) -> None:
        now[0] += 100.0

    monkeypatch.setattr(shell_module.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(driven.shell, "page_output", wait_in_pager)
    assert driven.run("\\timing on\nSELECT 1;").endswith("time: 0.000 ms\n")


def test_help_lists_every_command(driven: Driven) -> None:
    shown = driven.run("\\?")
    for name in "d dt dv dm di ds e o watch pset x timing copy i q".split():
        assert f"  \\{name}" in shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_messages_do_not_run_into_the_progress_bar() -> None:
    out = Terminal()
    bar = ProgressBar(out)
    bar.print_unless_shown("still running")
    bar.show_progress("filling v", 1, 2)
    bar.print_unless_shown("still running")
    bar.clear_line()
    assert out.getvalue().count("still running") == 1
    assert out.getvalue().endswith("\r")


def run_cli(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(["shell", ":memory:", *arguments])
    return int(ended.value.code or 0)


def test_several_commands_share_a_session(capsys: pytest.CaptureFixture[str]) -> None:
    commands = ["CREATE TABLE t (a int)", "INSERT INTO t VALUES (5)", "SELECT a FROM t", "\\dt"]
    assert run_cli(*[part for text in commands for part in ("-c", text)]) == 0
    shown = capsys.readouterr().out
    assert "5\n" in shown
    assert "| t " in shown
    assert run_cli("-c", "SELECT nosuch", "-c", "SELECT 'later'") == 1
    assert "later" not in capsys.readouterr().out
    assert run_cli("-c", "SELECT 1; \\q", "-c", "SELECT 'later'") == 0
    assert "later" not in capsys.readouterr().out


def test_commands_and_files_do_not_go_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli("-c", "SELECT 1", "-f", os.devnull) == 2
    for number in (1, 2):
        (tmp_path / f"{number}.sql").write_text(f"SELECT 'file {number}';")
    assert run_cli("-f", str(tmp_path / "1.sql"), "-f", str(tmp_path / "2.sql")) == 0
    assert "file 2" in capsys.readouterr().out
