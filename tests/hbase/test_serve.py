"""`belvedere serve hbase://..`: clients of PostgreSQL on a database that other processes use."""

from __future__ import annotations

import getpass
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import belvedere
from belvedere.kv.hbase.url import parse_url
from tests.hbase.test_sql import other_node
from tests.oracle.postgres import _program

PORT = "5433"


@pytest.fixture
def served(url: str, tmp_path: Path) -> Iterator[Path]:
    """The directory of the socket of a server for the database."""
    command = [sys.executable, "-m", "belvedere", "serve", url]
    command += ["--socket", str(tmp_path), "--port", PORT]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stdout.readline().startswith("serving hbase://")
    yield tmp_path
    server.send_signal(signal.SIGTERM)
    assert server.wait(60) == 0
    server.stdout.close()


def test_psql_and_an_embedded_process_share_the_database(url: str, served: Path) -> None:
    namespace = parse_url(url).namespace
    with psycopg.connect(
        host=str(served), port=PORT, dbname=namespace, user=getpass.getuser(), autocommit=True
    ) as client:
        client.execute("CREATE TABLE item (id int PRIMARY KEY, price numeric(8,2))")
        client.execute("CREATE MATERIALIZED VIEW total AS SELECT sum(price) AS price FROM item")
        client.execute("INSERT INTO item VALUES (1, 2.50), (2, 4.00)")
    with belvedere.connect(other_node(url), autocommit=True) as con:
        con.execute("INSERT INTO item VALUES (3, 10.00)")
    printed = run_psql(served, namespace, "SET freshness = 'latest'", "SELECT price FROM total")
    assert printed == "SET\n16.50\n"
    assert "item" in run_psql(served, namespace, r"\dt")


def run_psql(directory: Path, database: str, *statements: str) -> str:
    command = [str(_program("psql")), "-X", "-A", "-t", "-h", str(directory), "-p", PORT]
    for statement in statements:
        command += ["-c", statement]
    command += ["-d", database, "-U", getpass.getuser()]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
