"""Backfill of views: several in one scan, monitored, stopped, interrupted, resumed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import belvedere
from belvedere import failpoints
from belvedere.catalog.model import Index, Maintenance, ObjectState, View
from belvedere.codec import keyspace
from belvedere.config import Config, Durability
from belvedere.database import Database
from belvedere.errors import Unavailable
from belvedere.session.session import CANCELED
from belvedere.views.backfill import backfill_views, index_backfill
from belvedere.views.backfill.backfill_plan import ViewBackfill
from belvedere.views.backfill.backfill_views import BuildControl
from belvedere.views.backfill.batch_atomic_backfill import BatchAtomicBackfill
from belvedere.views.compile.defined_view import NewView
from belvedere.views.state.backfill_progress import (
    BackfillProgress,
    build_progress_write,
    key_list_range,
    read_backfill_progress,
)
from belvedere.views.state.watermarks import backfill_progress_key, read_watermark
from tests.views.sql import UNSYNCED, Store, opened

TOTALS = "SELECT g, count(*) AS c, sum(v) AS s FROM t GROUP BY g"
LARGE = "SELECT id, g FROM t WHERE v > 1"
NAMED = "SELECT d.name, count(*) AS c, sum(t.v) AS s FROM t JOIN d ON d.id = t.g GROUP BY d.name"
PAIRS = "SELECT a.g, b.v FROM t a JOIN t b ON a.id = b.id"


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is added up is written after every batch of a scan."""
    monkeypatch.setattr(backfill_views, "ROWS_MAX", 1)


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        loaded(made, 10_000)
        yield made


def loaded(store: Store, rows: int) -> None:
    store.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
    store.run(f"INSERT INTO t SELECT i, i % 50, i % 7 FROM generate_series(1, {rows}) AS s(i)")


def with_names(store: Store) -> None:
    """A table that rows of `t` are joined with by its key, and the index which that asks for."""
    store.run(
        "CREATE TABLE d (id int PRIMARY KEY, name text)",
        "INSERT INTO d SELECT i, 'n' || i % 9 FROM generate_series(0, 40) AS s(i)",
        "CREATE INDEX ON t (g)",
    )


def nothing_is_left(store: Store, before: set[int]) -> None:
    live = {i for i, o in store.db.catalog.objects.items() if not getattr(o, "dropped_at", 0)}
    assert live == before
    with store.db.begin() as reader:
        for id_ in set(store.db.catalog.objects) - before:
            assert read_watermark(reader, id_) is None
            assert reader.get(backfill_progress_key(id_)) is None
            assert not list(reader.scan(*key_list_range(id_)))


def nothing_of_fills_is_left(store: Store) -> None:
    """Neither places nor lists of keys."""
    start, end = keyspace.meta_range()
    with store.db.begin() as reader:
        keys = [key for batch in reader.scan(start, end) for key, _ in batch]
    assert not [key for key in keys if b"backfill" in key]


def test_views_of_one_table_are_filled_by_one_scan(
    store: Store, monkeypatch: pytest.MonkeyPatch, small_steps: None
) -> None:
    wanted = [
        NewView("totals", TOTALS),
        NewView("later", TOTALS, Maintenance.DEFERRED),
        NewView("large", LARGE),
        NewView("named", NAMED),
        NewView("pairs", "SELECT count(*) AS c FROM t a JOIN t b ON a.id = b.id"),
    ]
    with_names(store)
    build, filled = BuildControl(), []
    filling = store.db.views.backfills.store
    assert isinstance(filling, BatchAtomicBackfill)
    backfilled = filling.backfill_views

    def noted(planned: Any, *rest: Any) -> None:
        filled.append({one.view.name for one in planned})
        backfilled(planned, *rest)

    monkeypatch.setattr(filling, "backfill_views", noted)
    with store.db.views.backfills.use_build_control(build):
        store.db.create_views(wanted)
    assert {"totals", "later", "large", "named", "pairs"} in filled
    assert set(store.verified().values()) == {True}
    store.run("INSERT INTO t VALUES (0, 1, 1)")
    assert set(store.verified().values()) == {True}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM t UNION ALL SELECT 5",
        "SELECT count(*) AS n, sum(id) AS s FROM (SELECT id FROM t UNION ALL VALUES (5)) AS x",
        "SELECT id, g FROM t UNION ALL SELECT t.id, length(d.name) FROM t JOIN d ON d.id = t.g",
        "SELECT id FROM t UNION ALL SELECT id FROM d",
        NAMED,
    ],
)
def test_every_branch_is_filled(store: Store, query: str) -> None:
    with_names(store)
    store.run(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert store.verified() == {"v": True}


@pytest.mark.parametrize("query", [TOTALS, PAIRS, LARGE])
def test_a_fill_tells_how_far_it_is(store: Store, query: str) -> None:
    told: list[tuple[str, int, float]] = []
    session = store.session()
    session.on_progress = lambda what, rows, expected: told.append((what, rows, expected))
    session.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert told[0][0] == "filling v"
    assert [rows for _, rows, _ in told] == sorted(rows for _, rows, _ in told)
    assert told[-1][1] >= 10_000
    assert all(rows <= expected for _, rows, expected in told)


@pytest.mark.parametrize("query", [TOTALS, PAIRS, LARGE])
@pytest.mark.parametrize("replace", [False, True])
def test_a_canceled_fill_leaves_nothing(
    store: Store, query: str, replace: bool, small_steps: None
) -> None:
    if replace:
        store.run("CREATE MATERIALIZED VIEW v AS SELECT max(id) AS m FROM t")
    before = set(store.db.catalog.objects)
    session = store.session()
    session.on_progress = lambda *_: session.interrupt.stop(CANCELED)
    verb = "CREATE OR REPLACE" if replace else "CREATE"
    with pytest.raises(Unavailable) as found:
        session.execute(f"{verb} MATERIALIZED VIEW v AS {query}")
    assert found.value.sqlstate == "57014"
    nothing_is_left(store, before)
    if replace:
        assert store.run("SELECT * FROM v") == [(10_000,)]
    session.on_progress = None
    session.execute(f"{verb} MATERIALIZED VIEW v AS {query}")
    assert store.verified() == {"v": True}


def test_a_build_that_is_dropped_leaves_none_of_the_keys_it_listed(store: Store) -> None:
    before = set(store.db.catalog.objects)
    store.run(f"CREATE MATERIALIZED VIEW v WITH (backfill = 'later') AS {PAIRS}")
    id_ = store.view("v").id
    start, _ = key_list_range(id_)
    store.db.commits.derive(lambda newest: [(start + b"key", b"value")])
    store.db.views.backfills._drop_unfinished_builds([id_])
    with store.db.begin() as reader:
        assert not list(reader.scan(*key_list_range(id_)))
    live = {i for i, o in store.db.catalog.objects.items() if not getattr(o, "dropped_at", 0)}
    assert id_ not in live
    assert before <= live


def test_a_fill_takes_its_share_of_the_time(store: Store) -> None:
    store.run("SET maintenance_share = 0.25")
    slept: list[float] = []
    with store.db.views.backfills.use_build_control(BuildControl(sleep=slept.append)):
        store.db.views.create_view("v", TOTALS)
    assert slept
    assert all(seconds >= 0 for seconds in slept)


def test_writers_go_on_while_a_view_is_filled_in_steps(store: Store, small_steps: None) -> None:
    other, numbers = store.session(), iter(range(20_000, 30_000))

    def write(_: object, rows: int, __: float) -> None:
        id_ = next(numbers)
        other.execute(f"INSERT INTO t VALUES ({id_}, 1, 5)")
        other.execute(f"DELETE FROM t WHERE id = {rows}")
        other.execute(f"UPDATE t SET g = 99 WHERE id = {10_001 - rows}")

    session = store.session()
    session.on_progress = write
    session.execute(f"CREATE MATERIALIZED VIEW totals AS {TOTALS}")
    session.execute(f"CREATE MATERIALIZED VIEW large WITH (maintenance = 'deferred') AS {LARGE}")
    assert set(store.verified().values()) == {True}


def test_if_not_exists_waits_for_whoever_is_filling_it(store: Store) -> None:
    first, second, begun = store.session(), store.session(), threading.Event()
    states: list[ObjectState] = []

    def wait(*_: object) -> None:
        begun.set()
        waiter_started.wait(60)

    waiter_started = threading.Event()

    def ask() -> None:
        begun.wait(60)
        waiter_started.set()
        second.execute(f"CREATE MATERIALIZED VIEW IF NOT EXISTS v AS {TOTALS}")
        states.append(store.view("v").state)

    first.on_progress = wait
    thread = threading.Thread(target=ask)
    thread.start()
    first.execute(f"CREATE MATERIALIZED VIEW v AS {TOTALS}")
    thread.join(60)
    assert states == [ObjectState.READY]


# -- killed ----------------------------------------------------------------------------------------


CHILD = """
import sys
from belvedere.views.backfill import backfill_views, index_backfill
from tests.views.sql import Store

backfill_views.ROWS_MAX = 1
index_backfill.CHUNK_ROWS_MAX = index_backfill.CHUNK_ROWS
store = Store(sys.argv[1])
session, other = store.session(), store.session()

def write(_, rows, expected):
    other.execute(f"DELETE FROM t WHERE id = {rows + 1}")
    other.execute(f"UPDATE t SET g = 99, v = 6 WHERE id IN ({rows - 1}, {rows + 2})")
    other.execute(f"INSERT INTO t VALUES ({-rows}, 1, 5)")
    other.execute("UPDATE d SET name = name || 'x' WHERE id % 3 = 0")
    other.execute("DELETE FROM d WHERE id % 5 = 0")

session.on_progress = write
session.execute(sys.argv[2])
"""


def killed(path: Path, statement: str, point: str) -> None:
    """Run a statement, beside a writer, in another process that dies at a point."""
    environment = os.environ | {"BELVEDERE_FAILPOINTS": point}
    command = [sys.executable, "-c", CHILD, str(path), statement]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == -9, done.stderr.decode()[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("point", ["backfill.chunk=kill@2", "maintain.after_write=kill@1"])
def test_a_killed_create_leaves_nothing(tmp_path: Path, point: str) -> None:
    path = tmp_path / "shop.db"
    with opened(path) as store:
        loaded(store, 10_000)
        with_names(store)
        before = set(store.db.catalog.objects)
    killed(path, f"CREATE MATERIALIZED VIEW v AS {TOTALS}", point)
    with opened(path) as store:
        nothing_is_left(store, before)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["backfill.chunk=kill@2", "catalog.after=kill@2"])
def test_a_view_serves_until_what_replaces_it_is_ready(tmp_path: Path, point: str) -> None:
    """Killed in the fill, and when the new view is ready and has not taken its place."""
    path = tmp_path / "shop.db"
    with opened(path) as store:
        loaded(store, 10_000)
        with_names(store)
        store.run("CREATE MATERIALIZED VIEW v AS SELECT max(id) AS m FROM t")
        before = set(store.db.catalog.objects)
    killed(path, f"CREATE OR REPLACE MATERIALIZED VIEW v AS {TOTALS}", point)
    with opened(path) as store:
        nothing_is_left(store, before)
        assert store.run("SELECT * FROM v") == [(10_000,)]
        assert store.verified() == {"v": True}


SHAPES = {
    "groups": TOTALS,
    "rows": LARGE,
    "partners by key": NAMED,
    "partners by index": "SELECT t.id, e.w FROM t JOIN e ON e.g = t.g",
    "a table with itself": PAIRS,
    "no equality": "SELECT d.id, count(*) AS c FROM t JOIN d ON t.g < d.id GROUP BY d.id",
    "branches": "SELECT g, v FROM t UNION ALL SELECT id, length(name) FROM d UNION ALL SELECT 1, 2",
    "outer join": "SELECT t.id, d.name FROM t LEFT JOIN d ON d.id = t.g AND d.name <> 'n1'",
    "anti join": "SELECT id FROM t WHERE g NOT IN (SELECT id FROM d)",
    "sub-query": "SELECT id, (SELECT max(w) FROM e WHERE e.g = t.g) AS m FROM t",
    "extremes": "SELECT g, min(v) AS a, max(id) AS b FROM t GROUP BY g",
    "distinct values": "SELECT g, count(DISTINCT v) AS c FROM t GROUP BY g",
    "windows": "SELECT id, row_number() OVER (PARTITION BY g ORDER BY v, id) AS r FROM t",
    "groups of groups": "SELECT c, count(*) AS n FROM"
    " (SELECT g, v, count(*) AS c FROM t GROUP BY g, v) q GROUP BY c",
    "set operation": "SELECT g FROM t EXCEPT SELECT id FROM d",
    "first rows": "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 5",
    "above groups": "SELECT q.g, q.m, d.name FROM"
    " (SELECT g, max(v) AS m FROM t GROUP BY g) q LEFT JOIN d ON d.id = q.g",
}


CREATE = "CREATE MATERIALIZED VIEW v WITH (backfill = 'resumable') AS"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with tables, to be copied."""
    return with_tables(tmp_path_factory.mktemp("fills") / "shop.db", 10_000)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_tables(tmp_path_factory.mktemp("fills") / "shop.db", 600)


def with_tables(path: Path, rows: int) -> Path:
    with opened(path) as store:
        loaded(store, rows)
        with_names(store)
        store.run("CREATE TABLE e (id int PRIMARY KEY, g int, w int)")
        store.run("INSERT INTO e SELECT i, i % 60, i % 11 FROM generate_series(1, 60) AS s(i)")
    return path


class Walked:
    """Counts the rows of tables and keys of partitions that fills add up. At every step that is
    written, the store is copied as it is then: what a kill there would leave."""

    def __init__(self, path: Path, patch: pytest.MonkeyPatch) -> None:
        self.rows = 0
        self.images: list[tuple[Path, int]] = []
        self._path = path
        add = ViewBackfill.sum_walked_rows

        def counted(fill: ViewBackfill, number: int, walked: Any) -> None:
            self.rows += len(walked)
            add(fill, number, walked)

        patch.setattr(ViewBackfill, "sum_walked_rows", counted)

    def copy(self) -> None:
        if self.rows == (self.images[-1][1] if self.images else 0):
            return  # a step of an index
        image = self._path.parent / f"image {len(self.images)}"
        shutil.copytree(self._path, image)
        (image / "LOCK").unlink(missing_ok=True)
        self.images.append((image, self.rows))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_fill_goes_on_from_every_step(
    tmp_path: Path, small: Path, shape: str, small_steps: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was walked before is not walked again."""
    monkeypatch.setattr(backfill_views, "BATCH_ROWS", 24)
    path = tmp_path / "shop.db"
    shutil.copytree(small, path)
    walked = Walked(path, monkeypatch)
    with opened(path) as store:
        failpoints.arm("backfill.chunk", "call", call=walked.copy)
        try:
            store.run(f"{CREATE} {SHAPES[shape]}")
        finally:
            failpoints.disarm_all()
        total, expected = walked.rows, sorted(store.run("SELECT * FROM v"), key=repr)
        assert set(store.verified().values()) == {True}
    assert total >= 600
    assert len(walked.images) >= 600 // 24
    step = len(walked.images) // 3
    for image, before in walked.images[step - 1 :: step]:
        walked.rows = 0
        with opened(image) as store:
            assert store.view("v").state is ObjectState.READY
            assert (walked.rows, before > 0) == (total - before, True)
            assert sorted(store.run("SELECT * FROM v"), key=repr) == expected
            nothing_of_fills_is_left(store)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["backfill.chunk=kill@2", "catalog.after=kill@2"])
def test_what_was_to_replace_a_view_does_so_after_a_kill(
    tmp_path: Path, filled: Path, point: str
) -> None:
    path = tmp_path / "shop.db"
    shutil.copytree(filled, path)
    with opened(path) as store:
        store.run("CREATE MATERIALIZED VIEW v AS SELECT g, max(id) AS c FROM t GROUP BY g")
        store.run("CREATE INDEX of_v ON v (c)")
    create = CREATE.replace("CREATE", "CREATE OR REPLACE")
    killed(path, f"{create} {TOTALS}", point)
    with opened(path) as store:
        assert sorted(store.run("SELECT * FROM v")) == sorted(store.run(TOTALS))
        assert {view.name for view in store.db.catalog.views if not view.part} == {"v", "of_v"}
        assert set(store.verified().values()) == {True}
        nothing_of_fills_is_left(store)


KILLS = {
    "groups": "backfill.chunk=kill@1",
    "partners by key": "maintain.before_write=kill@4",
    "outer join": "maintain.after_write=kill@4",
    "windows": "backfill.chunk=kill@5",
    "extremes": "backfill.chunk=kill@20",  # in the middle of an index
    "distinct values": "backfill.chunk=kill@14",
    "rows": "maintain.after_write=kill@1",  # begun, and nothing walked
    "a table with itself": "catalog.before=kill@2",  # filled, and not ready yet
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", KILLS)
def test_a_fill_that_was_killed_goes_on(tmp_path: Path, filled: Path, shape: str) -> None:
    """At the position it began at, though rows changed since."""
    path = tmp_path / "shop.db"
    shutil.copytree(filled, path)
    killed(path, f"{CREATE} {SHAPES[shape]}", KILLS[shape])
    with opened(path) as store:
        assert store.view("v").state is ObjectState.READY
        assert set(store.verified().values()) == {True}
        store.run("DELETE FROM t WHERE id < 100", "INSERT INTO t VALUES (0, 1, 3)")
        assert set(store.verified().values()) == {True}
        nothing_of_fills_is_left(store)


@pytest.mark.slow
def test_a_fill_that_was_to_go_on_in_another_way_begins_again(tmp_path: Path, filled: Path) -> None:
    """As when a release fills such views by another table. Who cannot read definitions leaves it
    as it is."""
    path = tmp_path / "shop.db"
    shutil.copytree(filled, path)
    killed(path, f"{CREATE} {TOTALS}", "backfill.chunk=kill@2")
    with Database.open(path, UNSYNCED) as db:
        view = db.catalog.require_relation(View, "v")
        assert view.state is ObjectState.BUILDING
        with db.begin() as reader:
            place = read_backfill_progress(reader, view.id)
        assert place is not None
        assert place.after
        other = build_progress_write(
            view.id, BackfillProgress("another way", place.phase, place.after)
        )
        db.commits.derive(lambda newest: [other])
    with opened(path) as store:
        assert store.verified() == {"v": True}
        nothing_of_fills_is_left(store)


@pytest.mark.slow
def test_every_build_goes_on_where_the_owner_of_the_store_says_so(
    tmp_path: Path, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_backfill, "CHUNK_ROWS_MAX", index_backfill.CHUNK_ROWS)
    path = tmp_path / "shop.db"
    shutil.copytree(filled, path)
    config = Config(durability=Durability.OFF, resume_builds=True)
    killed(path, "CREATE INDEX by_v ON t (v)", "backfill.chunk=kill@20")
    chunks: list[int] = []
    failpoints.arm("backfill.chunk", "call", call=lambda: chunks.append(1))
    try:
        with opened(path, config) as store:
            assert len(chunks) == 10_000 // 256 + 1 - 20
            assert store.db.catalog.require_relation(Index, "by_v").state is ObjectState.READY
            assert store.run("SELECT count(*) FROM t WHERE v = 3") == [(1429,)]
            nothing_of_fills_is_left(store)
    finally:
        failpoints.disarm_all()
    killed(path, f"CREATE MATERIALIZED VIEW v AS {TOTALS}", "backfill.chunk=kill@2")
    with opened(path, config) as store:
        assert store.verified() == {"v": True}


def test_parts_of_views_with_long_names_have_names_of_their_own() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, a int, b int)")
        con.execute("INSERT INTO t SELECT x, x % 3, x % 7 FROM generate_series(1, 50) g(x)")
        for end, column in (("1", "a"), ("2", "b")):
            name = "n" * 62 + end
            con.execute(
                f"CREATE MATERIALIZED VIEW {name} AS"
                f" SELECT {column}, count(DISTINCT id % 5) FROM t GROUP BY {column}"
            )
            verified = con.execute(f"VERIFY MATERIALIZED VIEW {name}").fetchall()
            assert verified[0][-1] is True
