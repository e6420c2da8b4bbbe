"""Rewritten statements see what they must: own writes, freshness, isolation, states of views."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.errors import Unsupported
from belvedere.session.session import Session
from tests.views.rewrite.test_planner import find_rewriting_lines
from tests.views.sql import Store, opened, rows_of

QUERY = "SELECT kind, count(*) FROM t GROUP BY kind ORDER BY 1"
SCHEMA = (
    "CREATE TABLE t (id int PRIMARY KEY, kind int NOT NULL, x int NOT NULL)",
    "INSERT INTO t SELECT g, g % 2, 1 FROM generate_series(1, 200) AS g",
)
VIEW = "SELECT kind, count(*) AS n FROM t GROUP BY kind"


@pytest.fixture
def store() -> Iterator[Store]:
    with opened(rewrite=True) as made:
        made.run(*SCHEMA)
        yield made


def reads_view(session: Session) -> bool:
    rows = session.execute(f"EXPLAIN {QUERY}").rows or []
    return any(line.startswith("rewritten") for (line,) in rows)


def find_deferred_line(session: Session) -> str:
    """How EXPLAIN says that the deferred view is read."""
    rows = session.execute(f"EXPLAIN {QUERY}").rows or []
    return next(line for (line,) in rows if line.startswith("deferred"))


def test_an_immediate_view_shows_own_writes(store: Store) -> None:
    store.run(f"CREATE MATERIALIZED VIEW v AS {VIEW}")
    session = store.session()
    for isolation in ("READ COMMITTED", "REPEATABLE READ"):
        session.execute(f"BEGIN ISOLATION LEVEL {isolation}")
        session.execute("INSERT INTO t VALUES (1000, 7, 1)")
        assert reads_view(session)
        assert rows_of(session, QUERY) == [(0, 100), (1, 100), (7, 1)]
        session.execute("ROLLBACK")
        assert rows_of(session, QUERY) == [(0, 100), (1, 100)]


def test_a_deferred_view_that_is_behind_is_not_read(store: Store) -> None:
    store.run(
        "CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred', refresh_every = '1 day') "
        f"AS {VIEW}"
    )
    session = store.session()
    assert rows_of(session, QUERY) == [(0, 100), (1, 100)]
    session.execute("INSERT INTO t VALUES (1000, 7, 1)")
    assert rows_of(session, QUERY) == [(0, 100), (1, 100), (7, 1)]
    assert find_deferred_line(session).startswith("deferred v: bypass (")
    assert rows_of(session, QUERY, "any") == [(0, 100), (1, 100)]
    assert rows_of(session, QUERY, "latest") == [(0, 100), (1, 100), (7, 1)]
    session.execute("REFRESH MATERIALIZED VIEW v")
    assert find_deferred_line(session).startswith("deferred v: read as it is (")
    assert rows_of(session, QUERY) == [(0, 100), (1, 100), (7, 1)]


def test_explain_of_a_view_that_is_behind_shows_what_runs(store: Store) -> None:
    store.run(
        "CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred', refresh_every = '1 day') "
        f"AS {VIEW}",
        "INSERT INTO t VALUES (1000, 7, 1)",
    )
    session = store.session()
    for explain in ("EXPLAIN", "EXPLAIN ANALYZE"):
        lines = [line for (line,) in session.execute(f"{explain} {QUERY}").rows]
        text = "\n".join(lines)
        assert "Scan t (" in text
        assert "Scan v" not in text
        assert "rewritten to view v" not in text
        assert "view v not used: it is not fresh enough" in lines
        (costs,) = [line for line in lines if line.startswith("rewriting: cost")]
        assert "when views are fresh, without views" in costs
        assert (explain == "EXPLAIN ANALYZE") == ("(actual rows=3 loops=1" in text)


def test_a_definition_that_fails_on_a_row_fails_no_other_query(store: Store) -> None:
    store.run(
        "CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred') AS "
        "SELECT kind, id, 10 / x AS share FROM t"
    )
    store.run("REFRESH MATERIALIZED VIEW v")
    session = store.session()
    query = "SELECT id FROM t WHERE kind = 1"
    assert find_rewriting_lines(store, query) == ["rewritten to view v: filter kind = 1"]
    assert len(rows_of(session, query)) == 100
    session.execute("INSERT INTO t VALUES (1001, 1, 0)")
    assert len(rows_of(session, query)) == 101
    assert len(rows_of(session, query, "latest")) == 101


def test_serializable_reads_of_rewritten_statements_conflict(store: Store) -> None:
    if store.db.row_atomic:
        with pytest.raises(Unsupported, match="serializable"):
            store.session().execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
        return
    store.run(
        f"CREATE MATERIALIZED VIEW v AS {VIEW}", "CREATE TABLE log (id int PRIMARY KEY, n int)"
    )
    one, other = store.session(), store.session()
    for session in (one, other):
        session.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
        assert rows_of(session, QUERY) == [(0, 100), (1, 100)]
    one.execute("INSERT INTO t VALUES (1000, 7, 1)")
    one.execute("COMMIT")
    other.execute("INSERT INTO log VALUES (1, 200)")
    with pytest.raises(Exception, match="could not serialize"):
        other.execute("COMMIT")


@pytest.mark.parametrize("options", ["WITH (strict = false)", "WITH (backfill = 'later')"])
def test_views_that_may_not_be_ready_are_not_used(store: Store, options: str) -> None:
    store.run(f"CREATE MATERIALIZED VIEW v {options} AS {VIEW}")
    assert find_rewriting_lines(store, QUERY) == []
