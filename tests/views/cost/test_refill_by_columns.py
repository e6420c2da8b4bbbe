"""A refill writes what differs, by columns where it can, and gives the state that rows give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from belvedere.catalog.relation_codecs import compiled_view
from belvedere.txn.batch_atomic.commit import BatchCommit
from belvedere.views.maintain import maintainer
from tests.views.backfill.test_column_backfill import SHAPES, load_tables, read_state
from tests.views.sql import Store, opened

CHANGES = (
    "UPDATE t SET v = v + 1, g = 2 WHERE id % 5 = 0",
    "DELETE FROM t WHERE id < 20",
    "INSERT INTO t (id, g, v, s) VALUES (1000, 2, 6, 'new'), (1001, 77, 1, NULL)",
    "UPDATE d SET name = 'x' WHERE id = 2",
)


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        load_tables(made)
        yield made


def create_deferred(store: Store, name: str, shape: str, options: str = "") -> None:
    store.run(
        f"CREATE MATERIALIZED VIEW {name} WITH (maintenance = 'deferred',"
        f" refresh_every = '{3600 + ord(name)} s'{options}) AS {SHAPES[shape]}"
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_the_state_is_that_of_changes_by_rows(store: Store, shape: str) -> None:
    create_deferred(store, "a", shape)
    create_deferred(store, "b", shape)
    create_deferred(store, "c", shape, ", keep_changes = '100'")
    store.run(*CHANGES)
    store.run("SET maintenance_tier = python", "REFRESH MATERIALIZED VIEW a")
    store.run("SET maintenance_tier = refill", "REFRESH MATERIALIZED VIEW b")
    store.run("REFRESH MATERIALIZED VIEW c")
    assert read_state(store, "a") == read_state(store, "b") == read_state(store, "c")
    assert set(store.verified().values()) == {True}
    store.run("DELETE FROM t", "REFRESH MATERIALIZED VIEW b")
    assert set(store.verified().values()) == {True}


def test_a_refill_replaces_the_stored_state_unread(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not store.db.commits.clears_ranges:
        assert not store.db.views.registry.tiers.replaces_state  # the next test is of this
        return
    create_deferred(store, "b", "rows")
    store.run("SET maintenance_tier = refill")
    read = store.run("SELECT * FROM b")
    derived: list[tuple[int, list[Any]]] = []
    derive = BatchCommit.derive

    def watch(self: Any, make: Any, unread: Any = (), cleared: Any = ()) -> None:
        def make_and_note(reader: Any) -> Any:
            writes = make(reader)
            derived.append((len(writes), list(cleared)))
            return writes

        derive(self, make_and_note, unread, cleared)

    monkeypatch.setattr(BatchCommit, "derive", watch)
    monkeypatch.setattr(maintainer, "try_compute_replacing_writes", None)
    with store.db.begin() as before:
        stored = compiled_view(before.catalog, store.view("b").id)
        old = [pair for batch in before.scan(stored.start, stored.end) for pair in batch]
        store.run(*CHANGES, "REFRESH MATERIALIZED VIEW b")
        assert [pair for batch in before.scan(stored.start, stored.end) for pair in batch] == old
    (rows,) = store.run("SELECT count(*) FROM b")[0]
    assert derived == [(rows + 1, [(stored.start, stored.end)])]  # one is the watermark
    assert read != store.run("SELECT * FROM b")
    assert store.verified() == {"b": True}


def test_only_what_differs_is_written_where_no_range_is_cleared(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.db.views.registry.tiers.replaces_state = False
    written: list[Any] = []
    compute = maintainer.try_compute_replacing_writes

    def watch(*given: Any) -> Any:
        written.append(compute(*given))
        return written[-1]

    monkeypatch.setattr(maintainer, "try_compute_replacing_writes", watch)
    create_deferred(store, "b", "rows")
    store.run("SET maintenance_tier = refill")
    store.run("DELETE FROM t WHERE id IN (9, 10)", "UPDATE t SET v = 99 WHERE id = 11")
    store.run("INSERT INTO t (id, v) VALUES (5000, 3)", "REFRESH MATERIALIZED VIEW b")
    (writes,) = written
    assert sorted(value is None for _, value in writes) == [False, False, True, True, True]
    assert store.verified() == {"b": True}
