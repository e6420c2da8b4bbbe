"""Backfill of an index as sorted files: beside writers, interrupted, refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from belvedere import failpoints
from belvedere.catalog.model import Index, ObjectState, Table
from belvedere.catalog.relation_codecs import compiled_index, compiled_table
from belvedere.kv.batch import Pair
from belvedere.txn.batch_atomic.directory import SORTED_DIRECTORY
from belvedere.views.backfill import index_files
from belvedere.views.cost import tier_selector
from belvedere.views.cost.tier_selector import TierSelector
from belvedere.views.indexes.entries import IndexParticipant, refuse_index_expression
from tests.views.sql import Store, opened

ROWS = 90


@pytest.fixture
def by_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every index that can be is filled by files of a few entries."""
    monkeypatch.setattr(tier_selector, "BACKFILL_ROWS_MIN", 0)
    monkeypatch.setattr(index_files, "FILE_ENTRIES_MAX", 16)
    monkeypatch.setattr(index_files, "POSITIONS_MAX", 2)


def load_table(store: Store) -> None:
    store.run(
        "CREATE TABLE t (id int PRIMARY KEY, g int, s text, n numeric(9,2))",
        "INSERT INTO t SELECT i, nullif(i % 9, 4), nullif('t' || i % 5, 't2'), i / 4.0"
        f" FROM generate_series(1, {ROWS}) AS s(i)",
    )


def find_index(store: Store, name: str) -> Index:
    return store.db.catalog.require_relation(Index, name)


def read_entries(store: Store, name: str) -> list[Pair]:
    index = compiled_index(store.db.catalog, find_index(store, name).id)
    with store.db.begin() as reader:
        return [pair for batch in reader.scan(index.start, index.end) for pair in batch]


def expected_entries(store: Store, name: str) -> list[Pair]:
    """The entries that the rows of the table have, built one by one."""
    index, catalog = find_index(store, name), store.db.catalog
    table = compiled_table(catalog, index.table)
    participant = IndexParticipant(catalog, index, refuse_index_expression)
    with store.db.begin() as reader:
        rows = [row for batch in reader.scan_values(table.start, table.end) for row in batch]
    return sorted(entry for row in rows if (entry := participant.build_index_entry(row)))


@contextmanager
def at_each_file(act: Callable[[], None]) -> Iterator[list[int]]:
    """Do this after each file; gives the list of the files so far."""
    files: list[int] = []

    def count_and_act() -> None:
        files.append(len(files))
        act()

    failpoints.arm("backfill.chunk", "call", call=count_and_act)
    try:
        yield files
    finally:
        failpoints.disarm_all()


@pytest.mark.parametrize("parts", ["g", "s, g DESC", "g) INCLUDE (s", "id", "s"])
def test_the_entries_are_those_of_rows(tmp_path: Path, by_files: None, parts: str) -> None:
    with opened(tmp_path / "shop.db") as store:
        load_table(store)
        with at_each_file(lambda: None) as files:
            store.run(f"CREATE INDEX by_files ON t ({parts})")
        assert len(files) == 6, "files, not chunks of rows"
        assert read_entries(store, "by_files") == expected_entries(store, "by_files")
        assert len(read_entries(store, "by_files")) == ROWS
        assert not list((tmp_path / "shop.db" / SORTED_DIRECTORY).iterdir())


def test_what_writers_change_meanwhile_is_there_once(tmp_path: Path, by_files: None) -> None:
    """Also what they change, insert and delete between two files, and what changes back."""
    with opened(tmp_path / "shop.db") as store:
        load_table(store)
        other = store.session()
        numbers = iter(range(1, ROWS, 5))

        def write() -> None:
            number = next(numbers)
            other.execute(f"DELETE FROM t WHERE id = {number}")
            other.execute(f"UPDATE t SET g = 77 WHERE id IN ({number + 1}, {number + 2})")
            other.execute(f"UPDATE t SET s = 'new' WHERE id = {number + 3}")
            other.execute(f"INSERT INTO t (id, g) VALUES ({1000 + number}, 5)")
            other.execute(f"UPDATE t SET g = 78 WHERE id = {number + 1}")
            other.execute(f"DELETE FROM t WHERE id = {number + 2}")

        with at_each_file(write) as files:
            store.run("CREATE INDEX by_files ON t (g) INCLUDE (s)")
        assert len(files) == 6
        assert read_entries(store, "by_files") == expected_entries(store, "by_files")
        assert store.run("SELECT count(*) FROM t WHERE g = 78") == [(6,)]


@pytest.mark.parametrize("again_by_rows", [False, True])
def test_an_interrupted_fill_begins_again(
    tmp_path: Path, by_files: None, again_by_rows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of rows that are deleted before it goes on nothing is left."""
    path, images = tmp_path / "shop.db", []

    def delete_and_copy() -> None:
        other.execute(f"DELETE FROM t WHERE id = {len(images) + 1}")
        image = tmp_path / f"image {len(images)}"
        shutil.copytree(path, image)
        (image / "LOCK").unlink(missing_ok=True)
        images.append(image)

    with opened(path) as store:
        load_table(store)
        other = store.session()
        with at_each_file(delete_and_copy):
            store.run(
                "CREATE MATERIALIZED VIEW v WITH (backfill = 'resumable') AS"
                " SELECT g, max(id) AS m FROM t GROUP BY g"
            )
    assert len(images) > 3
    if again_by_rows:
        monkeypatch.setattr(TierSelector, "prefers_backfill_by_columns", lambda *given: False)
    for image in images:
        with opened(image) as store:
            assert store.verified() == {"v": True}
            table = store.db.catalog.require_relation(Table, "t")
            for index in store.db.catalog.table_indexes(table.id):
                assert index.state is ObjectState.READY
                assert read_entries(store, index.name) == expected_entries(store, index.name)


@pytest.mark.parametrize("index", ["UNIQUE INDEX i ON t (id, g)", "INDEX i ON t (n)"])
def test_what_has_no_form_by_columns_is_filled_by_rows(
    tmp_path: Path, by_files: None, index: str
) -> None:
    with opened(tmp_path / "shop.db") as store:
        load_table(store)
        store.run(f"CREATE {index}")
        assert read_entries(store, "i") == expected_entries(store, "i")


def test_a_store_in_memory_takes_no_files(by_files: None) -> None:
    with opened() as store:
        load_table(store)
        store.run("CREATE INDEX i ON t (g)")
        assert read_entries(store, "i") == expected_entries(store, "i")
