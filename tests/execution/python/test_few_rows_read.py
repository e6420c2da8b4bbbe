"""Queries over a few rows of one range take a fast path, and answer as the general one does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import belvedere
from belvedere.execution.python.few_rows_read import ROWS_MAX
from belvedere.txn.history.readers import SnapshotReader

QUERIES = (
    "SELECT sum(c), count(*), min(s) FROM t WHERE a = ?",
    "SELECT b, c + 1 FROM t WHERE a = ? AND b BETWEEN 2 AND 5",
    "SELECT s, avg(c) FROM t WHERE a = ? GROUP BY s HAVING count(*) > 1",
    "SELECT DISTINCT s FROM t WHERE a = ? AND c % 2 = 0",
    "SELECT b FROM t WHERE a = ? ORDER BY s DESC, b LIMIT 3 OFFSET 1",
    "SELECT count(*) FROM t WHERE c = ?",
    "SELECT s, b FROM t WHERE c = ? ORDER BY a DESC, b DESC LIMIT 1",
    "SELECT b, a, b, s FROM t WHERE c = ? ORDER BY a, b LIMIT 7",
    "SELECT q.b, q.s FROM (SELECT s, b, a FROM t WHERE c = ? ORDER BY a, b LIMIT 3) AS q",
    "SELECT string_agg(s, ',' ORDER BY b) FROM t WHERE a = ? AND b > 3",
    "SELECT b, s FROM t WHERE a IN (?, 4, 4)",
    "SELECT b, s FROM t WHERE (a, b) = (?, 3) OR (a = 4 AND b = 2)",
    "SELECT b, s FROM t WHERE a IN (?, 4) AND b IN (1, 2, NULL)",
    "SELECT a, b FROM t WHERE a = ? OR c = 2",
    "SELECT count(DISTINCT y.a) FROM t x JOIN t y ON y.a = x.c AND y.b = x.b WHERE x.a = ?",
    "SELECT max(b), min(b) FROM t WHERE a = ?",
    "SELECT b, (SELECT s FROM t y WHERE y.a = x.c AND y.b = x.b) FROM t x WHERE a = ?",
    "SELECT (SELECT max(b) FROM t WHERE a = 4) + b FROM t WHERE a = ? AND b > 7",
)
OTHERS = (
    "SELECT a, b, s FROM t WHERE c IN (?, 2)",
    "SELECT x.b, y.a, y.s FROM t x JOIN t y ON y.c = x.b WHERE x.a = ? AND x.b < 3",
    "SELECT b FROM t x WHERE a = ? AND EXISTS (SELECT 1 FROM t y WHERE y.c = x.b AND y.b > 5)",
    "SELECT b FROM t x WHERE a = ? AND NOT EXISTS (SELECT 1 FROM t y WHERE y.c = x.b AND b = 9)",
)
"""Of which more rows are expected."""
TWO_READS = (
    "SELECT a, b, s FROM t WHERE c = ?",
    "SELECT a, b, s FROM t WHERE c IN (?, 6)",
    "SELECT a, b, s FROM t WHERE c = ? OR (a = 1 AND b = 1)",
    "SELECT b, a, s FROM t WHERE c = ? ORDER BY a, b LIMIT 7",
)


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:few_rows", autocommit=True) as opened:
        opened.execute("CREATE TABLE t (a int, b int, c int, s text, PRIMARY KEY (a, b))")
        opened.execute("CREATE INDEX ON t (c)")
        rows: list[tuple[Any, ...]] = [(i // 10, i % 10, i % 7, f"s{i % 3}") for i in range(200)]
        rows += [(99, i, 5, None) for i in range(ROWS_MAX + 1)]
        opened.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        opened.execute("ANALYZE")
        yield opened


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in a transaction"])
@pytest.mark.parametrize("value", [3, 5, 99, 1000, None])
@pytest.mark.parametrize("query", QUERIES + OTHERS)
def test_answers_are_those_of_the_general_path(
    con: belvedere.Connection, query: str, value: int | None, *, inside: bool
) -> None:
    if inside:
        con.execute("BEGIN")
        con.execute("UPDATE t SET c = c + 1, s = 'new' WHERE a = 3 AND b < 4")
        con.execute("DELETE FROM t WHERE a = 5 AND b = 5")
        con.execute("INSERT INTO t VALUES (3, 50, 3, 'more')")
    con.execute("SET tier = duckdb")
    wanted = sorted(con.execute(query, (value,)).fetchall(), key=repr)
    con.execute("SET tier = auto")
    for _ in range(2):  # compiled, then from the cache
        assert sorted(con.execute(query, (value,)).fetchall(), key=repr) == wanted


@pytest.mark.parametrize("query", QUERIES)
def test_a_cached_query_of_few_rows_takes_the_fast_path(
    con: belvedere.Connection, query: str
) -> None:
    con.execute(query, (3,))
    session = con.session
    assert isinstance(session, belvedere.session.session.Session)
    entry = session.shared.plans.get(query)
    assert entry is not None
    assert entry.fast_read is not None


@pytest.mark.parametrize("query", TWO_READS)
def test_rows_are_of_the_moment_of_their_index_entries(
    con: belvedere.Connection, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    con.execute("DELETE FROM t WHERE a = 99")
    con.execute("INSERT INTO t SELECT 100 + n, 0, 100 + n, 's' FROM generate_series(1, 3000) AS n")
    con.execute("ANALYZE")
    wanted = con.execute(query, (3,)).fetchall()
    assert wanted
    with belvedere.connect(":memory:few_rows", autocommit=True) as other:
        read, changed = SnapshotReader.multi_get, list[int]()

        def change_before_reading(reader: SnapshotReader, keys: Sequence[bytes]) -> Any:
            if not changed:
                changed.append(0)
                changed[0] = other.execute("DELETE FROM t WHERE c = 3").rowcount
            return read(reader, keys)

        monkeypatch.setattr(SnapshotReader, "multi_get", change_before_reading)
        assert con.execute(query, (3,)).fetchall() == wanted
        assert changed[0] > 0
        assert con.execute("SELECT count(*) FROM t WHERE c = 3").fetchone() == (0,)
