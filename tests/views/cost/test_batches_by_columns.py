"""Batches added up by columns, from log to written entries, give the state that rows give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from belvedere.execution import split_tiers
from belvedere.execution.duckdb.engine import DuckEngine
from belvedere.execution.duckdb.types import NotExact
from belvedere.views.cost import tier_selector
from belvedere.views.maintain import (
    column_additions,
    log_window,
    logged_columns,
    recent_log_columns,
)
from tests.views.backfill.test_column_backfill import SHAPES, load_tables, read_state
from tests.views.cost.test_refill_by_columns import CHANGES, create_deferred
from tests.views.cost.test_tier_selector import last_batch
from tests.views.sql import Store, opened

BY_COLUMNS = {
    "groups",
    "groups by text",
    "rows",
    "equal rows",
    "join",
    "in order",
    "dates",
    "nothing",
}
"""The shapes that are linear, and whose stored columns have a form by columns."""

LINEAR = {
    "joined rows": "SELECT t.id, t.s, d.name FROM t JOIN d ON d.id = t.g",
    "twice": "SELECT g AS x FROM t UNION ALL SELECT v FROM t WHERE v > 2",
    "constant": "SELECT t.g, k.x FROM t CROSS JOIN (VALUES (1), (2)) AS k (x)",
    "scaled": "SELECT g, sum(n) AS s, avg(n * 2) AS a FROM t GROUP BY g",
    "some": "SELECT s, count(*) FILTER (WHERE ok) AS c FROM t WHERE v IS NOT NULL GROUP BY s",
    "parents first": "SELECT d.name, t.id FROM d JOIN t ON t.g = d.id AND t.v > d.id",
}


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        load_tables(made)
        yield made


def create_two(store: Store, query: str) -> None:
    """The same view as `a`, which rows maintain, and as `b`, which columns do."""
    for name in "ab":
        store.run(
            f"CREATE MATERIALIZED VIEW {name} WITH (maintenance = 'deferred',"
            f" refresh_every = '{3600 + ord(name)} s') AS {query}"
        )


def refresh_both(store: Store) -> None:
    store.run("SET maintenance_tier = python", "REFRESH MATERIALIZED VIEW a")
    store.run("SET maintenance_tier = duckdb", "REFRESH MATERIALIZED VIEW b")
    assert read_state(store, "a") == read_state(store, "b")


@pytest.mark.parametrize("shape", SHAPES | LINEAR)
def test_the_state_is_that_of_changes_by_rows(store: Store, shape: str) -> None:
    create_two(store, (SHAPES | LINEAR)[shape])
    for change in (*CHANGES, "UPDATE t SET s = s || 'x' WHERE g = 2", "DELETE FROM t"):
        store.run(change)
        refresh_both(store)
        columns = last_batch(store, "b").endswith("by columns")
        assert columns or shape not in BY_COLUMNS | LINEAR.keys(), last_batch(store, "b")
    assert set(store.verified().values()) == {True}


@pytest.mark.parametrize("shape", ["groups", "equal rows", "joined rows"])
def test_rows_that_change_several_times_count_once(store: Store, shape: str) -> None:
    create_two(store, (SHAPES | LINEAR)[shape])
    store.run(
        "UPDATE t SET v = v + 1 WHERE id < 50",
        "UPDATE t SET g = 1, v = v - 1 WHERE id < 60",
        "DELETE FROM t WHERE id < 9",
        "INSERT INTO t (id, g, v) VALUES (3, 1, 4), (2000, 1, 1)",
        "DELETE FROM t WHERE id = 2000",
    )
    refresh_both(store)
    assert last_batch(store, "b").endswith("by columns")
    assert set(store.verified().values()) == {True}


def test_rows_from_before_a_column_was_added(store: Store) -> None:
    store.run("ALTER TABLE t ADD COLUMN more int DEFAULT 7")
    create_two(store, "SELECT more, count(*) AS c, sum(v) AS s FROM t GROUP BY more")
    store.run("UPDATE t SET v = 1 WHERE id < 10", "UPDATE t SET more = 8 WHERE id < 5")
    refresh_both(store)
    assert last_batch(store, "b").endswith("by columns")
    assert set(store.verified().values()) == {True}


@pytest.mark.parametrize(
    "query",
    [
        LINEAR["joined rows"],
        "SELECT a.id, b.id AS other FROM t a JOIN t b ON a.g = b.id",
    ],
    ids=["two tables", "one table twice"],
)
def test_changes_that_are_joined_with_each_other_go_by_rows(store: Store, query: str) -> None:
    create_two(store, query)
    store.run("UPDATE t SET g = 3 WHERE id < 9", "UPDATE d SET name = 'z' WHERE id = 3")
    refresh_both(store)
    assert not last_batch(store, "b").endswith("by columns")
    assert set(store.verified().values()) == {True}


def test_totals_beyond_eight_bytes_go_by_rows(store: Store) -> None:
    create_two(store, SHAPES["large sums"])
    store.run("UPDATE t SET b = b - 1 WHERE id < 100")
    refresh_both(store)
    assert not last_batch(store, "b").endswith("by columns")
    assert set(store.verified().values()) == {True}


def test_a_text_with_a_byte_that_ends_keys_is_told_apart(store: Store) -> None:
    create_two(store, "SELECT s, g FROM t")
    store.run("UPDATE t SET s = 'long ' || repeat('ä', 40) WHERE id < 30", "UPDATE t SET s = ''")
    refresh_both(store)
    assert last_batch(store, "b").endswith("by columns")


def test_long_texts_which_keys_have_by_a_digest_go_by_rows(store: Store) -> None:
    create_two(store, "SELECT s, count(*) AS c FROM t GROUP BY s")
    store.run("UPDATE t SET s = repeat('long', 20000) || id % 2 WHERE id < 30")
    refresh_both(store)
    assert not last_batch(store, "b").endswith("by columns")
    store.run("UPDATE t SET s = 'short' WHERE id < 10")
    refresh_both(store)
    assert set(store.verified().values()) == {True}


def test_a_view_that_keeps_its_changes_is_told_what_was_added(store: Store) -> None:
    create_deferred(store, "c", "rows", ", keep_changes = '100'")
    store.run("SET maintenance_tier = duckdb", "UPDATE t SET v = 9 WHERE id = 4")
    store.run("REFRESH MATERIALIZED VIEW c")
    assert not last_batch(store, "c").endswith("by columns")
    assert store.verified() == {"c": True}


def test_views_of_one_group_are_all_added_up_by_columns(store: Store) -> None:
    for name, shape in (("a", "groups"), ("b", "rows"), ("c", "join")):
        store.run(
            f"CREATE MATERIALIZED VIEW {name} WITH (maintenance = 'deferred',"
            f" refresh_every = '1 d') AS {SHAPES[shape]}"
        )
    store.run("SET maintenance_tier = duckdb", CHANGES[0], CHANGES[1])
    store.run(*[f"REFRESH MATERIALIZED VIEW {name}" for name in "abc"])
    assert all(last_batch(store, name).endswith("by columns") for name in "abc")
    assert set(store.verified().values()) == {True}


@pytest.mark.parametrize("share", [0, 10**6], ids=["looked up", "scanned"])
def test_stored_entries_are_found_by_either_way(
    store: Store, monkeypatch: pytest.MonkeyPatch, share: int
) -> None:
    monkeypatch.setattr(column_additions, "SCANNED_SHARE", share)
    monkeypatch.setattr(column_additions, "SCAN_ROWS", 3)
    create_two(store, "SELECT v, g, count(*) AS c FROM t GROUP BY v, g")
    store.run("UPDATE t SET v = 100 WHERE id % 40 = 0", "DELETE FROM t WHERE g = 1")
    refresh_both(store)
    assert last_batch(store, "b").endswith("by columns")


def test_a_log_range_beyond_the_memory_for_it_goes_by_rows(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_two(store, SHAPES["groups"])
    store.run(*["UPDATE t SET v = v + 1 WHERE id < 5"] * 3)
    monkeypatch.setattr(log_window, "PEEKED_BYTES_MAX", 1)
    monkeypatch.setattr(tier_selector, "COLUMN_CHANGES_MIN", 1)
    refresh_both(store)
    assert set(store.verified().values()) == {True}


def test_a_statement_is_lowered_once_for_all_batches(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered: list[object] = []

    class Counting(split_tiers.DuckLowering):
        def __init__(self, *given: Any) -> None:
            lowered.append(self)
            super().__init__(*given)

    monkeypatch.setattr(split_tiers, "DuckLowering", Counting)
    create_two(store, "SELECT g, count(*) AS c, sum(v) AS s FROM t GROUP BY g")
    counts = []
    for turn in range(3):
        store.run(f"UPDATE t SET v = v + {turn} + 1, g = {turn} WHERE id % 3 = {turn}")
        refresh_both(store)
        assert last_batch(store, "b").endswith("by columns")
        counts.append(len(lowered))
    assert counts[0] > 0
    assert set(counts) == {counts[0]}


def test_a_batch_that_duckdb_fails_on_leaves_the_next_to_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_two(store, "SELECT g, count(*) AS c, sum(v) AS s FROM t GROUP BY g")
    fetch = DuckEngine.fetch

    def fail_to_fetch(*given: Any, **named: Any) -> NoReturn:
        raise NotExact("DuckDB failed")

    for turn, failing in enumerate((False, True, False)):
        monkeypatch.setattr(DuckEngine, "fetch", fail_to_fetch if failing else fetch)
        store.run(f"UPDATE t SET v = v + 1 WHERE id % 3 = {turn}")
        refresh_both(store)
        assert last_batch(store, "b").endswith("by columns") is not failing


def test_views_refreshed_one_after_the_other_decode_the_log_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []
    build = logged_columns.LoggedColumns.__init__

    def count(logged: Any, batches: Any, start: int, through: int) -> None:
        decoded.append(start)
        build(logged, batches, start, through)

    monkeypatch.setattr(logged_columns.LoggedColumns, "__init__", count)
    for name, shape in (("a", "groups"), ("b", "rows"), ("c", "groups by text")):
        create_deferred(store, name, shape)
    names = [f"REFRESH MATERIALIZED VIEW {name}" for name in "abc"]
    store.run("SET maintenance_tier = duckdb", *names)
    for ranges in (1, 2, 2):
        store.run("UPDATE t SET v = v + 1, s = s || 'x' WHERE id % 3 = 1")
        decoded.clear()
        store.run(*names)
        assert len(decoded) == ranges
        assert all(last_batch(store, name).endswith("by columns") for name in "abc")
        store.run(CHANGES[0], names[0])  # which begins elsewhere from here on
    store.run(*names)
    assert set(store.verified().values()) == {True}


def test_a_log_range_that_is_too_large_is_not_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_log_columns, "KEPT_BYTES_MAX", 0)
    create_deferred(store, "a", "groups")
    store.run("SET maintenance_tier = duckdb", CHANGES[0], "REFRESH MATERIALIZED VIEW a")
    kept = store.db.views.deferred._recent
    assert kept.count_changes_if_kept(0, store.db.position) is None
    assert kept._kept is None
    assert last_batch(store, "a").endswith("by columns")
