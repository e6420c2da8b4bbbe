"""Views and indexes over writes that are gathered: what a commit derives, it derives from rows that
the engine may not have yet."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from pathlib import Path
from unittest import mock

import pytest

from belvedere.config import Config
from belvedere.errors import InvalidInput
from belvedere.kv.rocksdb_gather import GatheringStore
from belvedere.txn.batch_atomic import recovery
from tests.views.deferred.test_concurrency import DEFINITIONS, TABLES, Crowd, change
from tests.views.sql import Store, rows_of

STATEMENTS = 300


def make_views(store: Store) -> None:
    store.run(*TABLES, "CREATE INDEX ON children (parent)", "CREATE UNIQUE INDEX ON parents (city)")
    for name, query in DEFINITIONS.items():
        store.run(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    store.run("INSERT INTO parents SELECT g, 'c' || g, g FROM generate_series(0, 3) g")


def require_right(store: Store) -> None:
    assert all(store.verified().values()), store.verified()
    for parent in range(4):
        by_index = store.run(f"SELECT count(*) FROM children WHERE parent = {parent}")
        by_scan = store.run(f"SELECT count(*) FROM children WHERE parent + 0 = {parent}")
        assert by_index == by_scan


@pytest.mark.parametrize("seed", range(3))
def test_what_is_derived_from_rows_on_their_way_is_right(tmp_path: Path, seed: int) -> None:
    """With nobody who syncs, rows stay gathered until a scan wants them."""
    rng = random.Random(seed)
    with mock.patch.object(recovery, "RocksStore", GatheringStore):
        store = Store(tmp_path / "store")
    engine = store.db.store
    assert isinstance(engine, GatheringStore)
    make_views(store)
    on_their_way = 0
    for _ in range(STATEMENTS):
        statement = change(rng)
        on_their_way += bool(engine._fresh)
        with suppress(InvalidInput):  # keys that are taken
            store.run(statement)
    assert on_their_way > STATEMENTS // 4
    require_right(store)
    store.db.close()


def test_every_snapshot_beside_durable_writers_obeys_the_law(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", Config())
    make_views(store)
    crowd, reader, compared = Crowd(store, 1, writers=6, transactions=40), store.session(), 0
    while crowd.busy:
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        for name, query in DEFINITIONS.items():
            stored = Counter(rows_of(reader, f"SELECT * FROM {name}"))
            assert stored == Counter(rows_of(reader, query)), name
            compared += 1
        reader.execute("ROLLBACK")
    crowd.join()
    assert compared > 20
    require_right(store)
    store.db.close()
    again = Store(tmp_path / "store")
    require_right(again)
    again.db.close()
