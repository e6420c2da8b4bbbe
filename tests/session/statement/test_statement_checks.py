"""What a statement can break is checked at its end, and nothing else; the commit checks it again.

Foreign keys whose columns begin the primary key of their table have no index: the table is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere

SCHEMA = """
CREATE TABLE w (w int PRIMARY KEY, name text, ytd bigint NOT NULL);
CREATE TABLE d (w int NOT NULL REFERENCES w, d int NOT NULL, next int NOT NULL, code int UNIQUE,
    PRIMARY KEY (w, d));
CREATE TABLE o (w int NOT NULL, d int NOT NULL, o int NOT NULL, carrier int, other int REFERENCES w,
    PRIMARY KEY (w, d, o), FOREIGN KEY (d, w) REFERENCES d (d, w));
CREATE TABLE l (w int, d int, o int, n int, amount bigint, PRIMARY KEY (w, d, o, n),
    FOREIGN KEY (w, d, o) REFERENCES o ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO w VALUES (1, 'a', 0), (2, 'b', 0);
INSERT INTO d VALUES (1, 1, 1, 11), (1, 2, 1, 12), (2, 1, 1, 21);
INSERT INTO o VALUES (1, 1, 1, NULL, 1), (1, 1, 2, NULL, NULL), (1, 2, 1, NULL, 2);
INSERT INTO l VALUES (1, 1, 1, 1, 10), (1, 1, 1, 2, 20), (1, 1, 2, 1, 30);
"""


@pytest.fixture(params=["memory", "disk"])
def con(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[belvedere.Connection]:
    path = ":memory:" if request.param == "memory" else str(tmp_path / "store")
    with belvedere.connect(path, autocommit=True) as opened:
        opened.execute(SCHEMA)
        yield opened


def list_indexes(con: belvedere.Connection) -> set[str]:
    session = con.session
    tables = [session.catalog.find_relation(name) for name in "wdol"]
    return {i.name for table in tables if table for i in session.catalog.table_indexes(table.id)}


def run_cached(con: belvedere.Connection, sql: str, parameters: tuple[object, ...]) -> str:
    """The error of a statement from the plan cache, at its own end, in a transaction."""
    con.execute("BEGIN")
    try:
        con.execute(sql, parameters)
    except belvedere.DatabaseError as error:
        return error.sqlstate or ""
    finally:
        con.execute("ROLLBACK")
    return ""


def test_keys_that_begin_the_primary_key_have_no_index(con: belvedere.Connection) -> None:
    assert list_indexes(con) == {"d_code_key", "o_other_children"}


@pytest.mark.parametrize(
    ("sql", "parameters", "error"),
    [
        ("INSERT INTO d VALUES (?, ?, ?, ?)", (3, 1, 1, None), "23503"),
        ("INSERT INTO d VALUES (?, ?, ?, ?)", (2, 2, 1, 11), "23505"),
        ("INSERT INTO o VALUES (?, ?, ?, ?, ?)", (1, 9, 9, 1, None), "23503"),
        ("INSERT INTO o VALUES (?, ?, ?, ?, ?)", (1, 1, 9, 1, 7), "23503"),
        ("INSERT INTO o VALUES (?, ?, ?, ?, ?)", (1, 1, 9, 1, None), ""),
        ("INSERT INTO o VALUES (?, ?, ?, ?, ?)", (1, 1, 1, 1, None), "23505"),
        ("INSERT INTO o VALUES (?, ?, ?, ?, ?)", (1, 1, None, 1, None), "23502"),
        ("UPDATE o SET other = ? WHERE w = ? AND d = ? AND o = ?", (9, 1, 1, 1), "23503"),
        ("UPDATE o SET other = ? WHERE w = ? AND d = ? AND o = ?", (2, 1, 1, 1), ""),
        ("UPDATE o SET other = ? WHERE w = ? AND d = ?", (9, 1, 1), "23503"),
        ("UPDATE o SET carrier = ? WHERE w = ? AND d = ?", (9, 1, 1), ""),
        ("UPDATE d SET code = ? WHERE w = ? AND d = ?", (12, 1, 1), "23505"),
        ("UPDATE d SET next = ? WHERE w = ? AND d = ?", (None, 1, 1), "23502"),
        ("UPDATE d SET next = next + ? WHERE w = ? AND d = ?", (2**31 - 1, 1, 1), "22003"),
        ("UPDATE d SET d = ? WHERE w = ? AND d = ?", (5, 1, 1), "23503"),
        ("DELETE FROM d WHERE w = ? AND d = ?", (1, 1), "23503"),
        ("DELETE FROM d WHERE w = ? AND d = ?", (2, 1), ""),
        ("DELETE FROM d WHERE w = ?", (1,), "23503"),
        ("DELETE FROM w WHERE w = ?", (2,), "23503"),
        ("DELETE FROM l WHERE w = ? AND d = ? AND o = ? AND n = ?", (1, 1, 1, 1), ""),
    ],
)
def test_a_statement_in_a_transaction_is_checked_at_its_end(
    con: belvedere.Connection, sql: str, parameters: tuple[object, ...], error: str
) -> None:
    for _ in range(2):  # planned, then from the cache
        assert run_cached(con, sql, parameters) == error


def test_cascades_find_children_by_the_primary_key(con: belvedere.Connection) -> None:
    con.execute("DELETE FROM o WHERE w = 1 AND d = 1 AND o = 1")
    assert con.execute("SELECT n, amount FROM l").fetchall() == [(1, 30)]
    con.execute("UPDATE o SET o = 7 WHERE w = 1 AND d = 1 AND o = 2")
    assert con.execute("SELECT w, d, o, n FROM l").fetchall() == [(1, 1, 7, 1)]


def test_a_parent_inserted_by_the_transaction_is_found(con: belvedere.Connection) -> None:
    con.execute("BEGIN")
    con.execute("INSERT INTO o VALUES (?, ?, ?, ?, ?)", (1, 2, 50, None, None))
    for number in range(3):
        con.execute("INSERT INTO l VALUES (?, ?, ?, ?, ?)", (1, 2, 50, number, number))
    con.execute("COMMIT")
    assert con.execute("SELECT count(*) FROM l WHERE o = 50").fetchone() == (3,)


def test_a_parent_that_another_transaction_removes_is_missed_at_commit(tmp_path: Path) -> None:
    """The guards of two tables with different roots: each commit looks at the newest state."""
    path = str(tmp_path / "store")
    with belvedere.connect(path, autocommit=True) as one, belvedere.connect(path) as two:
        one.execute(SCHEMA)
        one.execute("INSERT INTO w VALUES (5, 'e', 0)")
        two.execute("UPDATE o SET other = ? WHERE w = ? AND d = ? AND o = ?", (5, 1, 1, 1))
        one.execute("DELETE FROM w WHERE w = 5")
        with pytest.raises(belvedere.DatabaseError) as failed:
            two.commit()
        assert failed.value.sqlstate == "23503"


def test_another_primary_key_gets_the_index_that_the_old_one_was(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE c (w int NOT NULL REFERENCES w, n int NOT NULL, PRIMARY KEY (w, n))")
    con.execute("INSERT INTO c VALUES (2, 1)")
    con.execute("ALTER TABLE c DROP CONSTRAINT c_pkey")
    table = con.session.catalog.find_relation("c")
    assert table is not None
    names = [index.name for index in con.session.catalog.table_indexes(table.id)]
    assert names == ["c_w_children"]
    con.execute("DELETE FROM d WHERE w = 2")
    con.execute("UPDATE o SET other = NULL")
    with pytest.raises(belvedere.DatabaseError) as failed:
        con.execute("DELETE FROM w WHERE w = 2")
    assert failed.value.sqlstate == "23503"
    con.execute("DELETE FROM c")
    con.execute("DELETE FROM w WHERE w = 2")
