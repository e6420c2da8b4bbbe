"""Reads that name a freshness, and reads of deferred views, take the fast path where what is stored
is fresh enough, and never where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest

import belvedere
from belvedere.session.session import Session

VIEW = "SELECT n FROM v WHERE a = ?"
TABLE = "SELECT a FROM t WHERE id = ?"


@pytest.fixture
def connections() -> Iterator[tuple[belvedere.Connection, belvedere.Connection]]:
    with (
        belvedere.connect(":memory:freshness_reads", autocommit=True) as con,
        belvedere.connect(":memory:freshness_reads", autocommit=True) as other,
    ):
        con.execute("CREATE TABLE t (id int PRIMARY KEY, a int)")
        con.execute(
            "CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred', max_lag = '1 hour') AS"
            " SELECT a, count(*) AS n FROM t GROUP BY a"
        )
        con.execute("INSERT INTO t VALUES (1, 7)")
        con.execute("REFRESH MATERIALIZED VIEW v")
        for one in (con, other):
            for query in (VIEW, TABLE):
                one.execute(query, (7,), freshness="latest").fetchall()
        yield con, other


def read(con: belvedere.Connection, freshness: str | None = None, a: int = 7) -> object:
    found = con.execute(VIEW, (a,), freshness=freshness).fetchone()
    return found and found[0]


def takes_fast_path(con: belvedere.Connection, query: str, freshness: str | None) -> bool:
    session = con.session
    assert isinstance(session, Session)
    with patch.object(Session, "run_with_timeout", side_effect=AssertionError("in general")):
        try:
            con.execute(query, (7,), freshness=freshness).fetchall()
        except AssertionError:
            return False
    return True


@pytest.mark.parametrize("freshness", [None, "any", "session", "latest", "250 ms", " ANY "])
@pytest.mark.parametrize("query", [VIEW, TABLE])
def test_what_is_fresh_enough_is_read_by_the_fast_path(
    connections: tuple[belvedere.Connection, belvedere.Connection],
    query: str,
    freshness: str | None,
) -> None:
    con, _ = connections
    if con.session.host.single_row_commits is not None:  # one scan is consistent
        assert takes_fast_path(con, query, freshness)
    assert con.execute(query, (7,), freshness=freshness).fetchall() == (
        [(1,)] if query == VIEW else []
    )


def test_own_writes_are_seen_unless_any_will_do(
    connections: tuple[belvedere.Connection, belvedere.Connection],
) -> None:
    con, _ = connections
    con.execute("INSERT INTO t VALUES (2, 7)")
    assert read(con, "any") == 1
    assert not takes_fast_path(con, VIEW, None)
    assert [read(con, one) for one in (None, "session", "latest", "1 ms")] == [2, 2, 2, 2]


def test_a_session_reads_its_own_position_and_latest_everybodys(
    connections: tuple[belvedere.Connection, belvedere.Connection],
) -> None:
    con, other = connections
    con.execute("REFRESH MATERIALIZED VIEW v")
    read(con, "session")
    other.execute("INSERT INTO t VALUES (2, 7)")
    assert read(con, "session") == 1
    assert not takes_fast_path(con, VIEW, "latest")
    assert read(con, "latest") == 2
    assert read(con, "session") == 2  # never behind what it was shown


def test_no_view_is_read_behind_what_another_one_showed(
    connections: tuple[belvedere.Connection, belvedere.Connection],
) -> None:
    con, other = connections
    other.execute(
        "CREATE MATERIALIZED VIEW w WITH (maintenance = 'deferred', max_lag = '2 hours') AS"
        " SELECT a, max(id) AS id FROM t GROUP BY a"
    )
    query = "SELECT id FROM w WHERE a = ?"
    other.execute("REFRESH MATERIALIZED VIEW w")
    con.execute(query, (7,)).fetchall()
    read(con)
    other.execute("INSERT INTO t VALUES (2, 7)")
    assert con.execute(query, (7,), freshness="session").fetchall() == [(1,)]
    other.execute("REFRESH MATERIALIZED VIEW v")
    assert read(con, "session") == 2
    assert con.execute(query, (7,), freshness="session").fetchall() == [(2,)]


def test_a_token_of_another_session_is_honoured(
    connections: tuple[belvedere.Connection, belvedere.Connection],
) -> None:
    con, other = connections
    read(con, "session")
    other.execute("INSERT INTO t VALUES (2, 7)")
    token = other.token
    assert read(con, token) == 2


def test_inside_a_transaction_own_changes_are_seen(
    connections: tuple[belvedere.Connection, belvedere.Connection],
) -> None:
    con, _ = connections
    con.execute("BEGIN")
    con.execute("INSERT INTO t VALUES (2, 7)")
    assert [read(con, one) for one in (None, "latest")] == [2, 2]
    assert con.execute(TABLE, (2,), freshness="any").fetchall() == [(7,)]
    con.execute("ROLLBACK")
    assert read(con, "latest") == 1


def test_a_view_that_fails_on_a_row_says_so_at_every_freshness(
    connections: tuple[belvedere.Connection, belvedere.Connection],
) -> None:
    con, _ = connections
    con.execute(
        "CREATE MATERIALIZED VIEW f WITH (maintenance = 'deferred') AS"
        " SELECT id, 10 / a AS q FROM t"
    )
    query = "SELECT q FROM f WHERE id = ?"
    for freshness in ("any", "session", "latest"):
        assert con.execute(query, (1,), freshness=freshness).fetchall() == [(1,)]
    con.execute("INSERT INTO t VALUES (3, 0)")
    with pytest.raises(belvedere.Error):
        con.execute("REFRESH MATERIALIZED VIEW f")
    for freshness in ("any", "session", "latest"):
        with pytest.raises(belvedere.Error, match="division by zero"):
            con.execute(query, (1,), freshness=freshness).fetchall()
    con.execute("DELETE FROM t WHERE id = 3")
    assert con.execute(query, (1,), freshness="latest").fetchall() == [(1,)]


def test_a_table_that_became_a_deferred_view_is_read_as_one(
    connections: tuple[belvedere.Connection, belvedere.Connection],
) -> None:
    con, other = connections
    con.execute("CREATE TABLE x (a int PRIMARY KEY, n int)")
    query = "SELECT n FROM x WHERE a = ?"
    assert con.execute(query, (7,), freshness="latest").fetchall() == []
    other.execute("DROP TABLE x")
    other.execute(
        "CREATE MATERIALIZED VIEW x WITH (maintenance = 'deferred', max_lag = '1 hour') AS"
        " SELECT a, count(*)::int AS n FROM t GROUP BY a"
    )
    other.execute("INSERT INTO t VALUES (5, 7)")
    assert con.execute(query, (7,), freshness="any").fetchall() == [(1,)]
    assert con.execute(query, (7,), freshness="latest").fetchall() == [(2,)]


@pytest.mark.parametrize("freshness", ["", "now", "-1 ms", "x" * 50])
@pytest.mark.parametrize("query", [VIEW, TABLE])
def test_an_invalid_freshness_is_refused_and_nothing_else_happens(
    connections: tuple[belvedere.Connection, belvedere.Connection], query: str, freshness: str
) -> None:
    con, _ = connections
    with pytest.raises(belvedere.Error) as caught:
        con.execute(query, (7,), freshness=freshness)
    assert caught.value.sqlstate == "22023"
    assert con.execute(query, (7,), freshness="any").fetchall() is not None
