"""`belvedere shell` of a store that an application has open: the same answers, one process on."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from belvedere.interfaces.dbapi import Connection
from belvedere.interfaces.exceptions import DatabaseError
from belvedere.interfaces.remote import RemoteSession
from belvedere.interfaces.shell.render import OutputFormat
from belvedere.interfaces.shell.shell import Shell
from belvedere.pipeline.store.client import Store

SCRIPT = """
CREATE TABLE t (id bigint PRIMARY KEY, v numeric, u uuid, i interval, z timestamptz, b bytea);
INSERT INTO t VALUES (1, 1.50, '00000000-0000-0000-0000-00000000002a', '1 day 2 hours',
  '2026-11-16 01:02:03+00', '\\x01ff');
INSERT INTO t (id, v) VALUES (2, 100000000000000000000000000000000000000000.25);
SELECT * FROM t ORDER BY id;
SELECT NULL AS nothing, 'text', true, 1.5::float8, ARRAY[1, 2];
SELECT count(*) FROM t WHERE false;
\\d t
\\d
DROP TABLE t;
"""


def connect_remote(store: Store) -> Connection:
    return Connection(RemoteSession(store.directory), lambda: None)


def said(connection: Connection, script: str) -> str:
    out = io.StringIO()
    Shell(connection, OutputFormat.TABLE, out, out).run_text(script)
    return out.getvalue()


def test_the_answers_are_the_same_as_in_the_owner(store: Store, connection: Connection) -> None:
    here = said(connection, SCRIPT)
    with connect_remote(store) as remote:
        there = said(remote, SCRIPT)
    assert there == here
    assert "1 day 02:00:00" in there


def test_a_transaction_lasts_over_statements_and_ends_with_the_connection(
    store: Store, connection: Connection
) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
    with connect_remote(store) as remote:
        remote.execute("BEGIN")
        remote.execute("INSERT INTO t VALUES (1)")
        assert remote.session.transactions.open is not None
        assert connection.execute("SELECT * FROM t").fetchall() == []
        remote.execute("COMMIT")
        assert remote.session.transactions.open is None
        remote.execute("BEGIN")
        remote.execute("INSERT INTO t VALUES (2)")
        with pytest.raises(DatabaseError, match="syntax"):
            remote.execute("SELECT FROM WHERE")
        assert remote.session.transactions.failed
    assert connection.execute("SELECT * FROM t").fetchall() == [(1,)]


def test_the_command_reaches_a_store_in_use(store: Store, connection: Connection) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
    command = [sys.executable, "-m", "belvedere.interfaces.cli", "shell", str(store.directory)]
    done = subprocess.run(
        [*command, "-c", "INSERT INTO t VALUES (7); SELECT id FROM t;"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["INSERT", "1", "id", "----", "7", "(1", "row)"]
    assert connection.execute("SELECT * FROM t").fetchall() == [(7,)]
    assert Path(store.directory / "LOCK").exists()


def test_notices_cross_the_socket(store: Store, connection: Connection) -> None:
    script = """
    CREATE TABLE t (id bigint PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS t (id bigint PRIMARY KEY);
    CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t;
    REFRESH MATERIALIZED VIEW v;
    DROP TABLE IF EXISTS nosuch;
    SELECT 1 AS a;
    DROP TABLE t CASCADE;
    """
    here = said(connection, script)
    with connect_remote(store) as remote:
        assert said(remote, script) == here
        assert said(remote, "SELECT 2 AS a").count("notice") == 0, "each once"
    assert here.count("notice: ") == 4
    outcome = store.execute("DROP TABLE IF EXISTS nosuch")
    assert outcome.notices == ('table "nosuch" does not exist, skipping',)


def test_notices_of_a_text_that_fails_cross_too(store: Store) -> None:
    with connect_remote(store) as remote:
        with pytest.raises(DatabaseError):
            remote.execute("DROP TABLE IF EXISTS nosuch; SELECT * FROM nosuch")
        assert remote.notices == ['table "nosuch" does not exist, skipping']
        remote.execute("SELECT 1")
        assert remote.session.notices.total_count == 1
