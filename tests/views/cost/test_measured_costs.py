"""What batches take, measured against what is expected."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from belvedere.errors import Corruption
from belvedere.views.cost import measured_costs
from belvedere.views.cost.maintenance_tier import MaintenanceTier
from belvedere.views.cost.measured_costs import (
    CHANGES_MIN,
    FACTOR_MAX,
    KEPT_COSTS,
    CostFactors,
    start_timer,
)
from belvedere.views.state.additions import EmptyReader
from tests.views.sql import opened


def test_nothing_measured_is_as_expected() -> None:
    assert CostFactors().scale_to_measured_seconds(1, MaintenanceTier.PYTHON, 2.0) == 2.0


def test_what_was_measured_is_expected_of_the_same_view_and_way() -> None:
    costs = CostFactors()
    costs.record_batch_cost(1, MaintenanceTier.PYTHON, 1.0, 3.0, CHANGES_MIN)
    costs.record_batch_cost(1, MaintenanceTier.DUCKDB, 1.0, 0.5, CHANGES_MIN)
    assert costs.scale_to_measured_seconds(1, MaintenanceTier.PYTHON, 2.0) == 6.0
    assert costs.scale_to_measured_seconds(1, MaintenanceTier.DUCKDB, 2.0) == 1.0


def test_one_way_alone_does_not_change_the_choice() -> None:
    costs = CostFactors()
    costs.record_batch_cost(1, MaintenanceTier.REFILL, 1.0, 5.0, CHANGES_MIN)
    for view in (1, 2):
        assert {costs.scale_to_measured_seconds(view, way, 1.0) for way in MaintenanceTier} == {5.0}


def test_a_way_of_a_view_never_taken_is_as_that_of_others() -> None:
    costs = CostFactors()
    costs.record_batch_cost(1, MaintenanceTier.PYTHON, 1.0, 2.0, CHANGES_MIN)
    costs.record_batch_cost(1, MaintenanceTier.REFILL, 1.0, 8.0, CHANGES_MIN)
    assert costs.scale_to_measured_seconds(2, MaintenanceTier.REFILL, 1.0) == 8.0
    assert costs.scale_to_measured_seconds(2, MaintenanceTier.PYTHON, 1.0) == 2.0


def test_a_noisy_batch_is_forgotten_with_the_next_ones() -> None:
    costs = CostFactors()
    for taken in (1.0, 20.0, *[1.0] * 20):
        costs.record_batch_cost(1, MaintenanceTier.PYTHON, 1.0, taken, CHANGES_MIN)
    assert costs.scale_to_measured_seconds(1, MaintenanceTier.PYTHON, 1.0) == pytest.approx(
        1.0, abs=0.01
    )


def test_a_way_that_is_not_taken_is_tried_again_some_time() -> None:
    costs = CostFactors()
    for view in (2, 3, 4):
        costs.record_batch_cost(view, MaintenanceTier.REFILL, 1.0, 1.0, CHANGES_MIN)
    costs.record_batch_cost(1, MaintenanceTier.REFILL, 1.0, 10.0, CHANGES_MIN)
    for view in (2, 3, 4, 2, 3, 4):
        costs.record_batch_cost(view, MaintenanceTier.REFILL, 1.0, 1.0, CHANGES_MIN)
    assert costs.scale_to_measured_seconds(1, MaintenanceTier.REFILL, 1.0) == 10.0
    for _ in range(200):
        costs.decay_unused_factor(1, MaintenanceTier.REFILL)
    assert costs.scale_to_measured_seconds(1, MaintenanceTier.REFILL, 1.0) < 1.5


@pytest.mark.parametrize(
    ("changes", "seconds"), [(CHANGES_MIN - 1, 1.0), (1e6, 0.0), (1e6, math.inf)]
)
def test_what_tells_nothing_is_not_noted(changes: float, seconds: float) -> None:
    costs = CostFactors()
    costs.record_batch_cost(1, MaintenanceTier.PYTHON, seconds, 7.0, changes)
    assert costs.scale_to_measured_seconds(1, MaintenanceTier.PYTHON, 1.0) == 1.0


def test_a_factor_stays_within_bounds() -> None:
    costs = CostFactors()
    costs.record_batch_cost(1, MaintenanceTier.PYTHON, 1e-9, 1e9, CHANGES_MIN)
    costs.record_batch_cost(1, MaintenanceTier.REFILL, 1e9, 1e-9, CHANGES_MIN)
    assert costs.scale_to_measured_seconds(1, MaintenanceTier.PYTHON, 1.0) == FACTOR_MAX
    assert costs.scale_to_measured_seconds(1, MaintenanceTier.REFILL, 1.0) == 1 / FACTOR_MAX


class KeptRows(EmptyReader):
    """A reader of what is kept with a store that has these views."""

    def __init__(self, rows: dict[bytes, bytes | None], *views: int) -> None:
        super().__init__(SimpleNamespace(views=[SimpleNamespace(id=id_) for id_ in views]))  # type: ignore[arg-type]
        self._rows = rows

    def get(self, key: bytes) -> bytes | None:  # type: ignore[override]
        return self._rows.get(key)


def test_what_was_measured_is_kept_for_the_next_process() -> None:
    costs = CostFactors()
    assert costs.build_kept_writes() == []
    costs.record_batch_cost(1, MaintenanceTier.PYTHON, 1.0, 3.0, CHANGES_MIN)
    costs.record_batch_cost(1, MaintenanceTier.REFILL, 1.0, 4.5, CHANGES_MIN)
    costs.record_batch_cost(2, MaintenanceTier.PYTHON, 1.0, 0.5, CHANGES_MIN)
    rows = dict(costs.build_kept_writes())
    assert rows.keys() == {KEPT_COSTS}
    assert costs.build_kept_writes() == []
    again = CostFactors()
    again.restore_kept_costs(KeptRows(rows, 1))
    for view, way in ((1, MaintenanceTier.PYTHON), (1, MaintenanceTier.REFILL)):
        kept, known = (one.scale_to_measured_seconds(view, way, 1.0) for one in (again, costs))
        assert kept == known
    assert again.describe_errors(1) == costs.describe_errors(1) != again.describe_errors(2)
    # View 2 is not there any more, but what its batches say of the machine is.
    others = {
        one.scale_to_measured_seconds(3, MaintenanceTier.PYTHON, 1.0) for one in (again, costs)
    }
    assert len(others) == 1
    assert again.scale_to_measured_seconds(2, MaintenanceTier.PYTHON, 1.0) in others
    again.restore_kept_costs(KeptRows({}, 1))
    assert again.scale_to_measured_seconds(1, MaintenanceTier.PYTHON, 1.0) == 3.0


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"factors": [[1, "fast", 2]]}', b"\xff"])
def test_kept_costs_that_are_damaged_are_told(data: bytes) -> None:
    with pytest.raises(Corruption, match="damaged"):
        CostFactors().restore_kept_costs(KeptRows({KEPT_COSTS: data}, 1))


def test_errors_of_estimates_become_less_with_measured_batches() -> None:
    costs = CostFactors()
    assert costs.describe_errors(1) is None
    costs.record_batch_cost(1, MaintenanceTier.PYTHON, 1.0, 8.0, CHANGES_MIN)
    assert costs.describe_errors(1) == "estimates were off by: python 8.0x"
    for _ in range(12):
        costs.record_batch_cost(1, MaintenanceTier.PYTHON, 1.0, 8.0, CHANGES_MIN)
    costs.record_batch_cost(1, MaintenanceTier.REFILL, 1.0, 8.0, CHANGES_MIN)
    assert costs.describe_errors(1) == "estimates were off by: python 1.0x, refill 1.0x"


def test_a_store_that_is_opened_again_knows_its_costs(tmp_path: Path) -> None:
    view = "CREATE MATERIALIZED VIEW w WITH (maintenance = 'deferred', refresh_every = '1 d')"
    told = []
    with opened(tmp_path / "s") as store:
        store.run("CREATE TABLE t (id int PRIMARY KEY, v int)")
        store.run(f"{view} AS SELECT v, count(*) AS c FROM t GROUP BY v")
        store.run(
            f"INSERT INTO t SELECT i, i % 9 FROM generate_series(1, {CHANGES_MIN}) AS s (i)",
            "REFRESH MATERIALIZED VIEW w",
        )
        told.append(store.run("EXPLAIN MATERIALIZED VIEW w")[-1])
    with opened(tmp_path / "s") as store:
        told.append(store.run("EXPLAIN MATERIALIZED VIEW w")[-1])
    assert told[0] == told[1]
    assert told[0][0].startswith("estimates were off by: ")


@pytest.mark.parametrize(
    ("wall", "processor", "counts_waits", "taken"),
    [(9.0, 2.0, False, 2.0), (2.0, 9.0, False, 2.0), (9.0, 2.0, True, 9.0)],
)
def test_what_others_do_on_the_machine_is_no_cost_of_a_batch(
    monkeypatch: pytest.MonkeyPatch,
    wall: float,
    processor: float,
    counts_waits: bool,
    taken: float,
) -> None:
    class Clocks:
        now = 0.0
        perf_counter = staticmethod(lambda: 100 + wall * Clocks.now)
        process_time = staticmethod(lambda: 7 + processor * Clocks.now)

    monkeypatch.setattr(measured_costs, "time", Clocks)
    timer = start_timer(counts_waits)
    Clocks.now = 1.0
    assert timer() == taken
