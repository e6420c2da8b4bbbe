"""CREATE of what is filled takes nothing from a transaction that began without BEGIN."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere

MADE = {
    "index": "CREATE INDEX i ON t (b)",
    "index of a view": "CREATE INDEX ON old (b)",
    "view": "CREATE MATERIALIZED VIEW v AS SELECT b, sum(a) AS s FROM t GROUP BY b",
    "another view": "CREATE OR REPLACE MATERIALIZED VIEW old AS SELECT b FROM t",
}
HELD = {
    "a row lock": ("SELECT * FROM t FOR UPDATE", "SELECT * FROM t FOR UPDATE NOWAIT", "55P03"),
    "a table lock": ("LOCK TABLE t", "LOCK TABLE t NOWAIT", "55P03"),
}


@pytest.fixture
def pair() -> Iterator[tuple[belvedere.Connection, belvedere.Connection]]:
    name = ":memory:created_without_autocommit"
    with belvedere.connect(name) as one, belvedere.connect(name) as two:
        one.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
        one.execute("INSERT INTO t VALUES (1, 1)")
        one.commit()
        one.execute("CREATE MATERIALIZED VIEW old AS SELECT b, count(*) AS n FROM t GROUP BY b")
        one.commit()
        yield one, two


def create(con: belvedere.Connection, statement: str) -> bool:
    """Whether it was made in the transaction; a row-atomic store refuses that by name."""
    try:
        con.execute(statement)
    except belvedere.NotSupportedError as error:
        if "row-atomic store" not in str(error):
            raise
        return False
    return True


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("held", HELD)
def test_locks_are_held_to_the_end_of_the_transaction(
    pair: tuple[belvedere.Connection, belvedere.Connection], made: str, held: str
) -> None:
    one, two = pair
    take, ask, refused = HELD[held]
    one.execute(take)
    if not create(one, MADE[made]):
        return
    with pytest.raises(belvedere.OperationalError) as raised:
        two.execute(ask)
    assert raised.value.sqlstate == refused
    two.rollback()
    one.rollback()
    two.execute(ask)
    assert one.execute("SELECT name FROM belvedere.views").fetchall() == [("old",)]
    assert one.execute("SELECT n FROM old").fetchall() == [(1,)]


@pytest.mark.parametrize("made", MADE)
def test_savepoints_cursors_and_settings_stay(
    pair: tuple[belvedere.Connection, belvedere.Connection], made: str
) -> None:
    for before, after in (
        (("SAVEPOINT s",), "ROLLBACK TO s"),
        (("DECLARE c CURSOR FOR SELECT 7",), "FETCH c"),
        (("SET LOCAL lock_timeout = '3s'",), "SHOW lock_timeout"),
        (("SET TRANSACTION READ ONLY", "SET TRANSACTION READ WRITE", "SAVEPOINT s"), "RELEASE s"),
    ):
        for statement in before:
            pair[0].execute(statement)
        if create(pair[0], MADE[made]):
            done = pair[0].execute(after)
            shown = done.fetchone() if done.description else None
            assert shown in (None, (7,), ("3s",))
        pair[0].rollback()
        assert pair[0].execute("SELECT name FROM belvedere.views").fetchall() == [("old",)]
        pair[0].rollback()


@pytest.mark.parametrize("made", MADE)
def test_a_snapshot_stays(
    pair: tuple[belvedere.Connection, belvedere.Connection], made: str
) -> None:
    one, two = pair
    one.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    assert one.execute("SELECT count(*) FROM t").fetchone() == (1,)
    two.execute("INSERT INTO t VALUES (2, 2)")
    two.commit()
    if create(one, MADE[made]):
        assert one.execute("SELECT count(*) FROM t").fetchone() == (1,)


@pytest.mark.parametrize("made", MADE)
def test_a_transaction_that_has_only_read_gives_way_and_its_settings_stay(
    pair: tuple[belvedere.Connection, belvedere.Connection], made: str
) -> None:
    one, _ = pair
    one.execute("SELECT count(*) FROM t")
    one.execute("SET tier = 'duckdb'")
    one.execute(MADE[made])
    one.rollback()
    assert one.execute("SHOW tier").fetchone() == ("duckdb",)
    one.execute("INSERT INTO t VALUES (2, 2)")
    one.commit()
    for (name,) in one.execute("SELECT name FROM belvedere.views").fetchall():
        assert one.execute(f'VERIFY MATERIALIZED VIEW "{name}"').fetchall()[0][-1] is True
