"""Backfill by columns: the state that rows give, in steps, stopped, resumed, refused."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from belvedere import failpoints
from belvedere.catalog.model import Index, ObjectState, View
from belvedere.catalog.relation_codecs import compiled_index, compiled_view
from belvedere.errors import Unavailable
from belvedere.kv.batch import Pair
from belvedere.txn.batch_atomic.engine import BatchAtomicEngine
from belvedere.views.backfill import column_backfill, index_backfill, index_files
from belvedere.views.cost import tier_selector
from belvedere.views.cost.tier_selector import TierSelector
from belvedere.views.indexes import entries
from belvedere.views.maintain import state_entries
from belvedere.views.state.backfill_progress import read_backfill_state
from tests.views.sql import Store, opened

SHAPES = {
    "groups": "SELECT g, count(*) AS c, sum(v) AS s FROM t GROUP BY g",
    "no groups": "SELECT count(*) AS c, avg(v) AS a FROM t",
    "groups by text": "SELECT s, g, count(v) AS c, sum(n) AS s2 FROM t GROUP BY s, g",
    "large sums": "SELECT g, sum(b) AS s FROM t GROUP BY g",
    "rows": "SELECT id, v FROM t WHERE v > 1",
    "equal rows": "SELECT v, s FROM t",
    "numbers of any scale": "SELECT x, count(*) AS c FROM t GROUP BY x",
    "numbers": "SELECT n, id FROM t",
    "floats": "SELECT f, count(*) AS c FROM t GROUP BY f",
    "sum of floats": "SELECT g, sum(f) AS s FROM t GROUP BY g",
    "join": "SELECT d.name, sum(t.v) AS s FROM t JOIN d ON d.id = t.g GROUP BY d.name",
    "outer join": "SELECT t.id, d.name FROM t LEFT JOIN d ON d.id = t.g",
    "extremes": "SELECT g, max(v) AS m, min(s) AS s FROM t GROUP BY g",
    "distinct values": "SELECT g, count(DISTINCT v) AS c FROM t GROUP BY g",
    "window": "SELECT id, row_number() OVER (PARTITION BY g ORDER BY v) AS place FROM t",
    "limit": "SELECT id, v FROM t ORDER BY v DESC, s LIMIT 7",
    "in order": "SELECT v, id, s FROM t ORDER BY v DESC, id",
    "dates": "SELECT day, moment, at, count(*) AS c FROM t GROUP BY day, moment, at",
    "values": "SELECT id, ok, u, p FROM t",
    "union": "SELECT g FROM t UNION SELECT id FROM d",
    "nothing": "SELECT id FROM t WHERE id < 0",
}


def load_tables(store: Store, rows: int = 300) -> None:
    store.run(
        "CREATE TABLE t (id int PRIMARY KEY, g int, v int, b bigint, s text, n numeric(12,2),"
        " x numeric, f double precision, day date, moment timestamp, at timestamptz, ok boolean,"
        " u uuid, p char(4))",
        "CREATE TABLE d (id int PRIMARY KEY, name varchar(9))",
        "INSERT INTO d SELECT i, 'n' || i % 3 FROM generate_series(0, 6) AS s(i)",
        "INSERT INTO t SELECT i, nullif(i % 9, 4), nullif(i % 7, 5),"
        " 9223372036854775807 - i, nullif('t' || i % 5, 't2'), i % 11 / 4.0,"
        " CASE WHEN i % 2 = 0 THEN 1.0 ELSE 1.00 END, nullif(i % 4, 3) / 8.0,"
        " date '2026-01-01' + i % 3, timestamp '1969-12-31 23:59:59.5' + i % 2 * interval '1 day',"
        " timestamptz '2026-03-01 00:00:00+00' - i % 3 * interval '400 years', i % 3 = 0,"
        " nullif('00000000-0000-0000-0000-00000000000' || i % 4,"
        " '00000000-0000-0000-0000-000000000002')::uuid, 'c' || i % 3"
        f" FROM generate_series(1, {rows}) AS s(i)",
    )


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        load_tables(made)
        yield made


def read_state(store: Store, name: str) -> list[tuple[bytes, bytes]]:
    """The entries of a view, without the part of their keys that names it."""
    view = store.db.catalog.require_relation(View, name)
    stored = compiled_view(store.db.catalog, view.id)
    width = len(stored.key.prefix)
    with store.db.begin() as reader:
        batches = reader.scan(stored.start, stored.end)
        return [(key[width:], value) for batch in batches for key, value in batch]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_state_is_that_of_a_fill_by_rows(store: Store, shape: str) -> None:
    store.run("SET maintenance_tier = python", f"CREATE MATERIALIZED VIEW a AS {SHAPES[shape]}")
    store.run("SET maintenance_tier = refill", f"CREATE MATERIALIZED VIEW b AS {SHAPES[shape]}")
    assert read_state(store, "a") == read_state(store, "b")
    store.run("UPDATE t SET v = v + 1, g = 2 WHERE id % 5 = 0", "DELETE FROM t WHERE id < 20")
    store.run("INSERT INTO t (id, g, v) VALUES (1000, 2, 6)")
    assert set(store.verified().values()) == {True}


def test_groups_rows_and_windows_are_encoded_by_columns(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not row by row: these are the shapes that a large fill is for."""
    by_columns: list[bool] = []
    encode = state_entries.try_encode_columns_as_entries

    def watch(*given: Any) -> Any:
        found = encode(*given)
        by_columns.append(found is not None)
        return found

    monkeypatch.setattr(
        "belvedere.views.maintain.duckdb_batch.try_encode_columns_as_entries", watch
    )
    store.run("SET maintenance_tier = refill")
    names = ("groups", "groups by text", "rows", "equal rows", "distinct values", "window", "join")
    for number, name in enumerate(names):
        store.run(f"CREATE MATERIALIZED VIEW v{number} AS {SHAPES[name]}")
    assert len(by_columns) >= len(names)
    assert all(by_columns)


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tier_selector, "BACKFILL_ROWS_MIN", 1)
    monkeypatch.setattr(column_backfill, "GROUPS_MAX", 16)
    monkeypatch.setattr(column_backfill, "FILE_ENTRIES_MAX", 16)
    monkeypatch.setattr(index_files, "FILE_ENTRIES_MAX", 16)


@pytest.mark.parametrize("by_files", [False, True])
@pytest.mark.parametrize("shape", ["groups by text", "rows", "numbers", "window"])
def test_a_fill_goes_on_from_every_step(
    tmp_path: Path,
    shape: str,
    by_files: bool,
    small_steps: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At the position it began at; what was written before is not written again."""
    if by_files:
        monkeypatch.setattr(column_backfill, "INGEST_MIN", 1)
    path, images = tmp_path / "shop.db", []

    def copy_store() -> None:
        image = tmp_path / f"image {len(images)}"
        shutil.copytree(path, image)
        (image / "LOCK").unlink(missing_ok=True)
        images.append(image)

    with opened(path) as store:
        load_tables(store)
        if shape == "window":
            store.run("CREATE INDEX ON t (g)")
        failpoints.arm("backfill.chunk", "call", call=copy_store)
        try:
            store.run(
                f"CREATE MATERIALIZED VIEW v WITH (backfill = 'resumable') AS {SHAPES[shape]}"
            )
        finally:
            failpoints.disarm_all()
        expected, total = read_state(store, "v"), len(images)
    assert total > 2
    chunks: list[int] = []
    failpoints.arm("backfill.chunk", "call", call=lambda: chunks.append(1))
    try:
        for number, image in enumerate(images):
            chunks.clear()
            with opened(image) as store:
                assert store.view("v").state is ObjectState.READY
                assert len(chunks) == total - number - 1
                assert read_state(store, "v") == expected
                with store.db.begin() as reader:
                    assert read_backfill_state(reader, store.view("v").id).progress is None
                assert set(store.verified().values()) == {True}
    finally:
        failpoints.disarm_all()


def test_a_file_without_its_progress_is_erased(
    tmp_path: Path, small_steps: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies between the two, and a row of the file is deleted."""
    monkeypatch.setattr(column_backfill, "INGEST_MIN", 1)
    path, image, ingest = tmp_path / "shop.db", tmp_path / "image", BatchAtomicEngine.ingest_pairs

    def ingest_and_copy(engine: BatchAtomicEngine, pairs: Iterable[Pair]) -> bool:
        pairs = list(pairs)
        done = ingest(engine, pairs)
        if pairs and not image.exists():
            other.execute("DELETE FROM t WHERE id = 2")
            _copy_once(path, image)
        return done

    with opened(path) as store:
        load_tables(store)
        other = store.session()
        monkeypatch.setattr(BatchAtomicEngine, "ingest_pairs", ingest_and_copy)
        store.run(f"CREATE MATERIALIZED VIEW v WITH (backfill = 'resumable') AS {SHAPES['rows']}")
        assert store.verified() == {"v": True}
    with opened(image) as store:
        assert store.view("v").state is ObjectState.READY
        assert store.verified() == {"v": True}


def test_a_resumed_fill_that_duckdb_refuses_begins_again_by_rows(
    tmp_path: Path, small_steps: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, image = tmp_path / "shop.db", tmp_path / "image"
    with opened(path) as store:
        load_tables(store)
        failpoints.arm("backfill.chunk", "call", call=lambda: _copy_once(path, image))
        try:
            store.run(
                f"CREATE MATERIALIZED VIEW v WITH (backfill = 'resumable') AS {SHAPES['rows']}"
            )
        finally:
            failpoints.disarm_all()
        expected = read_state(store, "v")
    monkeypatch.setattr(TierSelector, "compute_state_by_duckdb", lambda *given: "not today")
    with opened(image) as store:
        assert store.view("v").state is ObjectState.READY
        assert read_state(store, "v") == expected
        assert store.verified() == {"v": True}


def _copy_once(path: Path, image: Path) -> None:
    if not image.exists():
        shutil.copytree(path, image)
        (image / "LOCK").unlink(missing_ok=True)


def test_a_canceled_fill_leaves_nothing(store: Store, small_steps: None) -> None:
    session, chunks = store.session(), [0]

    def cancel_fill() -> None:
        chunks[0] += 1
        session.cancel()

    failpoints.arm("backfill.chunk", "call", call=cancel_fill)
    try:
        with pytest.raises(Unavailable) as refused:
            session.execute(f"CREATE MATERIALIZED VIEW v AS {SHAPES['rows']}")
    finally:
        failpoints.disarm_all()
    assert refused.value.sqlstate == "57014"
    assert chunks == [1]
    assert store.db.catalog.find_relation("v", "public") is None
    assert session.execute("SELECT count(*) FROM t").rows == [(300,)]


@pytest.mark.parametrize("parts", ["g", "s, v", "v DESC, day", "x", "g) INCLUDE (s, n", "ok, at"])
def test_an_index_by_columns_is_that_of_rows(
    store: Store, parts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "COLUMNS_ROWS_MIN", 1)
    store.run(f"CREATE INDEX by_columns ON t ({parts})")
    monkeypatch.setattr(entries, "COLUMNS_ROWS_MIN", 10_000)
    store.run(f"CREATE INDEX by_rows ON t ({parts})")
    found = []
    for name in ("by_columns", "by_rows"):
        index = compiled_index(store.db.catalog, store.db.catalog.require_relation(Index, name).id)
        with store.db.begin() as reader:
            batches = reader.scan(index.start, index.end)
            width = len(index.key.prefix)
            found.append([(key[width:], value) for batch in batches for key, value in batch])
    assert len(found[0]) == 300
    assert found[0] == found[1]


def test_chunks_of_an_index_grow_while_commits_need_not_wait() -> None:
    rows, limit = index_backfill.CHUNK_ROWS, index_backfill.CHUNK_S
    assert index_backfill._adapt_chunk_rows(rows, 0.0) == 2 * rows
    assert index_backfill._adapt_chunk_rows(4 * rows, 2 * limit) == 2 * rows
    assert index_backfill._adapt_chunk_rows(rows, 2 * limit) == rows
    assert index_backfill._adapt_chunk_rows(4 * rows, limit / 2) == 4 * rows
    most = index_backfill.CHUNK_ROWS_MAX
    assert index_backfill._adapt_chunk_rows(most, 0.0) == most


def test_writers_go_on_while_a_view_is_filled(store: Store, small_steps: None) -> None:
    other = store.session()
    numbers = iter(range(1, 300, 7))

    def write() -> None:
        number = next(numbers)
        other.execute(f"DELETE FROM t WHERE id = {number}")
        other.execute(f"UPDATE t SET g = 99, v = 6 WHERE id = {number + 1}")

    failpoints.arm("backfill.chunk", "call", call=write)
    try:
        store.run(f"CREATE MATERIALIZED VIEW v AS {SHAPES['groups by text']}")
    finally:
        failpoints.disarm_all()
    assert store.verified() == {"v": True}
