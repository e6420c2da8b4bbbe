"""`belvedere pipeline ..`, as a person calls it, with the store open elsewhere and not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest
from click.testing import Result
from typer.testing import CliRunner

import belvedere
from belvedere.interfaces.commands.pipeline import app
from belvedere.pipeline.store.client import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Call = Callable[..., Result]


def belvedere_command(
    *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "belvedere.interfaces.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **(environment or {})},
    )


@pytest.fixture
def filled(shop: Path) -> Path:
    with belvedere.connect(str(shop), durability="off", autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, name text)")
    return shop


def test_load_opens_a_store_that_nobody_has_open(filled: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,name\n1,a\n2,b\nx,c\n")
    command = ["pipeline", "load", "--database", str(filled), "--table", "t"]
    command += ["--on-error", "reject", "--rejects", str(tmp_path / "rejects.csv")]
    done = belvedere_command(*command, "--master", "local[1]", str(tmp_path / "rows.csv"))
    assert done.returncode == 0, done.stderr
    assert "rows written" in done.stdout
    assert "constraint report" in done.stdout
    assert "22P02" in (tmp_path / "rejects.csv").read_text()
    with belvedere.connect(str(filled)) as connection:
        assert connection.execute("SELECT id FROM t ORDER BY id").fetchall() == [(1,), (2,)]


@pytest.fixture
def here(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Commands in this process, on the session that all tests share."""

    @contextmanager
    def shared(master: str, name: str) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr("belvedere.interfaces.commands.job.open_spark_session", shared)

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments))

    return call


def test_load_and_export_work_through_an_application_that_has_the_store_open(
    filled: Path, tmp_path: Path, here: Call
) -> None:
    (tmp_path / "rows.json").write_text('{"id": 1, "name": "a"}\n{"id": 2, "name": "b"}\n')
    place = ["--database", str(filled)]
    with belvedere.connect(str(filled), durability="off", autocommit=True) as connection:
        loaded = here("load", *place, "--table", "t", str(tmp_path / "rows.json"))
        assert loaded.exit_code == 0, loaded.output
        assert connection.execute("SELECT count(*) FROM t").fetchall() == [(2,)]
        query = ["--query", "SELECT name, id * 10 AS ten FROM t"]
        exported = here("export", *place, *query, "--to", str(tmp_path / "out"))
        assert exported.exit_code == 0, exported.output
    found = pyarrow.parquet.read_table(tmp_path / "out").to_pylist()
    assert sorted(row["ten"] for row in found) == [10, 20]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["load", "--table", "no", "rows.csv"], "table does not exist"),
        (["load", "--table", "t", "--on-error", "skip", "rows.csv"], "stop or reject"),
        (["load", "--table", "t", "rows.xyz"], "format of the files"),
        (["load", "--table", "t", "--option", "header", "rows.csv"], "name=value"),
        (["export", "--to", "out"], "one of --query, --table and --view"),
        (["export", "--view", "no", "--to", "out"], "view does not exist"),
        (["export", "--table", "t", "--position", "99999", "--to", "out"], "not in the log"),
        (["verify", "no"], "view does not exist"),
        (["verify", "v", "--position", "1"], "the view was another at this position"),
        (["maintain", "i"], "no such deferred view"),
        (["maintain", "--trigger", "soon"], "not an interval of time"),
        (["load", "--table", "t", "--format", "none", "rows.csv"], "files cannot be read"),
        (["load", "--table", "t", "--operation", "merge", "rows.csv"], "unknown operation"),
        (
            ["load", "--table", "t", "--on-error", "reject", "--rejects", "no/x.csv", "rows.csv"],
            "rejects file cannot be written",
        ),
        (["export", "--table", "t", "--format", "none", "--to", "out"], "export failed"),
        (["export", "--query", "SELECT nothing", "--to", "out"], "column does not exist"),
        (["export", "--query", "DELETE FROM t", "--to", "out"], "query"),
    ],
)
def test_a_mistake_is_one_clear_message_and_changes_nothing(
    viewed: Path,
    here: Call,
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("id,name\n1,a\n")
    name, *rest = (str(tmp_path / one) if one == "rows.csv" else one for one in arguments)
    before = state(viewed)
    done = here(name, "--database", str(viewed), *rest)
    assert done.exit_code == 1, done.output
    assert message in done.output
    assert "Traceback" not in done.output
    assert state(viewed) == before


@pytest.fixture
def viewed(filled: Path) -> Path:
    """The store with an immediate view and a deferred one."""
    with belvedere.connect(str(filled), durability="off", autocommit=True) as connection:
        connection.execute("CREATE MATERIALIZED VIEW i AS SELECT count(*) AS n FROM t")
        connection.execute(
            "CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred', max_lag = '3600 s')"
            " AS SELECT name, count(*) AS n FROM t GROUP BY name"
        )
    return filled


def state(shop: Path) -> tuple[object, ...]:
    """The position, the rows, and who holds the views."""
    with belvedere.connect(str(shop), durability="off", autocommit=True) as connection:
        store = Store.from_url(str(shop))
        groups = [(group["watermark"], group["owner"]) for group in store.call_owner_verb("groups")]
        return store.position(), connection.execute("SELECT * FROM t").fetchall(), groups


@pytest.mark.parametrize(
    ("database", "message"),
    [
        ("none.db", "does not exist"),
        (":memory:", "has no directory"),
        ("here", "not a belvedere store"),
    ],
)
def test_what_is_no_store_is_said_to_be_none(tmp_path: Path, database: str, message: str) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "file").write_text("something else")
    where = database if database == ":memory:" else str(tmp_path / database)
    done = CliRunner().invoke(app, ["status", "--database", where])
    assert done.exit_code == 1
    assert message in done.output
    assert not (tmp_path / "none.db").exists()


def test_a_master_that_is_none_is_one_clear_message(filled: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,name\n1,a\n")
    command = ["pipeline", "load", "--database", str(filled), "--table", "t", "--master", "nowhere"]
    done = belvedere_command(*command, str(tmp_path / "rows.csv"))
    assert done.returncode == 1
    assert "belvedere: spark does not start" in done.stderr
    assert "nowhere" in done.stderr
    assert "Traceback" not in done.stderr


def test_status_needs_no_spark(filled: Path) -> None:
    with belvedere.connect(str(filled), durability="off", autocommit=True) as connection:
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
        done = belvedere_command("pipeline", "status", "--database", str(filled))
        position = Store.from_url(str(filled)).position()
    assert done.returncode == 0, done.stderr
    assert f"position {position}" in done.stdout
    assert "public.v" in done.stdout


def test_without_java_there_is_one_clear_message(filled: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,name\n1,a\n")
    command = ["pipeline", "load", "--database", str(filled), "--table", "t"]
    environment = {"PATH": str(tmp_path), "JAVA_HOME": ""}
    done = belvedere_command(*command, str(tmp_path / "rows.csv"), environment=environment)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "belvedere: java is not installed",
        "hint: install Java 17 or newer, or set JAVA_HOME",
    ]


def test_without_pyspark_the_rest_works(filled: Path, tmp_path: Path) -> None:
    """An import of pyspark fails as it does where it is not installed."""
    (tmp_path / "pyspark.py").write_text("raise ImportError('no pyspark here')\n")
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    (tmp_path / "rows.csv").write_text("id,name\n1,a\n")
    command = ["pipeline", "load", "--database", str(filled), "--table", "t"]
    done = belvedere_command(*command, str(tmp_path / "rows.csv"), environment=environment)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "belvedere: pyspark is not installed",
        "hint: pip install 'belvedere[spark]'",
    ]
    bench = belvedere_command("bench", "pipeline", "--scale", "0.001", environment=environment)
    assert (bench.returncode, bench.stderr) == (1, done.stderr)
    status = ["pipeline", "status", "--database", str(filled)]
    assert belvedere_command(*status, environment=environment).returncode == 0
    shell = belvedere_command("shell", str(filled), "-c", "SELECT 1", environment=environment)
    assert shell.returncode == 0
