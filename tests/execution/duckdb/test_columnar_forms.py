"""Copies of stored rows: the columns that are decoded, and when they become tables of DuckDB."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.execution.duckdb import columnar_cache as module
from belvedere.session.session import Session
from tests.execution.duckdb.columnar_reads import BAG, Store, filled, rows


@pytest.fixture
def store() -> Iterator[Store]:
    made = filled()
    yield made
    made.close()


def explained(session: Session) -> str:
    result = session.execute(f"EXPLAIN {BAG}")
    return "\n".join(row[0] for row in result.rows)


def test_a_statement_makes_the_columns_it_reads_and_no_others(store: Store) -> None:
    session = store.session()
    session.execute("SELECT sum(v) FROM t")
    assert "columnar copy of 50 rows, 1 columns so far" in explained(session)
    session.execute("SELECT max(v), min(name) FROM t")
    assert "columnar copy of 50 rows, 2 columns so far" in explained(session)
    session.execute("INSERT INTO t VALUES (51, 1, NULL)")
    found = session.execute("SELECT count(*), sum(v) FROM t")
    found.convert_arrow_to_rows()
    assert found.rows == [(51, 12751)]
    assert "columnar copy of 50 rows, 3 columns so far" in explained(session)


def test_a_repeated_statement_makes_a_table_of_the_copy(store: Store) -> None:
    session = store.session()
    for _ in range(2):
        session.execute("SELECT sum(v) FROM t")
    assert "columnar copy of 50 rows, last at" in explained(session)
    session.execute("UPDATE t SET v = 0 WHERE id = 1")
    assert len(rows(session)) == 50


def test_a_copy_that_is_read_often_becomes_a_table(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "READS_MAX", 2)
    session = store.session()
    for number in range(7):  # 3 columns, each read twice
        session.execute(f"SELECT sum(v + {number}) FROM t")
    assert "so far" in explained(session)
    session.execute("SELECT sum(v + 7) FROM t")
    assert "columnar copy of 50 rows, last at" in explained(session)


def test_a_copy_of_which_many_rows_change_becomes_a_table(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHANGED_ROWS_MAX", 10)
    session = store.session()
    session.execute("SELECT sum(v) FROM t")
    session.execute("UPDATE t SET v = 1 WHERE id <= 10")
    session.execute("SELECT sum(v + 1) FROM t")
    assert "so far" in explained(session)
    session.execute("UPDATE t SET v = 1 WHERE id <= 11")
    session.execute("SELECT sum(v + 2) FROM t")
    assert "columnar copy of 50 rows, last at" in explained(session)
    assert sorted(row[1] for row in rows(session))[:12] == [1] * 11 + [120]


def test_a_change_of_other_columns_does_not_concern_a_reader(store: Store) -> None:
    session = store.session()
    for _ in range(2):
        session.execute("SELECT sum(v) FROM t")
    session.execute("UPDATE t SET name = 'other' WHERE id = 7")
    session.execute("SELECT sum(v) FROM t")
    (copy,) = store.copies._copies.values()
    assert len(copy.pending) == 1
    assert (7, 70, "other") in rows(session)
    assert not copy.pending
    session.execute("DELETE FROM t WHERE id = 8")
    found = session.execute("SELECT count(*) FROM t")
    found.convert_arrow_to_rows()
    assert found.rows == [(49,)]
