"""The shell shows how far a view is filled, when somebody is watching."""

from __future__ import annotations

import io

import belvedere
from belvedere.interfaces.shell.progress import ProgressBar
from belvedere.interfaces.shell.render import OutputFormat
from belvedere.interfaces.shell.shell import Shell


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_grows_in_one_line_and_goes_away() -> None:
    out, now = Terminal(), [0.0]
    bar = ProgressBar(out, lambda: now[0])
    bar.show_progress("filling v", 50, 100)
    bar.show_progress("filling v", 60, 100)  # too soon
    now[0] += 1
    bar.show_progress("filling v", 75, 100)
    assert out.getvalue().split("\r") == [
        "",
        "filling v [##########..........]  50%  50 rows",
        "filling v [###############.....]  75%  75 rows",
    ]
    bar.clear_line()
    assert out.getvalue().endswith("\r" + " " * 46 + "\r")
    assert "\n" not in out.getvalue()


def test_nobody_watching_nothing_shown() -> None:
    out = io.StringIO()
    bar = ProgressBar(out)
    bar.show_progress("filling v", 50, 100)
    bar.clear_line()
    assert out.getvalue() == ""


def test_creating_a_view_shows_its_fill() -> None:
    errors = Terminal()
    with belvedere.connect(":memory:", autocommit=True) as connection:
        shell = Shell(connection, OutputFormat.TABLE, io.StringIO(), errors)
        assert shell.run_statement("CREATE TABLE t (id int PRIMARY KEY, g int)")
        assert shell.run_statement("INSERT INTO t VALUES (1, 1), (2, 2)")
        create = "CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS c FROM t GROUP BY g"
        assert shell.run_statement(create)
    assert "filling v [####################] 100%  2 rows" in errors.getvalue()
