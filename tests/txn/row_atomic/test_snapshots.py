"""At which position a node reads: who moves it, how many round trips that takes, how old it may
be."""

from __future__ import annotations

import pytest

from belvedere.config import Config
from belvedere.database import SQL_COMPILERS, Database
from belvedere.errors import Retry
from belvedere.kv.cell import Get
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.session.session import Session
from belvedere.txn.row_atomic import commit
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.engine import CellStoreSetup
from belvedere.txn.row_atomic.group_commit import GroupMember, complete_group
from belvedere.txn.row_atomic.locks import AttemptLocks
from belvedere.txn.row_atomic.log import advance
from belvedere.txn.row_atomic.node import Node, NodeSettings
from tests.txn.row_atomic.nodes import commits
from tests.txn.row_atomic.steps import Bench, work
from tests.txn.shop import create_shop, put, scan


def positions(bench: Bench) -> layout.Positions:
    return advance.decode_positions(bench.store.get(Get(layout.POSITION_ROW)))[0]


def prepare(bench: Bench, node: Node, name: str) -> GroupMember:
    held = AttemptLocks(node.start_attempt(), 0)
    return GroupMember(held, bench.run(commit.prepare_commit(node, held, work(name, 0, name))))


def test_a_writer_moves_the_positions_over_its_own_commit() -> None:
    bench = Bench()
    bench.run(commit.commit_transaction(bench.node(1), work("t", 0, "x", body=b"changes")))
    assert positions(bench) == layout.Positions(1, 1, 1)


def test_a_writer_does_not_move_them_over_a_position_that_is_open() -> None:
    bench = Bench()
    bench.run(commit.take_position(bench.node(2)))
    bench.run(commit.commit_transaction(bench.node(1), work("t", 0, "x")))
    assert positions(bench).applied == 0


def test_a_group_moves_them_over_all_its_members() -> None:
    bench = Bench()
    node = bench.node(1)
    bench.run(complete_group(node, [prepare(bench, node, name) for name in "xyz"]))
    assert positions(bench).applied == 3


def test_the_latest_position_is_one_round_trip_while_nobody_writes() -> None:
    bench = Bench()
    bench.run(commit.commit_transaction(bench.node(1), work("t", 0, "x")))
    assert bench.run(advance.latest_position(bench.node(2))) == 1
    assert bench.round_trips == 1


def open_timed_node(store: MemoryCells, now: list[float], seconds_max: float) -> Database:
    settings = NodeSettings(snapshot_seconds_max=seconds_max)
    setup = CellStoreSetup(store, settings, lambda: now[0], sends_heartbeats=False)
    return Database.on_cells(setup, Config())


def test_a_snapshot_is_used_again_for_a_moment_but_never_misses_commits_of_its_node() -> None:
    store, now = MemoryCells(), [0.0]
    one, two = (open_timed_node(store, now, 0.5) for _ in range(2))
    create_shop(one)
    assert two.position == one.position, "asked for the newest, also the catalog"
    put(two, "product", (1, "a"))
    now[0] += 1.0
    with one.begin() as reader:
        assert scan(reader, "product") == [(1, "a")]
    put(two, "product", (2, "b"))
    before = commits(one).round_trips
    with one.begin() as reader:
        assert scan(reader, "product") == [(1, "a")], "the snapshot is young enough"
    assert commits(one).round_trips == before + 1, "only the scan"
    put(one, "product", (3, "c"))
    with one.begin() as reader:
        assert scan(reader, "product") == [(1, "a"), (2, "b"), (3, "c")]
    put(two, "product", (4, "d"))
    with one.begin(at_least=one.position) as reader:
        assert len(scan(reader, "product")) == 4, "who asks for the newest gets it"
    put(two, "product", (5, "e"))
    now[0] += 0.5
    with one.begin() as reader:
        assert len(scan(reader, "product")) == 5, "too old by now"


def test_a_statement_that_does_not_bind_looks_for_a_newer_catalog() -> None:
    store, now = MemoryCells(), [0.0]
    setup = CellStoreSetup(
        store, NodeSettings(snapshot_seconds_max=9.0), lambda: now[0], sends_heartbeats=False
    )
    one, two = (Database.on_cells(setup, Config(), **SQL_COMPILERS) for _ in range(2))
    first, second = (Session(node.open_shared_state()) for node in (one, two))
    second.execute("SELECT 1")
    first.execute("CREATE TABLE t (a INT PRIMARY KEY)")
    assert second.execute("SELECT * FROM t").rows == []
    one.close()
    two.close()


def test_rows_of_a_newer_definition_than_the_first_statement_saw_are_not_committed() -> None:
    setup = CellStoreSetup(MemoryCells(), sends_heartbeats=False)
    node = Database.on_cells(setup, Config(), **SQL_COMPILERS)
    shared = node.open_shared_state()
    one, other = Session(shared), Session(shared)
    other.execute("CREATE TABLE t (a INT PRIMARY KEY)")
    one.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    one.execute("INSERT INTO t VALUES (1)")
    other.execute("ALTER TABLE t ADD COLUMN b INT")
    one.execute("INSERT INTO t VALUES (2, 3)")
    with pytest.raises(Retry, match="catalog changed"):
        one.execute("COMMIT")
    assert other.execute("SELECT * FROM t").rows == []
    node.close()
