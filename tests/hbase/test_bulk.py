"""A load of many rows on a real HBase: one transaction, read by others whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import belvedere

ROWS = 5_000
TOTALS = "SELECT bucket, count(*) AS n, sum(id) AS s FROM t GROUP BY bucket"
SCHEMA = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, bucket INT NOT NULL, name TEXT)",
    "CREATE INDEX by_name ON t (name)",
    f"CREATE MATERIALIZED VIEW totals AS {TOTALS}",
    "INSERT INTO t VALUES (0, 0, 'first')",
)
LOAD_AND_DIE = """
import os, signal, sys
import belvedere
from belvedere.txn.row_atomic.log import record_parts
apply_parts = record_parts.apply_parts
def die_at_second(*arguments):
    step, sent = apply_parts(*arguments), None
    for _ in range(6):
        sent = yield step.send(sent)
    os.kill(os.getpid(), signal.SIGKILL)
record_parts.apply_parts = die_at_second
with belvedere.connect(sys.argv[1], autocommit=True) as con:
    con.execute("COPY t FROM '" + sys.argv[2] + "' WITH (FORMAT csv)")
"""


def write_file(directory: Path) -> Path:
    path = directory / "rows.csv"
    path.write_text("".join(f"{n},{n % 7},name {n}\n" for n in range(1, ROWS + 1)))
    return path


def check_rows(con: belvedere.Connection) -> None:
    con.execute("SET freshness = 'latest'")
    found = con.execute("SELECT count(*), sum(id) FROM t").fetchall()
    assert found == [(ROWS + 1, ROWS * (ROWS + 1) // 2)]
    assert con.execute("SELECT sum(n), sum(s) FROM totals").fetchall() == found
    assert con.execute("SELECT id FROM t WHERE name = 'name 4999'").fetchall() == [(4999,)]


def test_a_copy_of_many_rows_is_one_record_of_the_log(url: str, tmp_path: Path) -> None:
    with belvedere.connect(url, autocommit=True) as con:
        for statement in SCHEMA:
            con.execute(statement)
        con.execute(f"COPY t FROM '{write_file(tmp_path)}' WITH (FORMAT csv)")
        check_rows(con)
        con.execute("UPDATE t SET bucket = bucket + 1")
        assert con.execute("SELECT max(bucket) FROM totals").fetchall() == [(7,)]
        con.execute("DELETE FROM t WHERE id > 0")
        assert con.execute("SELECT bucket, n FROM totals").fetchall() == [(1, 1)]


def test_others_finish_a_load_whose_process_was_killed(url: str, tmp_path: Path) -> None:
    quick = url + "?lease_ms=6000&grace_ms=5000"
    with belvedere.connect(quick, autocommit=True) as con:
        for statement in SCHEMA:
            con.execute(statement)
        command = [sys.executable, "-c", LOAD_AND_DIE, quick, str(write_file(tmp_path))]
        done = subprocess.run(command, check=False, env=os.environ, timeout=120)
        assert done.returncode == -signal.SIGKILL
        check_rows(con)
        con.execute("INSERT INTO t VALUES (-1, 0, 'after')")
