"""The matrix of REFRESH beside PostgreSQL: every cell is there, and the answers are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from belvedere.benchmarks.report import postgres_peer
from belvedere.benchmarks.report.measurements import BenchmarkReport
from belvedere.benchmarks.views import growth, refresh_matrix
from belvedere.benchmarks.views.growth import TableSize, open_growth_store
from belvedere.benchmarks.views.matrix import LiveIds, name_view
from belvedere.benchmarks.views.workload import open_connection

CELLS = len(refresh_matrix.SHARES) * len(refresh_matrix.VIEWS)


@pytest.mark.parametrize("tier", ["auto", "python", "duckdb", "refill"])
def test_every_cell_is_measured_and_no_row_differs(tmp_path: Path, tier: str) -> None:
    report = BenchmarkReport("matrix", 1)
    with postgres_peer.postgres_connection() as server:
        if server is None:
            assert "not installed" in refresh_matrix.run(0.001, 1).absent[0]
            return
        with open_connection(tmp_path / "store") as connection:
            connection.execute(f"SET maintenance_tier = '{tier}'")
            refresh_matrix.measure_cells(connection, server, 600, report)
    differ = [figure for figure in report.figures if figure.name.endswith("rows that differ")]
    assert [figure.value for figure in differ] == [0, 0, 0]
    assert len(report.figures) == 2 * CELLS + len(differ)  # by time, and by that of the CPU
    assert all(figure.baseline for figure in report.figures if figure not in differ)


def test_a_row_that_differs_is_counted(tmp_path: Path) -> None:
    with postgres_peer.postgres_connection() as server:
        if server is None:
            assert "not installed" in refresh_matrix.run(0.001, 1).absent[0]
            return
        with open_connection(tmp_path / "store") as connection:
            view = f"CREATE MATERIALIZED VIEW {name_view('filter')} AS SELECT"
            connection.execute(f"{view} 1 AS id, 2 AS v")
            server.execute(f"{view} 1 AS id, 3 AS v")
            assert refresh_matrix.count_different_rows(connection, server, "filter") == 2


def count_refresh_keys(rows: int) -> dict[str, int]:
    """Keys of the store that REFRESH of each view reads and writes after equally many changes."""
    found = {}
    with open_growth_store(TableSize(0, 1)) as store:
        store.run("DROP TABLE t")
        for statement in refresh_matrix._TABLES:
            store.run(statement)
        store.run(f"INSERT INTO t SELECT i, i / 10, i FROM generate_series(0, {rows - 1}) AS s (i)")
        for number, (name, query) in enumerate(refresh_matrix.VIEWS.items()):
            store.run(
                f"CREATE MATERIALIZED VIEW {name_view(name)} WITH (maintenance = 'deferred',"
                f" refresh_every = '{3600 + number} s') AS {query}"
            )
        LiveIds(0, rows).apply_changes(10, store.run)
        for name in refresh_matrix.VIEWS:
            store.counter.take_counts()
            store.run(f"REFRESH MATERIALIZED VIEW {name_view(name)}")
            found[name] = sum(store.counter.take_counts())
    return found


def test_a_refresh_touches_as_many_keys_in_a_large_table() -> None:
    small, large = count_refresh_keys(1_000), count_refresh_keys(4_000)
    assert all(small.values())
    grown = {name for name in small if large[name] > growth.GOAL * small[name]}
    assert grown == set()
