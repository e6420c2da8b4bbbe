"""`belvedere advise --apply` and `--watch`: killed anywhere, and while an application runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from belvedere import failpoints
from belvedere.interfaces.cli import COMMANDS, _make_app
from belvedere.interfaces.commands.advise import advise
from belvedere.interfaces.dbapi import Connection, connect
from tests.advisor.shop import BY_CITY, SCHEMA, TOTALS, WORKLOAD


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store and a workload file, to be copied."""
    folder = tmp_path_factory.mktemp("shop")
    with connect(str(folder / "shop.db"), durability="off", autocommit=True) as connection:
        connection.execute(SCHEMA)
    (folder / "workload.sql").write_text(WORKLOAD)
    return folder


@pytest.fixture(scope="module")
def hits(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """How often `--apply` passes each failpoint."""
    folder = tmp_path_factory.mktemp("counted") / "shop"
    shutil.copytree(shop, folder)
    failpoints.arm("commit.before_section", "call", call=lambda: None)
    try:
        app = _make_app("advise", COMMANDS["advise"], advise)
        given = [str(folder / "shop.db"), "--workload", str(folder / "workload.sql"), "--apply"]
        assert CliRunner().invoke(app, given).exit_code == 0
        return dict(failpoints.hits)
    finally:
        failpoints.disarm_all()


def _apply(folder: Path, kill: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "belvedere", "advise", str(folder / "shop.db"), "--apply"]
    environment = {**os.environ, "BELVEDERE_FAILPOINTS": kill}
    return subprocess.run(
        [*command, "--workload", str(folder / "workload.sql")],
        capture_output=True,
        text=True,
        env=environment,
    )


STEPS = {
    "catalog.before": 4,
    "catalog.after": 2,
    "commit.before_write": 2,
    "commit.after_write": 2,
    "publish.after": 2,
    "maintain.before_write": 2,
    "maintain.after_write": 2,
}
"""Steps of `--apply`, and how many of the last times it comes there it is killed."""


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_apply_leaves_whole_views_or_none(
    step: str, shop: Path, hits: dict[str, int], tmp_path: Path
) -> None:
    for at in range(hits[step] - STEPS[step] + 1, hits[step] + 1):
        folder = tmp_path / f"{at}"
        shutil.copytree(shop, folder)
        killed = _apply(folder, f"{step}=kill@{at}")
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        with connect(str(folder / "shop.db"), durability="off", autocommit=True) as connection:
            _check_views(connection)


def test_a_killed_apply_can_be_run_again(shop: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    shutil.copytree(shop, folder)
    assert _apply(folder, "catalog.after=kill@2").returncode == -signal.SIGKILL
    again = _apply(folder)
    assert again.returncode == 0, again.stderr
    with connect(str(folder / "shop.db"), durability="off", autocommit=True) as connection:
        _check_views(connection)
        for query, given in ((BY_CITY, ("city 1",)), (TOTALS, ())):
            plan = str(connection.execute(f"EXPLAIN {query}", given).fetchall())
            assert "rewritten to view" in plan


def _check_views(connection: Connection) -> None:
    """Every view that is there is ready, and has the rows of its query."""
    rows = connection.execute("SELECT name, state FROM belvedere.views").fetchall()
    for name, state in rows:
        assert state == "ready"
        verified = connection.execute(f"VERIFY MATERIALIZED VIEW {name}").fetchall()
        assert verified[0][-1] is True
    answers = connection.execute(TOTALS).fetchall()
    connection.execute("SET rewrite = off")
    assert sorted(answers) == sorted(connection.execute(TOTALS).fetchall())
    connection.execute("SET rewrite = on")


@pytest.fixture
def watched(shop: Path, tmp_path: Path) -> Iterator[tuple[Connection, subprocess.Popen[str]]]:
    """A store that an application has open, and a process that watches it."""
    folder = tmp_path / "shop"
    shutil.copytree(shop, folder)
    with connect(str(folder / "shop.db"), durability="off", autocommit=True) as connection:
        command = [sys.executable, "-m", "belvedere", "advise", str(folder / "shop.db")]
        process = subprocess.Popen(
            [*command, "--watch", "0.1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            yield connection, process
        finally:
            process.kill()
            process.communicate()


def test_watch_proposes_and_creates_nothing(
    watched: tuple[Connection, subprocess.Popen[str]],
) -> None:
    connection, process = watched
    for number in range(200):
        connection.execute(BY_CITY, (f"city {number % 20}",)).fetchall()
    assert process.stdout is not None
    assert process.stdout.readline().startswith("CREATE MATERIALIZED VIEW")
    assert connection.execute("SELECT name FROM belvedere.views").fetchall() == []
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
