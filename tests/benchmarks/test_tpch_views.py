"""TPC-H with advised views, small: every query is answered from one, and no answer changes."""

from __future__ import annotations

from pathlib import Path

from belvedere.benchmarks.queries import load_tables, write_files
from belvedere.benchmarks.report.measurements import BenchmarkReport
from belvedere.benchmarks.tpch.generate import compute_sizes
from belvedere.benchmarks.tpch_views import AdvisedStore, measure_store
from belvedere.interfaces.dbapi import connect

LINES = 3_000
ANSWERED_MIN = 18
"""Queries that read views; how many pay depends on how small the tables are."""


def test_advised_views_change_no_answer_of_tpch(tmp_path: Path) -> None:
    size, path = compute_sizes(LINES), tmp_path / "store"
    report = BenchmarkReport("tpch", 1)
    with connect(str(path), durability="off", autocommit=True) as connection:
        load_tables(connection, write_files(tmp_path, size, 1))
        store = AdvisedStore(connection, path, size)
        measure_store(report, store, 1, lambda: None)
        answered = [n for n in range(1, 23) if "rewritten" in _explain(store, n)]
    figures = {one.name: one for one in report.figures}
    assert figures["answers equal to those without views"].value == 22
    assert figures["answers equal to those over tables, after writes"].value == 22
    assert figures["size of the views"].meets_goal
    assert len(answered) >= ANSWERED_MIN


def _explain(store: AdvisedStore, number: int) -> str:
    rows = store.connection.execute(f"EXPLAIN {store.query_text(number)}").fetchall()
    return "\n".join(str(row[0]) for row in rows)
