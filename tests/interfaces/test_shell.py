"""The shell, driven without a terminal."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

import belvedere
from belvedere.interfaces import cli
from belvedere.interfaces.shell.completion import SqlCompleter
from belvedere.interfaces.shell.render import OutputFormat
from belvedere.interfaces.shell.shell import Shell


class Driven:
    """A shell whose output can be looked at."""

    def __init__(self, form: OutputFormat = OutputFormat.TABLE) -> None:
        self.out, self.errors = io.StringIO(), io.StringIO()
        self.connection = belvedere.connect(":memory:", autocommit=True)
        self.shell = Shell(self.connection, form, self.out, self.errors)

    def run(self, text: str) -> bool:
        self.out.seek(0)
        self.out.truncate()
        return self.shell.run_text(text)

    @property
    def lines(self) -> list[str]:
        return self.out.getvalue().splitlines()


@pytest.fixture
def driven() -> Iterator[Driven]:
    made = Driven()
    made.run(
        "CREATE TABLE t (id int PRIMARY KEY, name text DEFAULT 'x'); CREATE INDEX ON t (name);"
    )
    made.run("INSERT INTO t VALUES (1, 'ann'), (2, NULL)")
    yield made
    made.connection.close()


def test_statements_over_several_lines_print_their_results(driven: Driven) -> None:
    assert driven.run("INSERT INTO t\nVALUES (3, 'c');\nSELECT count(*)\n  FROM t;")
    assert driven.lines == ["INSERT 1", " count", "-------", "     3", "(1 row)"]


def test_the_first_failure_stops_a_script(driven: Driven) -> None:
    assert not driven.run("DELETE FROM t; SELECT nam FROM t; INSERT INTO t VALUES (9)")
    assert "error 42703" in driven.errors.getvalue()
    assert "LINE 1: SELECT nam FROM t;" in driven.errors.getvalue()
    assert driven.run("SELECT count(*) FROM t")
    assert driven.lines[2] == "     0"


def test_descriptions(driven: Driven) -> None:
    assert driven.run("\\d t")
    text = driven.out.getvalue()
    assert "primary key (id)" in text
    assert "index t_name_idx (name)" in text
    assert "'x'" in text
    assert driven.run("\\dt")
    assert any("| t" in line for line in driven.lines)
    assert not driven.run("\\d nosuch")
    assert not driven.run("\\nosuch")


def test_switches(driven: Driven) -> None:
    driven.run("\\x\nSELECT 1 AS a;")
    assert "-[ record 1 ]-" in driven.out.getvalue()
    driven.run("\\timing\nSELECT 1;")
    assert "time: " in driven.out.getvalue()


def test_copy_and_include(driven: Driven, tmp_path: Path) -> None:
    data, script = tmp_path / "t.csv", tmp_path / "s.sql"
    assert driven.run(f"\\copy t to {data} csv header")
    assert data.read_text() == "id,name\n1,ann\n2,\n"
    script.write_text(f"DELETE FROM t;\n\\copy t from {data} csv header\nSELECT name FROM t;\n")
    assert driven.run(f"\\i {script}")
    assert driven.lines[-1] == "(2 rows)"
    assert not driven.run("\\i /nosuch/file")


def test_copy_takes_the_options_of_copy(driven: Driven, tmp_path: Path) -> None:
    data = tmp_path / "it's.csv"
    quoted = str(data).replace("'", "''")
    assert driven.run(f"\\copy t to '{quoted}' (FORMAT csv, HEADER, DELIMITER ';')")
    assert data.read_text() == "id;name\n1;ann\n2;\n"
    assert driven.run(f"\\copy (SELECT name FROM t WHERE id = 1) TO '{quoted}' with (format csv)")
    assert data.read_text() == "ann\n"
    assert driven.run(f"\\copy t (id) to '{quoted}' csv")
    assert data.read_text() == "1\n2\n"
    assert not driven.run(f"\\copy t to '{quoted}' cvs")
    assert not driven.run("\\copy t")


def test_json_keeps_the_digits_of_numbers() -> None:
    made = Driven(OutputFormat.JSON)
    made.run(
        "SELECT 1234567890123456789.50::numeric AS n, 'NaN'::float8 AS f, date '2024-01-02' AS d"
    )
    found = made.out.getvalue()
    assert '"n": 1234567890123456789.50' in found
    assert json.loads(found)[0]["f"] == "NaN"
    assert json.loads(found)[0]["d"] == "2024-01-02"
    made.run("SELECT 1 WHERE false")
    assert made.out.getvalue().rstrip().endswith("[]")
    made.connection.close()


def test_other_formats() -> None:
    made = Driven(OutputFormat.JSON)
    made.run("SELECT 1 AS a, NULL AS b")
    assert json.loads(made.out.getvalue()) == [{"a": 1, "b": None}]
    made.connection.close()


def test_completion_knows_tables_columns_and_commands(driven: Driven) -> None:
    completer = SqlCompleter(driven.connection.session)

    def offered(text: str) -> set[str]:
        found = completer.get_completions(Document(text), CompleteEvent())
        return {completion.text for completion in found}

    assert "name" in offered("SELECT na")
    assert "t" in offered("SELECT * FROM t")
    assert "select" in offered("sel")
    assert offered("\\d") >= {"\\d", "\\dt", "\\dv"}


def test_every_command_of_the_table_can_be_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    for name in cli.COMMANDS:
        with pytest.raises(SystemExit) as ended:
            cli.main([name, "--help"])
        assert ended.value.code == 0
    assert "shell" in capsys.readouterr().out


def test_an_unknown_command_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["nosuch"])
    assert ended.value.code == 2
    assert "shell" in capsys.readouterr().err


def test_shell_command_runs_text_and_fails_with_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = str(tmp_path / "store")
    with pytest.raises(SystemExit) as ended:
        cli.main(["shell", path, "-c", "CREATE TABLE t (a int); SELECT 7 AS a", "--format", "csv"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.splitlines() == ["a", "7"]
    with pytest.raises(SystemExit) as ended:
        cli.main(["shell", path, "-c", "SELECT * FROM nosuch"])
    assert ended.value.code == 1


def test_notices_are_printed_after_their_statement(driven: Driven) -> None:
    view = "CREATE MATERIALIZED VIEW v AS SELECT name, count(*) AS n FROM t GROUP BY name"
    assert driven.run(f"{view}; REFRESH MATERIALIZED VIEW v; SELECT 1 AS a")
    assert driven.lines[:2] == ["CREATE MATERIALIZED VIEW", "REFRESH MATERIALIZED VIEW"]
    said = driven.errors.getvalue().splitlines()
    assert [line for line in said if line.startswith("notice")] == [
        'notice: view "v" is immediate, it is always up to date'
    ]
