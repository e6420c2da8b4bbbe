"""Several nodes on one HBase: what they show of each other, tend, and finish for the dead."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

import pytest

import belvedere
from belvedere.config import Config
from belvedere.database import SQL_COMPILERS, Database
from belvedere.kv.cell import CellScan, Get
from belvedere.kv.hbase.store import HBaseCells
from belvedere.kv.hbase.url import parse_url
from belvedere.session.session import Session
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.engine import CellStoreSetup
from belvedere.txn.row_atomic.hbase_setup import build_table_layout
from belvedere.txn.row_atomic.node import NodeSettings
from tests.hbase.test_sql import other_node
from tools.hbase.admin import HBaseAdmin

TOTALS = "SELECT owner, sum(amount) AS total FROM account GROUP BY owner"
HASTY = NodeSettings(
    lease_seconds=1.0, grace_seconds=0.6, work_seconds_max=0.3, lock_poll_seconds=0.05
)


class Killed(BaseException):
    """The process is gone."""


class MortalCells(HBaseCells):
    """A store whose process dies before or after its n-th change."""

    changes_left = -1
    dies_before = True

    def execute_many(self, operations: Any) -> tuple[Any, ...]:
        if self.changes_left == 0:
            raise Killed
        self.changes_left -= 1
        if self.changes_left == 0 and not self.dies_before:
            super().execute_many(operations)
        if self.changes_left == 0:
            raise Killed
        return super().execute_many(operations)


def open_session(store: HBaseCells) -> tuple[Database, Session]:
    """A node without a heart: once it stops, others take it for dead."""
    setup = CellStoreSetup(store, HASTY, sends_heartbeats=False)
    database = Database.on_cells(setup, Config(), **SQL_COMPILERS)
    return database, Session(database.open_shared_state())


@pytest.mark.parametrize("dies_before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("step", range(1, 7))
def test_what_a_dead_node_began_is_finished_or_closed(
    url: str, step: int, dies_before: bool
) -> None:
    tables = build_table_layout(HASTY)
    dying, living = (kind(parse_url(url), tables) for kind in (MortalCells, HBaseCells))
    _, first = open_session(dying)
    two, second = open_session(living)
    first.execute("CREATE TABLE account (id INT PRIMARY KEY, owner TEXT, amount INT)")
    first.execute(f"CREATE MATERIALIZED VIEW totals AS {TOTALS}")
    first.execute("INSERT INTO account VALUES (1, 'ann', 10), (2, 'bob', 20)")
    dying.dies_before, dying.changes_left = dies_before, step
    with pytest.raises(Killed):
        first.execute("UPDATE account SET amount = amount + 1")
    second.execute("SET freshness = 'latest'")
    second.execute("UPDATE account SET amount = amount + 100")
    rows = second.execute("SELECT id, amount FROM account ORDER BY id").rows
    assert rows in ([(1, 110), (2, 120)], [(1, 111), (2, 121)]), "both rows, or none"
    assert second.execute("VERIFY MATERIALIZED VIEW totals").rows[0][-1] is True
    assert list(two.engine.list_node_locks()) == []
    two.close()
    for store in (dying, living):
        store.close()


def test_nodes_and_regions_are_system_tables(url: str) -> None:
    with belvedere.connect(url) as one, belvedere.connect(other_node(url)) as two:
        two.execute("CREATE TABLE t (a INT PRIMARY KEY)")
        two.commit()
        nodes = one.execute("SELECT node, here, alive FROM belvedere.nodes ORDER BY 1").fetchall()
        assert nodes == [(1, True, True), (2, False, True)]
        namespace = parse_url(url).namespace
        regions = one.execute(
            "SELECT table_name, count(*) FROM belvedere.regions GROUP BY 1 ORDER BY 1"
        ).fetchall()
        assert regions == [(f"{namespace}:rows", 5), (f"{namespace}:system", 17)]
        assert one.execute("SELECT * FROM belvedere.node_locks").fetchall() == []


def test_what_one_process_has_sampled_serves_the_others(url: str) -> None:
    shown = "SELECT column_name, rows_estimate, distinct_estimate, common FROM belvedere.statistics"
    with (
        belvedere.connect(url, autocommit=True) as one,
        belvedere.connect(other_node(url)) as two,
    ):
        one.execute("CREATE TABLE t (a INT PRIMARY KEY, kind INT)")
        one.execute("INSERT INTO t SELECT i, i % 3 FROM generate_series(1, 300) i")
        one.execute("ANALYZE t")
        found = one.execute(shown).fetchall()
        assert [row[:3] for row in found] == [("a", 300, 300), ("kind", 300, 3)]
        two.execute("SET freshness = 'latest'")
        assert two.execute(shown).fetchall() == found
        store = HBaseCells(parse_url(url), build_table_layout(NodeSettings()))
        samples = store.scan(CellScan(layout.SAMPLES, None))
        store.close()
        assert [layout.split_sample_row(row)[1] for row, _ in samples] == [1]


def test_lease_and_grace_are_those_of_the_database(url: str) -> None:
    shown = "SELECT DISTINCT lease_seconds, grace_seconds FROM belvedere.nodes"
    with (
        belvedere.connect(f"{url}?lease_ms=20000&grace_ms=8000") as one,
        belvedere.connect(other_node(url)) as two,
    ):
        assert one.execute(shown).fetchall() == two.execute(shown).fetchall() == [(20.0, 8.0)]
        with pytest.raises(belvedere.DataError, match="another lease or grace"):
            belvedere.connect(f"{url}?lease_ms=10000")
        with pytest.raises(belvedere.DataError, match="may not take that long"):
            belvedere.connect(f"{url}?timeout_ms=4800")


def test_a_node_tends_the_database_and_nobody_notices_but_by_its_size(
    url: str, hbase_admin: HBaseAdmin
) -> None:
    with belvedere.connect(url, autocommit=True) as con:
        con.execute("CREATE TABLE account (id INT PRIMARY KEY, owner TEXT, amount INT)")
        con.execute(f"CREATE MATERIALIZED VIEW totals AS {TOTALS}")
        con.execute("INSERT INTO account VALUES (1, 'ann', 0), (2, 'bob', 7)")
        for _ in range(12):
            con.execute("UPDATE account SET amount = amount + 1 WHERE id = 1")
        command = [sys.executable, "-m", "belvedere", "node", "--database", url, "--keep", "5"]
        node = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert node.stdout is not None
        assert "tends" in node.stdout.readline()
        assert "tended up to position" in node.stdout.readline()
        assert count_versions(url, con) <= 8
        for table in ("rows", "system"):
            hbase_admin.compact_and_wait(f"{parse_url(url).namespace}:{table}")
        assert con.execute("SELECT amount FROM account ORDER BY id").fetchall() == [(12,), (7,)]
        assert con.execute("SELECT * FROM totals ORDER BY 1").fetchall() == [
            ("ann", 12),
            ("bob", 7),
        ]
        assert con.execute("VERIFY MATERIALIZED VIEW totals").fetchall()[0][-1] is True
        con.execute("UPDATE account SET amount = amount + 1 WHERE id = 1")
        node.send_signal(signal.SIGTERM)
        assert node.wait(60) == 0
        assert "stopping after SIGTERM" in node.stdout.read()
        node.stdout.close()
        assert con.execute("SELECT total FROM totals ORDER BY 1").fetchall() == [(7,), (13,)]


def count_versions(url: str, con: belvedere.Connection) -> int:
    """Versions that the row of the first account has in HBase."""
    store = HBaseCells(parse_url(url), build_table_layout(NodeSettings()))
    [(id_,)] = con.execute("SELECT id FROM belvedere.tables WHERE name = 'account'").fetchall()
    key = b"\x10" + id_.to_bytes(4) + b"\x01\x80" + (1).to_bytes(7)
    amount = [c for c in store.get(Get(key, all_versions=True)) if c.column == b"c2"]
    store.close()
    assert amount
    return len(amount)
