"""Which libraries a program loads with its first statements."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
import belvedere
with belvedere.connect(sys.argv[1], autocommit=True) as connection:
    connection.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")
    connection.execute(
        "CREATE MATERIALIZED VIEW w WITH (maintenance = 'deferred', refresh_every = '1 h')"
        " AS SELECT a, b FROM t WHERE a > 0"
    )
    connection.execute("INSERT INTO t VALUES (1, 'x')")
    connection.execute("REFRESH MATERIALIZED VIEW w")
    assert connection.execute("SELECT * FROM w").fetchall() == [(1, "x")]
    assert connection.execute("SELECT * FROM v").fetchall() == [("x", 1)]
print([m for m in ("duckdb", "happybase", "numpy", "pyarrow", "pyspark") if m in sys.modules])
"""


def test_small_statements_load_no_heavy_library(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "store")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]", done.stderr
