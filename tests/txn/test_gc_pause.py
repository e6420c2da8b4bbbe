"""Batches of maintenance without the collector, and nothing else without it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from belvedere.txn.gc_pause import pause_cycle_collector
from belvedere.views.deferred import batch
from tests.views.sql import opened


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    was = gc.isenabled()
    gc.enable()
    yield
    if not was:
        gc.disable()


def test_the_collector_is_off_inside_and_on_again_after() -> None:
    with pause_cycle_collector():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_is_on_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="of the batch"), pause_cycle_collector():
        raise ValueError("of the batch")
    assert gc.isenabled()


def test_it_stays_off_for_whoever_has_it_off() -> None:
    gc.disable()
    with pause_cycle_collector():
        pass
    assert not gc.isenabled()


def test_a_batch_of_a_deferred_view_is_worked_out_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[bool] = []
    rows_of_state = batch.build_state_row_writes

    def noted(*arguments: object) -> object:
        seen.append(gc.isenabled())
        return rows_of_state(*arguments)  # type: ignore[arg-type]

    with opened() as store:
        store.run(
            "CREATE TABLE t (id int PRIMARY KEY, v int)",
            "CREATE MATERIALIZED VIEW s WITH (maintenance = 'deferred', refresh_every = '1 h')"
            " AS SELECT sum(v) AS s FROM t",
            "INSERT INTO t VALUES (1, 1), (2, 2)",
        )
        monkeypatch.setattr(batch, "build_state_row_writes", noted)
        store.run("REFRESH MATERIALIZED VIEW s")
        assert store.run("SELECT s FROM s") == [(3,)]
    assert seen
    assert not any(seen)
    assert gc.isenabled()
