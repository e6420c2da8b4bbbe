"""What commits by itself is refused in a transaction that has changes, and loses none of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere

REFUSED = {
    "an index of a view": "CREATE INDEX ON old (b)",
    "an index with options": "CREATE INDEX i ON t (b) WITH (maintenance = 'deferred')",
    "replacing a view": "CREATE OR REPLACE MATERIALIZED VIEW old AS SELECT b FROM t",
}


@pytest.fixture(params=["implicit", "explicit"])
def con(request: pytest.FixtureRequest) -> Iterator[belvedere.Connection]:
    """A transaction that has added a row and a table."""
    with belvedere.connect(":memory:") as one:
        one.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
        one.execute("INSERT INTO t VALUES (1, 1)")
        one.commit()
        one.execute("CREATE MATERIALIZED VIEW old AS SELECT b, count(*) AS n FROM t GROUP BY b")
        one.commit()
        if request.param == "explicit":
            one.execute("BEGIN")
        one.execute("INSERT INTO t VALUES (2, 2)")
        yield one


@pytest.mark.parametrize("name", REFUSED)
def test_what_commits_by_itself_is_refused_by_name(con: belvedere.Connection, name: str) -> None:
    with pytest.raises(belvedere.NotSupportedError, match="inside a transaction is not supported"):
        con.execute(REFUSED[name])
    with pytest.raises(belvedere.Error, match="current transaction is aborted"):
        con.execute("SELECT 1")
    con.rollback()
    con.execute(REFUSED[name])
    con.commit()
    assert con.execute("SELECT count(*) FROM t").fetchone() == (1,)


def test_changes_before_a_savepoint_are_kept(con: belvedere.Connection) -> None:
    con.execute("SAVEPOINT s")
    with pytest.raises(belvedere.NotSupportedError):
        con.execute("CREATE INDEX ON old (b)")
    con.execute("ROLLBACK TO s")
    con.commit()
    assert con.execute("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (2,)]


def is_filled_by_commit(con: belvedere.Connection, statement: str) -> bool:
    """Whether the transaction takes the statement; a row-atomic store refuses it by name."""
    try:
        con.execute(statement)
    except belvedere.NotSupportedError as error:
        if "row-atomic store" not in str(error):
            raise
        return False
    return True


def test_a_view_of_the_transaction_is_verified_after_its_commit(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE x (a int PRIMARY KEY)")
    if not is_filled_by_commit(con, "CREATE MATERIALIZED VIEW v AS SELECT a FROM x"):
        return
    con.execute("REFRESH MATERIALIZED VIEW v")
    for verb in ("VERIFY", "REPAIR"):
        con.execute("SAVEPOINT s")
        with pytest.raises(belvedere.NotSupportedError, match=f"{verb} of a materialized view"):
            con.execute(f"{verb} MATERIALIZED VIEW v")
        con.execute("ROLLBACK TO s")
    con.execute("INSERT INTO x VALUES (1)")
    con.commit()
    assert con.execute("SELECT a FROM v").fetchall() == [(1,)]
    assert con.execute("VERIFY MATERIALIZED VIEW v").fetchall()[0][-1]


def test_on_conflict_says_when_an_index_of_the_transaction_serves(
    con: belvedere.Connection,
) -> None:
    if not is_filled_by_commit(con, "CREATE UNIQUE INDEX ui ON t (b)"):
        return
    with pytest.raises(belvedere.Error, match="commit first: an index serves on conflict"):
        con.execute("INSERT INTO t VALUES (5, 1) ON CONFLICT (b) DO NOTHING")
    con.rollback()
    con.execute("CREATE UNIQUE INDEX ui ON t (b)")
    con.commit()
    con.execute("INSERT INTO t VALUES (5, 1) ON CONFLICT (b) DO NOTHING")
    assert con.execute("SELECT count(*) FROM t").fetchone() == (1,)
