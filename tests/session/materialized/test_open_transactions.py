"""Views and indexes are made beside the changes of a transaction, and none of those is lost. A
row-atomic store refuses them by name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere

MADE = {
    "an index of a view": "CREATE INDEX ON old (b)",
    "an index with options": "CREATE INDEX i ON t (b) WITH (maintenance = 'deferred')",
    "a local index": "CREATE INDEX i ON t (b) WITH (placement = 'local')",
    "a unique index of a view": "CREATE UNIQUE INDEX ON old (b)",
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


def is_filled_by_commit(con: belvedere.Connection, statement: str) -> bool:
    """Whether the transaction takes the statement; a row-atomic store refuses it by name."""
    try:
        con.execute(statement)
    except belvedere.NotSupportedError as error:
        if "row-atomic store" not in str(error):
            raise
        return False
    return True


def verify_all(con: belvedere.Connection) -> None:
    for (name,) in con.execute("SELECT name FROM belvedere.views").fetchall():
        (verified,) = con.execute(f'VERIFY MATERIALIZED VIEW "{name}"').fetchall()
        assert verified[-1] is True, verified


@pytest.mark.parametrize("name", MADE)
def test_what_a_commit_fills_is_made_beside_changes(con: belvedere.Connection, name: str) -> None:
    made = is_filled_by_commit(con, MADE[name])
    if made:
        con.execute("INSERT INTO t VALUES (3, 3)")
        con.commit()
    else:
        with pytest.raises(belvedere.Error, match="current transaction is aborted"):
            con.execute("SELECT 1")
        con.rollback()
        con.execute(MADE[name])
    con.execute("INSERT INTO t VALUES (4, 4)")
    con.commit()
    assert con.execute("SELECT count(*) FROM t").fetchone() == (4 if made else 2,)
    views = con.execute("SELECT name, state FROM belvedere.views").fetchall()
    assert {state for _, state in views} == {"ready"}
    assert len(views) == (1 if name == "replacing a view" else 2)
    con.execute("REFRESH MATERIALIZED VIEW old")
    verify_all(con)


@pytest.mark.parametrize("name", MADE)
def test_a_rollback_leaves_nothing_of_it(con: belvedere.Connection, name: str) -> None:
    is_filled_by_commit(con, MADE[name])
    con.rollback()
    assert con.execute("SELECT name FROM belvedere.views").fetchall() == [("old",)]
    assert con.execute("SELECT b, n FROM old").fetchall() == [(1, 1)]
    con.execute(MADE[name])
    con.commit()
    verify_all(con)


def test_changes_before_a_savepoint_are_kept(con: belvedere.Connection) -> None:
    con.execute("SAVEPOINT s")
    is_filled_by_commit(con, "CREATE INDEX ON old (b)")
    con.execute("ROLLBACK TO s")
    con.commit()
    assert con.execute("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (2,)]
    assert con.execute("SELECT name FROM belvedere.views").fetchall() == [("old",)]


def test_a_replaced_view_has_its_new_rows_and_its_indexes(con: belvedere.Connection) -> None:
    con.rollback()
    con.execute("CREATE UNIQUE INDEX by_b ON old (b)")
    con.commit()
    con.execute("INSERT INTO t VALUES (2, 2)")
    replaced = "MATERIALIZED VIEW old AS SELECT b, sum(a) AS s, max(a) AS m FROM t GROUP BY b"
    if not is_filled_by_commit(con, f"CREATE OR REPLACE {replaced}"):
        return
    con.execute("INSERT INTO t VALUES (5, 2)")
    assert con.execute("SELECT * FROM old ORDER BY b").fetchall() == [(1, 1, 1), (2, 7, 5)]
    con.execute("CREATE OR REPLACE MATERIALIZED VIEW old AS SELECT b, count(*) FROM t GROUP BY b")
    con.execute(f"CREATE OR REPLACE {replaced}")  # of one that the transaction has made
    con.commit()
    assert con.execute("SELECT * FROM old ORDER BY b").fetchall() == [(1, 1, 1), (2, 7, 5)]
    names = con.execute("SELECT name FROM belvedere.views ORDER BY name").fetchall()
    assert names == [("by_b",), ("old",)]
    verify_all(con)


def test_a_view_that_others_read_is_not_replaced(con: belvedere.Connection) -> None:
    con.rollback()
    con.execute("CREATE MATERIALIZED VIEW above AS SELECT n FROM old")
    con.commit()
    con.execute("INSERT INTO t VALUES (2, 2)")
    with pytest.raises(belvedere.Error) as caught:
        con.execute("CREATE OR REPLACE MATERIALIZED VIEW old AS SELECT b FROM t")
    assert caught.value.sqlstate == "2BP01"


def test_rows_of_a_view_that_are_not_unique_fail_the_index_or_the_commit(
    con: belvedere.Connection,
) -> None:
    con.execute("SAVEPOINT s")
    unique = "CREATE UNIQUE INDEX by_n ON old (n)"
    with pytest.raises(belvedere.Error) as caught:
        con.execute(unique)  # two groups of one row
    if caught.value.sqlstate == "0A000":
        return
    assert caught.value.sqlstate == "23505"
    con.execute("ROLLBACK TO s")
    con.execute("INSERT INTO t VALUES (3, 2)")
    con.execute(unique)
    con.execute("DELETE FROM t WHERE a = 3")
    with pytest.raises(belvedere.IntegrityError, match="by_n"):
        con.commit()
    assert con.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_a_view_of_the_transaction_is_verified(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE x (a int PRIMARY KEY, b int)")
    joined = "SELECT t.b, max(x.a) AS m FROM t LEFT JOIN x ON x.b = t.b GROUP BY t.b"
    if not is_filled_by_commit(con, f"CREATE MATERIALIZED VIEW v AS {joined}"):
        return
    con.execute("CREATE MATERIALIZED VIEW w WITH (maintenance = 'deferred') AS SELECT m FROM v")
    con.execute("CREATE UNIQUE INDEX ON v (b)")
    con.execute("REFRESH MATERIALIZED VIEW v")
    con.execute("INSERT INTO x VALUES (1, 1), (2, 2), (3, 2)")
    for verb in ("VERIFY", "REPAIR"):
        for name in ("v", "w", "v_b_idx"):
            (verified,) = con.execute(f"{verb} MATERIALIZED VIEW {name}").fetchall()
            assert (verified[0], *verified[2:]) == (name, 2, 0, 0, True)
    con.commit()
    verify_all(con)
    assert con.execute("SELECT b, m FROM v ORDER BY b").fetchall() == [(1, 1), (2, 3)]
