"""`belvedere copy` between a directory and HBase: the same rows, sequences and views both ways."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import belvedere

SETUP = (
    "CREATE TABLE customer (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT UNIQUE)",
    "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT REFERENCES customer, note TEXT)",
    "CREATE TABLE plain (a INT)",
    "INSERT INTO customer (name) SELECT 'n' || g FROM generate_series(1, 30) g",
    "INSERT INTO orders SELECT g, 1 + g % 30, CASE WHEN g % 3 > 0 THEN 'x;' || chr(10) || g END"
    " FROM generate_series(1, 50) g",
    "INSERT INTO plain VALUES (3), (1), (3)",
    "CREATE INDEX by_customer ON orders (customer)",
    "CREATE MATERIALIZED VIEW totals AS SELECT c.name, count(*) AS n FROM orders o"
    " JOIN customer c ON o.customer = c.id GROUP BY c.name",
    "CREATE MATERIALIZED VIEW later WITH (maintenance = 'deferred') AS"
    " SELECT customer, count(*) AS n FROM orders GROUP BY customer",
)


def run_copy(source: str, destination: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "belvedere", "copy", source, destination]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_database_moves_to_hbase_and_back(url: str, tmp_path: Path) -> None:
    first, second = str(tmp_path / "first.db"), str(tmp_path / "second.db")
    with belvedere.connect(first, autocommit=True) as con:
        for statement in SETUP:
            con.execute(statement)
    for source, destination in ((first, url), (url, second)):
        done = run_copy(source, destination)
        assert done.returncode == 0, done.stderr
        assert "3 tables, 83 rows, 2 views; compared and verified" in done.stdout
    again = run_copy(url, second)
    assert again.returncode == 1
    assert "not empty" in again.stderr
    shown = []
    for path in (first, second):
        with belvedere.connect(path, autocommit=True) as con:
            con.execute("INSERT INTO customer (name) VALUES ('next')")
            shown.append(
                [
                    con.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()
                    for name in ("customer", "orders", "totals", "later")
                ]
            )
    assert shown[0] == shown[1]
