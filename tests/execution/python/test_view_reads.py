"""What a view has under a key is read by the fast path, and answered as the general one answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere
from belvedere.execution.python.few_rows_read import ROWS_MAX
from belvedere.session.session import Session

LONG = "long " * 20_000
VIEWS = {
    "sums": "SELECT a, count(*) AS n, sum(c) AS total FROM t GROUP BY a",
    "by_text": "SELECT s, count(*) AS n, avg(c) AS mean FROM t GROUP BY s",
    "bag": "SELECT a, s FROM t WHERE c > 0",
    "largest": "SELECT a, max(c) AS c FROM t GROUP BY a",
    "often": "SELECT a, c, count(*) AS n FROM t GROUP BY a, c HAVING count(*) > 1",
    "numbered": "SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY c, b) AS r FROM t",
    "joined": "SELECT t.a, t.b, p.name FROM t JOIN p ON p.id = t.c",
}
QUERIES = (
    "SELECT n, total FROM sums WHERE a = ?",
    "SELECT total / n, n + 1 FROM sums WHERE a = ?",
    "SELECT n FROM sums WHERE a = ? AND total > 20",
    "SELECT sum(n), count(*) FROM sums WHERE a = ?",
    "SELECT * FROM bag WHERE a = ?",
    "SELECT s FROM bag WHERE a = ?",
    "SELECT count(*) FROM bag WHERE a = ?",
    "SELECT DISTINCT s FROM bag WHERE a = ? AND s <> 's1'",
    "SELECT s, count(*) FROM bag WHERE a = ? GROUP BY s ORDER BY s DESC",
    "SELECT c FROM largest WHERE a = ?",
    "SELECT * FROM often WHERE a = ? ORDER BY c LIMIT 2",
    "SELECT * FROM numbered WHERE a = ? AND r < 4",
    "SELECT r FROM numbered WHERE a = ? AND b = 2",
    "SELECT a, name FROM joined WHERE a = ? AND b = 1",
    "SELECT name FROM joined WHERE a = ? AND b BETWEEN 1 AND 4",
)


@pytest.fixture(scope="module", params=["immediate", "deferred"])
def con(request: pytest.FixtureRequest) -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute("CREATE TABLE p (id int PRIMARY KEY, name text)")
        opened.execute("CREATE TABLE t (a int, b int, c int, s text, PRIMARY KEY (a, b))")
        for name, query in VIEWS.items():
            options = f"maintenance = '{request.param}'"
            opened.execute(f"CREATE MATERIALIZED VIEW {name} WITH ({options}) AS {query}")
        opened.executemany("INSERT INTO p VALUES (?, ?)", [(i, f"p{i}") for i in range(7)])
        rows = [(i // 10, i % 10, i % 7, f"s{i % 3}") for i in range(200)]
        rows += [(50, 1, 3, LONG), (50, 2, 4, LONG + "x"), (50, 3, 4, LONG + "0")]
        rows += [(99, i, 5, None) for i in range(ROWS_MAX + 1)]
        opened.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        if request.param == "deferred":
            for name in VIEWS:
                opened.execute(f"REFRESH MATERIALIZED VIEW {name}")
        yield opened


def answer_in_general(
    con: belvedere.Connection, query: str, value: object
) -> list[tuple[object, ...]]:
    con.execute("SET tier = duckdb")  # which has no fast path
    try:
        return sorted(con.execute(query, (value,)).fetchall(), key=repr)
    finally:
        con.execute("SET tier = auto")


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in a transaction"])
@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_those_of_the_general_path(
    con: belvedere.Connection, query: str, *, inside: bool
) -> None:
    if inside:
        con.execute("BEGIN")
        con.execute("UPDATE t SET c = c + 1, s = 'new' WHERE a = 3 AND b < 4")
        con.execute("DELETE FROM t WHERE a = 5")
        con.execute("INSERT INTO t VALUES (3, 60, 3, 'more'), (2000, 1, 1, 'first')")
    try:
        for value in (3, 5, 50, 99, 1000, 2000, None):
            wanted = answer_in_general(con, query, value)
            for _ in range(2):  # compiled, then from the cache
                assert sorted(con.execute(query, (value,)).fetchall(), key=repr) == wanted, value
    finally:
        con.execute("ROLLBACK") if inside else None


@pytest.mark.parametrize("value", ["s1", LONG, LONG + "x", LONG + "y", "", None])
def test_groups_of_long_texts_are_found_by_their_whole_value(
    con: belvedere.Connection, value: str | None
) -> None:
    queries = (
        "SELECT n, mean FROM by_text WHERE s = ?",
        "SELECT s FROM by_text WHERE s = ?",
        "SELECT s FROM by_text WHERE s > ? ORDER BY s",
        "SELECT n FROM by_text WHERE s <= ?",
        "SELECT s FROM by_text WHERE s >= ? ORDER BY s DESC",
    )
    for query in queries:
        wanted = answer_in_general(con, query, value)
        for _ in range(2):
            found = con.execute(query, (value,)).fetchall()
            assert sorted(found, key=repr) == wanted
            assert "ORDER" not in query or found == sorted(found, reverse="DESC" in query)


@pytest.mark.parametrize("query", QUERIES)
def test_a_cached_read_of_a_view_takes_the_fast_path(con: belvedere.Connection, query: str) -> None:
    con.execute(query, (3,))
    session = con.session
    assert isinstance(session, Session)
    entry = session.shared.plans.get(query)
    assert (entry.fast_read is None) == bool(entry.deferred)
    assert (entry.deferred_read is None) != bool(entry.deferred)


def test_a_row_that_is_there_very_often_takes_the_general_path() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, a int)")
        con.execute("CREATE MATERIALIZED VIEW bag AS SELECT a FROM t")
        con.execute(f"INSERT INTO t SELECT i, 1 FROM generate_series(0, {ROWS_MAX}) i")
        session = con.session
        assert isinstance(session, Session)
        for query in ("SELECT a FROM bag WHERE a = ?", "SELECT a + 1 FROM bag WHERE a = ?"):
            for _ in range(2):
                assert len(con.execute(query, (1,)).fetchall()) == ROWS_MAX + 1
            entry = session.shared.plans.get(query)
            reader = session.shared.get_published_reader()
            run = belvedere.execution.python.few_rows_read.FastPathRun((1,), session.services)
            assert entry.fast_read(reader, run) is None
