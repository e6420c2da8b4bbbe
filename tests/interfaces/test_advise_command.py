"""`belvedere advise`: on a store, through the process that has it open, and with bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from belvedere.errors import InvalidInput
from belvedere.interfaces.cli import COMMANDS, _make_app
from belvedere.interfaces.commands.advise import advise, parse_size
from belvedere.interfaces.dbapi import connect
from tests.advisor.shop import BY_CITY, SCHEMA, WORKLOAD


@pytest.fixture
def shop(tmp_path: Path) -> tuple[Path, Path]:
    """A store and a workload file."""
    store, workload = tmp_path / "shop.db", tmp_path / "workload.sql"
    with connect(str(store), durability="off", autocommit=True) as connection:
        connection.execute(SCHEMA)
    workload.write_text(WORKLOAD)
    return store, workload


def _run(*arguments: object) -> tuple[int, str]:
    app = _make_app("advise", COMMANDS["advise"], advise)
    found = CliRunner().invoke(app, [str(one) for one in arguments])
    return found.exit_code, found.output


def test_apply_creates_what_the_report_shows(shop: tuple[Path, Path]) -> None:
    store, workload = shop
    code, output = _run(store, "--workload", workload, "--apply")
    assert code == 0
    assert "CREATE MATERIALIZED VIEW" in output
    with connect(str(store), durability="off", autocommit=True) as connection:
        plan = str(connection.execute(f"EXPLAIN {BY_CITY}", ("city 1",)).fetchall())
        assert "rewritten to view" in plan


def test_a_dry_run_creates_nothing(shop: tuple[Path, Path]) -> None:
    store, workload = shop
    code, output = _run(store, "--workload", workload, "--apply", "--dry-run")
    assert code == 0
    assert "would run: CREATE" in output
    with connect(str(store), durability="off", autocommit=True) as connection:
        assert connection.execute("SELECT name FROM belvedere.views").fetchall() == []


def test_a_skipped_statement_fails_a_strict_run_only(shop: tuple[Path, Path]) -> None:
    store, workload = shop
    workload.write_text(WORKLOAD + "SELECT * FROM nowhere;")
    assert _run(store, "--workload", workload)[0] == 0
    assert _run(store, "--workload", workload, "--strict")[0] == 1


def test_a_csv_of_pg_stat_statements_is_a_workload(shop: tuple[Path, Path]) -> None:
    store, workload = shop
    query = BY_CITY.replace("?", "$1")
    workload.write_text(f'query,calls,mean_exec_time\n"{query}",100,5.5\n')
    code, output = _run(store, "--workload", workload, "--format", "json")
    found = json.loads(output)
    assert code == 0
    assert found["queries"][0]["before_us"] == pytest.approx(5500)


def test_a_store_that_another_process_has_open_is_advised_there(shop: tuple[Path, Path]) -> None:
    store, workload = shop
    with connect(str(store), durability="off", autocommit=True) as connection:
        command = [sys.executable, "-m", "belvedere", "advise", store, "--workload", workload]
        done = subprocess.run([*map(str, command), "--apply"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert connection.execute("SELECT count(*) > 0 FROM belvedere.views").fetchall() == [
            (True,)
        ]
        done = subprocess.run(
            [*map(str, command[:5]), "--review"], capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith("view ")


@pytest.mark.parametrize(("text", "size"), [("2GB", 2 * 10**9), ("1.5 mb", 1_500_000), ("7", 7)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1", "2XB", "many"])
def test_bad_sizes_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_size(text)


def test_bad_input_is_told_without_a_traceback(shop: tuple[Path, Path], tmp_path: Path) -> None:
    store, workload = shop
    for arguments in (
        (tmp_path / "nothing.db",),
        (store, "--workload", tmp_path / "nothing.sql"),
        (store, "--workload", workload, "--root", "nowhere"),
        (store, "--workload", workload, "--budget", "much"),
    ):
        code, output = _run(*arguments)
        assert code == 1
        assert "Traceback" not in output
