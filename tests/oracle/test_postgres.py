"""The oracle: answers, errors by SQLSTATE, and no server left behind by a killed run."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from tests.oracle.postgres import Postgres, Value, postgres  # noqa: F401

KILLED = """
import sys
from tests.oracle.postgres import server
directory = server().run("SHOW data_directory").rows[0][0]
print(open(directory + "/postmaster.pid").readline().strip(), directory, flush=True)
sys.stdin.read()
"""


def test_statement_answers_with_rows_and_type_names(postgres: Postgres) -> None:  # noqa: F811
    outcome = postgres.run("SELECT 1, 1.50, ARRAY['a'], NULL::date")
    assert outcome.rows == [(1, Decimal("1.50"), ["a"], None)]
    assert outcome.types == ("integer", "numeric", "text[]", "date")


def test_error_answers_with_its_sqlstate(postgres: Postgres) -> None:  # noqa: F811
    assert postgres.run("SELECT 1/0").sqlstate == "22012"
    assert postgres.run("SELECT 1").sqlstate is None


def test_expressions_are_evaluated_apart(postgres: Postgres) -> None:  # noqa: F811
    found = postgres.evaluate(["1 + 1", "1 / 0", "NULL::text", "no_such()"])
    assert found == [
        Value("integer", "2"),
        Value(None, None, "22012"),
        Value("text", None),
        Value(None, None, "42883"),
    ]


def test_collation_and_zone_are_fixed(postgres: Postgres) -> None:  # noqa: F811
    assert postgres.evaluate(["upper('é')", "current_setting('TimeZone')"]) == [
        Value("text", "é"),
        Value("text", "UTC"),
    ]
    assert postgres.run("SELECT 'a' < 'B'").rows == [(False,)]


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv of util-linux")
def test_killed_test_run_takes_its_server_with_it() -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", KILLED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(["src", "."])},
    )
    assert run.stdout is not None
    assert run.stdin is not None
    pid, directory = run.stdout.readline().split()
    server = os.pidfd_open(int(pid))
    try:
        run.send_signal(signal.SIGKILL)
        run.wait()
        # Readable when the process has ended.
        assert select.select([server], [], [], 60)[0] == [server]
    finally:
        os.close(server)
        run.stdin.close()
        run.stdout.close()
        shutil.rmtree(Path(directory).parent)
