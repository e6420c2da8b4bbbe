"""The cost of a change of a window is the size of its partition."""

from __future__ import annotations

import math

import pytest

from belvedere.views.cost.batch_estimates import DIFFERENCE_CHANGES
from belvedere.views.cost.cost_model import PARTITION_ROWS
from belvedere.views.cost.maintenance_tier import MaintenanceTier
from belvedere.views.cost.partition_sizes import estimate_partition_rows, recomputes_partitions
from belvedere.views.cost.row_counts import PositionSpan, RowCounts
from belvedere.views.delta.delta_tree import DeltaTree
from tests.views.sql import Store, opened

RANKED = "SELECT id, rank() OVER (PARTITION BY {} ORDER BY v) AS r FROM {}"


def tree_of(store: Store, query: str) -> DeltaTree:
    store.run(f"CREATE MATERIALIZED VIEW w WITH (maintenance = 'deferred') AS {query}")
    found = store.db.views.registry.get_view_maintainer(store.db.catalog, store.view("w"))
    return found.tree


def make_counts(rows: float, distinct: dict[int, float]) -> RowCounts:
    counts = RowCounts()
    counts.count_rows = lambda relation: rows
    counts.count_distinct = lambda relation, slot: distinct.get(slot)
    return counts


@pytest.mark.parametrize(
    ("keys", "distinct", "each"),
    [
        ("g", {1: 1000.0}, 10.0),
        ("g", {1: 10.0}, 1000.0),
        ("g, h", {1: 10.0, 2: 50.0}, 20.0),
        ("g, h", {1: 1000.0, 2: 5000.0}, 1.0),
        ("g, h", {1: 10.0}, PARTITION_ROWS),
        ("g + h", {1: 10.0, 2: 10.0}, PARTITION_ROWS),
    ],
)
def test_a_partition_has_its_share_of_the_rows(
    keys: str, distinct: dict[int, float], each: float
) -> None:
    with opened() as store:
        store.run("CREATE TABLE t (id int PRIMARY KEY, g int, h int, v int)")
        tree = tree_of(store, RANKED.format(keys, "t"))
        assert recomputes_partitions(tree)
        assert estimate_partition_rows(tree, 10_000.0, make_counts(10_000.0, distinct)) == each


@pytest.mark.parametrize(
    ("query", "recomputed"),
    [
        ("SELECT g, max(v) AS m FROM t GROUP BY g", False),
        ("SELECT g, sum(v) AS s FROM t GROUP BY g", False),
        (f"SELECT id FROM ({RANKED.format('g', 't')}) x WHERE r <= 3", False),
        (f"SELECT id FROM ({RANKED.format('g', 't')}) x WHERE r > 3", True),
    ],
)
def test_only_windows_without_a_bound_compute_whole_partitions(
    query: str, recomputed: bool
) -> None:
    with opened() as store:
        store.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
        assert recomputes_partitions(tree_of(store, query)) is recomputed


def test_few_changes_of_large_partitions_are_computed_anew() -> None:
    with opened() as store:
        store.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
        store.run("INSERT INTO t SELECT i, i % 10, i FROM generate_series(1, 6000) AS s (i)")
        query = RANKED.format("g", "t")
        store.run(
            "CREATE MATERIALIZED VIEW w WITH (maintenance = 'deferred', refresh_every = '1 d')"
            f" AS {query}",
            "DELETE FROM t WHERE id <= 60",
            "REFRESH MATERIALIZED VIEW w",
        )
        ((batch,),) = store.run("SELECT last_batch FROM belvedere.views WHERE name = 'w'")
        replaced = store.db.views.registry.tiers.replaces_state
        assert batch.startswith("refill: " if replaced else "duckdb: 60 changes, by columns")
        assert store.run("SELECT * FROM w ORDER BY id") == store.run(f"{query} ORDER BY id")


def test_a_difference_is_not_judged_by_batches_of_other_views() -> None:
    with opened() as store:
        store.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
        tree_of(store, RANKED.format("g", "t"))
        tiers, view = store.db.views.registry.tiers, store.view("w")
        counts = make_counts(1_000_000.0, {1: 1_000.0})
        tiers.row_counts.count_rows = counts.count_rows
        tiers.row_counts.count_distinct = counts.count_distinct
        maintainer = store.db.views.registry.get_view_maintainer(store.db.catalog, view)
        span = PositionSpan(store.db.position, store.db.position)
        before = tiers.find_refill_break_even(view, maintainer, span)
        other, many = view.id + 1, 10**6
        for way in (MaintenanceTier.REFILL, MaintenanceTier.PYTHON):
            tiers.costs.record_batch_cost(view.id, way, 1.0, 1.0, many)
        for _ in range(20):
            tiers.costs.record_batch_cost(other, MaintenanceTier.DUCKDB, 1.0, 0.1, many)
        assert tiers.find_refill_break_even(view, maintainer, span) == before
        tiers.costs.record_batch_cost(view.id, MaintenanceTier.DUCKDB, 1.0, 0.1, many)
        if tiers.replaces_state:  # its own measurement counts
            assert tiers.find_refill_break_even(view, maintainer, span) > before


@pytest.mark.parametrize("partitions", [10.0, 1000.0, 90_000.0])
def test_a_window_is_made_anew_where_a_batch_touches_most_of_its_rows(partitions: float) -> None:
    with opened() as store:
        store.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
        tree_of(store, RANKED.format("g", "t"))
        tiers = store.db.views.registry.tiers
        counts = make_counts(100_000.0, {1: partitions})
        tiers.row_counts.count_rows = counts.count_rows
        tiers.row_counts.count_distinct = counts.count_distinct
        view = store.view("w")
        maintainer = store.db.views.registry.get_view_maintainer(store.db.catalog, view)
        span = PositionSpan(store.db.position, store.db.position)
        from_on = tiers.find_refill_break_even(view, maintainer, span)
        if not tiers.replaces_state:  # what is stored is not read by a difference
            assert from_on == math.inf
            return
        assert from_on >= tiers.refill_changes_lower_bound(view, maintainer, span)
        touched = from_on * 100_000.0 / partitions
        assert 20_000 < touched < 200_000 or from_on == DIFFERENCE_CHANGES[0]
