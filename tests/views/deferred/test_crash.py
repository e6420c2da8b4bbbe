"""Views after the process was killed: each change counts exactly once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from belvedere import failpoints
from belvedere.codec import keyspace
from belvedere.errors import Unavailable
from belvedere.views.changefeed import entries
from belvedere.views.state.watermarks import read_watermark
from tests.views.deferred.crash_child import OTHERS, TEXTS
from tests.views.sql import Store, opened

pytestmark = pytest.mark.slow

POINTS = (
    "maintain.after_write=kill@6",  # while views are made
    "maintain.before_write=kill@40",
    "commit.after_write=kill@40",
    "maintain.after_write=kill@15",
    "maintain.before_write=kill@9",
)


def test_views_are_exact_after_kills_at_every_boundary(tmp_path: Path) -> None:
    """One store through all the kills, so that each begins where the last one left it."""
    store, acknowledged = tmp_path / "shop.db", tmp_path / "acknowledged"
    for points in POINTS:
        environment = os.environ | {"BELVEDERE_FAILPOINTS": points}
        command = [
            sys.executable,
            "-m",
            "tests.views.deferred.crash_child",
            str(store),
            str(acknowledged),
        ]
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert done.returncode == -9, done.stderr.decode()[-2000:]
        check(store, acknowledged)


def check(path: Path, acknowledged: Path) -> None:
    written = set(map(int, acknowledged.read_text().split())) if acknowledged.exists() else set()
    with opened(path) as store:
        if store.db.catalog.find_relation("t") is None:
            return
        found = {id_ for (id_,) in store.run("SELECT id FROM t")}
        assert written <= found
        for view in store.db.catalog.views:
            text = TEXTS["totals" if view.name in OTHERS else view.name.removesuffix("_later")]
            expected = Counter(store.run(text))
            assert Counter(store.run(f"SELECT * FROM {view.name}")) == expected, view.name
        for view in store.db.views.list_deferred_views():
            store.db.views.catch_up_view(view)
        assert set(store.verified().values()) <= {True}
        for name in ("kept", "kept_now"):
            if store.db.catalog.find_relation(name) is not None:
                check_stream(store, name)


def check_stream(store: Store, name: str) -> None:
    """The view was made while its table was empty, so its changes add up to all of it."""
    view = store.view(name)
    with store.db.begin() as reader:
        noted = entries.read_stored_entries(reader, view.id, 0)
        assert set(entries.compute_states_before(reader, noted).values()) <= {None}
        start, end = keyspace.relation_range(view.id)
        stored = {key for batch in reader.scan(start, end) for key, _ in batch}
        assert stored <= {key for entry in noted for key, _, _ in entry.additions}


@pytest.mark.parametrize("point", ["maintain.before_write", "maintain.after_write"])
def test_a_create_that_fails_leaves_nothing(point: str, tmp_path: Path) -> None:
    with opened(tmp_path / "shop.db") as store:
        store.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
        store.run("INSERT INTO t VALUES (1, 1, 1), (2, 1, 2)")
        before = set(store.db.catalog.objects)
        failpoints.arm(point, "raise")
        try:
            with pytest.raises(Unavailable):
                store.run(f"CREATE MATERIALIZED VIEW v AS {TEXTS['pairs']}")
        finally:
            failpoints.disarm_all()
        assert_nothing_of(store, before)


def assert_nothing_of(store: Store, before: set[int]) -> None:
    """No live object beyond `before`; once the log forgets, no keys of dropped ones either."""
    db = store.db
    live = {i for i, item in db.catalog.objects.items() if getattr(item, "dropped_at", 0) == 0}
    assert live == before
    dropped = set(db.catalog.objects) - before
    for number in range(3):
        store.run(f"INSERT INTO t VALUES ({100 + number}, 0, 0)")
    db.trim(db.position - 1)
    for id_ in dropped:
        start, end = keyspace.relation_range(id_)
        assert not list(db.store.scan(start, end))
        with db.begin() as reader:
            assert read_watermark(reader, id_) is None
