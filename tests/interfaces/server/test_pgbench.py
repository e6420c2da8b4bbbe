"""pgbench, unmodified: its initialisation, TPC-B and point selects, in each of its protocols."""

from __future__ import annotations

import getpass
import subprocess
from pathlib import Path

from tests.interfaces.server.conftest import PORT, Connect
from tests.oracle.postgres import _program


def run_pgbench(directory: Path, *arguments: str) -> str:
    target = ["-h", str(directory), "-p", str(PORT), "-U", getpass.getuser()]
    ran = subprocess.run(
        [str(_program("pgbench")), *target, *arguments, "shop"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_pgbench_makes_its_tables_and_runs(server: Path, connect: Connect) -> None:
    run_pgbench(server, "-i", "-s", "1", "-q")
    for protocol in ("simple", "extended", "prepared"):
        said = run_pgbench(server, "-n", "-t", "10", "-M", protocol)
        assert "number of transactions actually processed: 10/10" in said
        assert "number of failed transactions: 0" in said
    run_pgbench(server, "-n", "-S", "-c", "4", "-t", "20", "-M", "prepared")
    con = connect()
    assert con.execute("select count(*) from pgbench_accounts").fetchone() == (100_000,)
    sums = [
        con.execute(f"select sum({column}) from pgbench_{table}").fetchone()
        for table, column in (
            ("accounts", "abalance"),
            ("tellers", "tbalance"),
            ("branches", "bbalance"),
            ("history", "delta"),
        )
    ]
    assert len(set(sums)) == 1, sums
    assert con.execute("select count(*) from pgbench_history").fetchone() == (30,)
