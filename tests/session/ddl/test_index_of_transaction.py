"""An index that a transaction creates serves it at once, beside PostgreSQL.

ON CONFLICT finds rows by it, what is not unique fails its statement, and reads by it see every
change.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere
from tests.oracle.postgres import Postgres
from tests.oracle.side_by_side import SideBySide

ROWS = 40
STATEMENTS = 60
TABLE = "CREATE TABLE t (id int PRIMARY KEY, email text, g int)"
FILL = f"INSERT INTO t SELECT i, 'e' || i, i % 5 FROM generate_series(1, {ROWS}) AS s(i)"
INDEXES = (
    "CREATE UNIQUE INDEX by_email ON t (email)",
    "CREATE UNIQUE INDEX by_expression ON t ((upper(email)))",
    "CREATE UNIQUE INDEX by_two ON t (g, email) WHERE g <> 3",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def both(postgres: Postgres, path: Path) -> Iterator[SideBySide]:
    with belvedere.connect(str(path), autocommit=True) as con:
        made = SideBySide(con, postgres)
        made.require_same(TABLE)
        made.require_same(FILL)
        yield made


def test_on_conflict_finds_rows_by_the_new_index(both: SideBySide) -> None:
    both.require_same("BEGIN")
    both.require_same("UPDATE t SET email = 'moved' WHERE id = 3")
    both.require_same("CREATE UNIQUE INDEX by_email ON t (email)")
    upsert = "INSERT INTO t VALUES (?, ?, 100) ON CONFLICT (email) DO UPDATE SET g = t.g + 100"
    for id_, email in ((90, "e1"), (91, "moved"), (92, "e3"), (93, "e3"), (94, "new")):
        both.require_same(upsert, (id_, email))
    both.require_same("INSERT INTO t VALUES (95, 'e5', 0) ON CONFLICT DO NOTHING")
    both.require_same("DELETE FROM t WHERE email = 'e7'")
    both.require_same(upsert, (96, "e7"))
    assert len(both.require_same("SELECT * FROM t WHERE g >= 100")) == 5
    both.require_same("COMMIT")
    both.require_same("SELECT * FROM t")
    both.require_same(upsert, (97, "e7"))
    both.require_same("SELECT * FROM t")


def test_what_is_not_unique_fails_its_statement(both: SideBySide) -> None:
    both.require_same("INSERT INTO t VALUES (50, 'e1', 0)")
    both.require_same("BEGIN")
    both.require_same("SAVEPOINT s")
    assert both.require_same("CREATE UNIQUE INDEX by_email ON t (email)") == "23505"
    both.require_same("ROLLBACK TO s")
    both.require_same("DELETE FROM t WHERE id = 50")
    both.require_same("CREATE UNIQUE INDEX by_email ON t (email)")
    for wrong in (
        "INSERT INTO t VALUES (51, 'e2', 0)",
        "INSERT INTO t VALUES (51, 'same', 0), (52, 'same', 0)",
        "UPDATE t SET email = 'e2' WHERE id = 3",
        "UPDATE t SET email = 'all'",
    ):
        both.require_same("SAVEPOINT s")
        assert both.require_same(wrong) == "23505", wrong
        both.require_same("ROLLBACK TO s")
    both.require_same("CREATE TABLE c (email text REFERENCES t (email))")
    both.require_same("INSERT INTO c VALUES ('e2')")
    assert both.require_same("INSERT INTO c VALUES ('nobody')") == "23503"
    both.require_same("ROLLBACK")
    both.require_same("INSERT INTO t VALUES (51, 'e2', 0)")


def test_reads_by_the_new_index_see_every_change(both: SideBySide) -> None:
    both.require_same("BEGIN")
    both.require_same("INSERT INTO t VALUES (60, 'e60', 9), (61, 'e61', 9)")
    both.require_same("CREATE INDEX by_g ON t (g, id)")
    for change in (
        "UPDATE t SET g = 9 WHERE id = 5",
        "DELETE FROM t WHERE id = 60",
        "INSERT INTO t VALUES (62, NULL, 9)",
    ):
        both.require_same(change)
        both.require_same("SELECT id, email FROM t WHERE g = 9")
        both.require_same("SELECT id FROM t WHERE g > 3 ORDER BY g DESC, id DESC LIMIT 3")
        both.require_same("SELECT id FROM t WHERE g >= 2 ORDER BY g, id LIMIT 4")
    assert "by_g" in str(both.con.execute("EXPLAIN SELECT id FROM t WHERE g = 9").fetchall())


def test_the_new_index_shows_what_others_commit(both: SideBySide, path: Path) -> None:
    upsert = "INSERT INTO t VALUES (70, 'theirs', 1) ON CONFLICT (email) DO NOTHING"
    both.require_same("BEGIN")
    both.require_same("CREATE UNIQUE INDEX by_email ON t (email)")
    assert both.con.execute("SELECT id FROM t WHERE email = 'theirs'").fetchall() == []
    with belvedere.connect(str(path), autocommit=True) as other:
        other.execute("INSERT INTO t VALUES (80, 'theirs', 7)")
        other.execute("DELETE FROM t WHERE email = 'e4'")
    assert both.con.execute("SELECT id FROM t WHERE email = 'theirs'").fetchall() == [(80,)]
    assert both.con.execute(upsert).rowcount == 0
    assert both.con.execute("SELECT id FROM t WHERE email = 'e4'").fetchall() == []
    both.require_same("COMMIT")


def test_a_read_by_the_new_index_counts_for_serializable(both: SideBySide, path: Path) -> None:
    con = both.con
    con.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
    con.execute("CREATE INDEX by_email ON t (email)")
    assert con.execute("SELECT id FROM t WHERE email = 'later'").fetchall() == []
    with belvedere.connect(str(path), autocommit=True) as other:
        other.execute("INSERT INTO t VALUES (80, 'later', 7)")
    with pytest.raises(belvedere.OperationalError) as caught:
        con.execute("COMMIT")
    assert caught.value.sqlstate == "40001"


def make_statement(rng: random.Random) -> str:
    id_, email, g = rng.randint(1, ROWS + 20), f"e{rng.randint(1, ROWS + 20)}", rng.randint(0, 5)
    target = rng.choice(
        ("", "(id)", "(email)", "((upper(email)))", "(g, email) WHERE g <> 3", "(g, email)")
    )
    does = "DO NOTHING" if not target or rng.random() < 0.5 else f"DO UPDATE SET g = {g}"
    return rng.choice(
        (
            f"INSERT INTO t VALUES ({id_}, '{email}', {g}) ON CONFLICT {target} {does}",
            f"INSERT INTO t VALUES ({id_}, '{email}', {g}) ON CONFLICT {target} {does}",
            f"INSERT INTO t VALUES ({id_}, '{email}', {g})",
            f"UPDATE t SET email = '{email}' WHERE id = {id_}",
            f"UPDATE t SET g = {g} WHERE email = '{email}'",
            f"DELETE FROM t WHERE email = '{email}'",
            f"SELECT * FROM t WHERE email = '{email}'",
            f"SELECT * FROM t WHERE upper(email) = '{email.upper()}'",
            rng.choice(INDEXES),
            "DROP INDEX IF EXISTS by_email",
        )
    )


@pytest.mark.parametrize("number", range(6))
def test_random_transactions_are_those_of_postgresql(
    both: SideBySide, number: int, seed: int
) -> None:
    rng = random.Random(seed * 1_000 + number)
    both.require_same("BEGIN")
    for _ in range(STATEMENTS):
        both.require_same("SAVEPOINT s")
        if isinstance(both.require_same(make_statement(rng)), str):
            both.require_same("ROLLBACK TO s")
    both.require_same("SELECT * FROM t")
    both.require_same("COMMIT")
    both.require_same("SELECT * FROM t")
