"""The benchmark measures everything it says, at any size; how fast is not for a test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from belvedere.benchmarks.hbase import suite
from belvedere.errors import InvalidInput
from belvedere.interfaces import cli
from belvedere.txn.row_atomic.hbase_setup import open_hbase
from tools.hbase.single import SingleHBase

NAMES = {
    "point read, to a bare get",
    "the same, CPU of this process",
    "round trips: a point read",
    "one-lock transaction, to a bare put",
    "the same one after the other",
    "10 rows in 3 tables, to one row",
    "a transaction with 10 lock rows",
    "a transaction with 100 lock rows",
    "round trips: read the row",
    "round trips: commit to acknowledgement",
    "round trips: after it",
    "scan to Arrow, a row, to a bare scan",
    "write with 1 immediate view, to none",
    "join of 3 tables by plan, to its view",
    "commits/s, 16 threads of one process, to 1",
    "commits/s, 1 processes",
    "commits/s, 2 processes",
    "commits/s, 4 processes",
    *(
        f"{kind} of the mix at 100/s, {threads} threads, to a bare call"
        for kind in ("read", "update", "scan")
        for threads in (1, 50)
    ),
    *(
        f"dashboard, {mode}, {processes} processes"
        for mode in ("no view", "synchronous", "asynchronous")
        for processes in (1, 2, 4)
    ),
}


def test_every_figure_is_measured_and_the_database_removed(
    hbase: SingleHBase, tmp_path: Path
) -> None:
    url = f"{hbase.url}/bench"
    report = suite.run(0.01, 1, database=url)
    report.write_json(tmp_path / "hbase.json")
    written = json.loads((tmp_path / "hbase.json").read_text())
    figures = {figure["name"]: figure for figure in written["figures"]}
    assert figures.keys() == NAMES
    assert all(figure["value"] > 0 for figure in figures.values())
    assert figures["round trips: commit to acknowledgement"]["value"] == 5
    assert figures["round trips: after it"]["value"] == 2
    with pytest.raises(InvalidInput, match="there is no such database"):
        open_hbase(url, create=False)


def test_without_an_hbase_it_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", "hbase"])
    assert ended.value.code == 1
    assert "make hbase-up" in capsys.readouterr().err
