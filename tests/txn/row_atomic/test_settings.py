"""Settings that all nodes of a store agree on are kept in it, and others are refused."""

from __future__ import annotations

from typing import Any

import pytest

from belvedere.errors import InvalidInput
from belvedere.kv.cell import BeginWork, CheckAndMutate, Get, Operation, execute_operation
from belvedere.txn.row_atomic import hbase_setup
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.node import WORK_SHARE, NodeSettings, agree_on_settings
from tests.txn.row_atomic.nodes import open_node
from tests.txn.row_atomic.steps import Bench

DEFAULTS = NodeSettings()


def test_the_first_node_chooses_and_all_others_follow() -> None:
    bench = Bench()
    chosen = bench.run(agree_on_settings(DEFAULTS, 30_000, 8_000))
    assert (chosen.lease_seconds, chosen.grace_seconds) == (30.0, 8.0)
    assert chosen.work_seconds_max == pytest.approx(8.0 * WORK_SHARE)
    other_program = NodeSettings(lanes=64, lease_seconds=3.0, grace_seconds=1.0)
    followed = bench.run(agree_on_settings(other_program, None, None))
    assert (followed.lease_seconds, followed.grace_seconds) == (30.0, 8.0)
    assert followed.lanes == DEFAULTS.lanes


@pytest.mark.parametrize(("lease_ms", "grace_ms"), [(20_000, None), (None, 6_000)])
def test_another_lease_or_grace_than_that_of_the_database_is_refused(
    lease_ms: int | None, grace_ms: int | None
) -> None:
    bench = Bench()
    bench.run(agree_on_settings(DEFAULTS, None, None))
    bench.run(agree_on_settings(DEFAULTS, 10_000, 5_000))
    with pytest.raises(InvalidInput, match="another lease or grace") as refused:
        bench.run(agree_on_settings(DEFAULTS, lease_ms, grace_ms))
    assert refused.value.facts["lease_ms"] == 10_000


def test_a_lease_within_the_grace_is_refused_and_nothing_is_kept() -> None:
    bench = Bench()
    with pytest.raises(InvalidInput, match="longer than the grace"):
        bench.run(agree_on_settings(DEFAULTS, 4_000, None))
    assert bench.store.get(Get(layout.SETTINGS_ROW)) == ()


def test_two_nodes_that_open_a_new_store_at_once_agree() -> None:
    bench = Bench()
    slow = agree_on_settings(DEFAULTS, None, None)
    operation = next(slow)
    while not isinstance(operation, CheckAndMutate):
        done = None if isinstance(operation, BeginWork) else perform(bench, operation)
        operation = slow.send(done)
    assert bench.run(agree_on_settings(DEFAULTS, 30_000, None)).lease_seconds == 30.0
    assert perform(bench, operation) is False
    looks_again = slow.send(False)
    with pytest.raises(StopIteration) as ended:
        slow.send(perform(bench, looks_again))
    assert ended.value.value.lease_seconds == 30.0


def perform(bench: Bench, operation: Operation) -> Any:
    return execute_operation(bench.store, operation)


def test_a_store_made_before_settings_were_kept_has_the_usual_ones() -> None:
    bench = Bench()
    database = open_node(bench.store)
    database.close()
    with pytest.raises(InvalidInput, match="another lease"):
        bench.run(agree_on_settings(DEFAULTS, 30_000, None))
    assert bench.run(agree_on_settings(DEFAULTS, None, None)) == DEFAULTS


@pytest.mark.parametrize("options", ["timeout_ms=400000", "timeout_ms=700&grace_ms=1000"])
def test_a_timeout_that_no_grace_allows_is_refused_before_anybody_is_asked(
    monkeypatch: pytest.MonkeyPatch, options: str
) -> None:
    def ask_nobody(*_: object, **__: object) -> None:
        raise AssertionError("a gateway was asked")

    monkeypatch.setattr(hbase_setup, "HBaseCells", ask_nobody)
    with pytest.raises(InvalidInput, match="may not take that long"):
        hbase_setup.open_hbase(f"hbase://localhost:1/x?{options}")
