"""Copies of which each column is fetched when it is first read, as of the copy's own position."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.errors import Unavailable
from belvedere.execution.duckdb import columnar_cache as module
from belvedere.execution.duckdb.fetched_columns import FetchedColumns
from belvedere.session.session import Session
from tests.execution.duckdb.columnar_reads import Store, filled, rows


@pytest.fixture
def store() -> Iterator[Store]:
    made = filled("cells")
    yield made
    made.close()


def answer(session: Session, text: str) -> list[object]:
    result = session.execute(text)
    result.convert_arrow_to_rows()
    return result.rows


def columns_of(store: Store) -> FetchedColumns:
    (copy,) = store.copies._copies.values()
    assert isinstance(copy.columns, FetchedColumns)
    return copy.columns


def test_a_statement_fetches_its_own_columns_and_the_key(store: Store) -> None:
    session = store.session()
    assert answer(session, "SELECT count(*) FROM t") == [(50,)]
    assert columns_of(store).decoded_count == 1
    assert answer(session, "SELECT sum(v) FROM t") == [(12750,)]
    assert columns_of(store).decoded_count == 2
    assert not columns_of(store).has_slots([2])


def test_a_column_fetched_later_is_of_the_same_rows(store: Store) -> None:
    """What has happened since the first one is added to both."""
    session, other = store.session(), store.session()
    answer(session, "SELECT count(*) FROM t")
    first = columns_of(store)
    other.execute("UPDATE t SET v = 0 WHERE id = 50")
    other.execute("DELETE FROM t WHERE id <= 5")
    other.execute("INSERT INTO t VALUES (0, 1000, 'new'), (51, 2000, NULL)")
    other.execute("UPDATE t SET name = 'again', v = 7 WHERE id = 51")
    assert answer(session, "SELECT sum(v), count(*), max(name) FROM t") == [(13107, 47, "new")]
    assert columns_of(store) is first
    assert first.decoded_count == 3
    assert len(rows(session)) == 47


def test_a_copy_whose_past_is_gone_begins_anew(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = store.session()
    answer(session, "SELECT count(*) FROM t")
    first = columns_of(store)

    def fail(*arguments: object) -> None:
        raise Unavailable("snapshot too old", sqlstate="72000")

    monkeypatch.setattr(first, "_fetch_columns", fail, raising=True)
    assert answer(session, "SELECT sum(v) FROM t") == [(12750,)]
    assert answer(session, "SELECT sum(v + 1) FROM t") == [(12800,)]
    assert columns_of(store) is not first


def test_a_store_that_does_not_answer_is_an_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = store.session()
    answer(session, "SELECT count(*) FROM t")

    def fail(*arguments: object) -> None:
        raise Unavailable("the store does not answer", sqlstate="08006")

    monkeypatch.setattr(FetchedColumns, "_fetch_columns", fail)
    with pytest.raises(Unavailable, match="does not answer"):
        session.execute("SELECT sum(v) FROM t")


def test_columns_that_are_too_large_are_read_from_the_table(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = store.session()
    monkeypatch.setattr(store.copies, "_budget", module.CacheBudget(300, 1))
    assert answer(session, "SELECT count(*) FROM t") == [(50,)]
    assert store.copies.table_names() == ("t",)
    assert answer(session, "SELECT max(name) FROM t") == [("name 9",)]
    assert store.copies.table_names() == ()
    assert answer(session, "SELECT sum(v), max(name) FROM t") == [(12750, "name 9")]
    assert store.copies.table_names() == ()


def test_a_copy_with_all_columns_becomes_a_table(store: Store) -> None:
    session = store.session()
    for _ in range(2):
        answer(session, "SELECT sum(v) FROM t")
    assert columns_of(store).decoded_count == 2
    for _ in range(2):
        answer(session, "SELECT max(id), max(v), max(name) FROM t")
    (copy,) = store.copies._copies.values()
    assert copy.columns is None
    session.execute("UPDATE t SET v = 0 WHERE id = 1")
    assert (1, 0, "name 1") in rows(session)


def test_many_changes_make_an_incomplete_copy_begin_anew(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHANGED_ROWS_MAX", 10)
    session = store.session()
    answer(session, "SELECT sum(v) FROM t")
    first = columns_of(store)
    session.execute("UPDATE t SET v = 1 WHERE id <= 10")
    assert answer(session, "SELECT sum(v + 1) FROM t") == [(12260,)]
    assert columns_of(store) is first
    session.execute("UPDATE t SET v = 2 WHERE id <= 11")
    assert answer(session, "SELECT sum(v) FROM t") == [(12112,)]
    assert answer(session, "SELECT sum(v - 1) FROM t") == [(12062,)]
    assert columns_of(store) is not first
    assert columns_of(store).decoded_count == 2
