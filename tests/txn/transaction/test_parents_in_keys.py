"""Foreign keys whose columns are part of the row's key: the parent's key is cut out of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import belvedere
from belvedere.database import Database
from belvedere.txn.transaction import foreign_keys
from belvedere.txn.transaction.root_keys import KeyInKey, find_parent_in_key

TABLES = """
CREATE TABLE up (a int, b int, PRIMARY KEY (a, b));
CREATE TABLE one (n bigint PRIMARY KEY);
CREATE TABLE word (w text PRIMARY KEY);
CREATE TABLE down (
    n smallint, a int, b bigint, c int,
    PRIMARY KEY (n, a, b), FOREIGN KEY (a, b) REFERENCES up, FOREIGN KEY (n) REFERENCES one);
CREATE TABLE crossed (a int, b int, PRIMARY KEY (a, b), FOREIGN KEY (b, a) REFERENCES up (a, b));
CREATE TABLE split (
    a int, n int, b int, PRIMARY KEY (a, n, b), FOREIGN KEY (a, b) REFERENCES up);
CREATE TABLE spoken (w text, a int, b int,
    PRIMARY KEY (w, a, b), FOREIGN KEY (w) REFERENCES word, FOREIGN KEY (a, b) REFERENCES up);
CREATE TABLE tree (id int PRIMARY KEY REFERENCES tree, up int);
"""


@pytest.fixture
def con() -> belvedere.Connection:
    opened = belvedere.connect(":memory:", autocommit=True)
    opened.execute(TABLES)
    return opened


def list_places(con: belvedere.Connection, table: str) -> list[tuple[int, int] | None]:
    """Where each foreign key of a table is in its key, in parts of the key."""
    host = con.session.host  # type: ignore[union-attr]
    assert isinstance(host, Database)
    catalog = host.catalog
    [found] = [one for one in catalog.tables if one.name == table]
    places = [find_parent_in_key(catalog, found.id, key) for key in found.foreign_keys]
    return [place and ((place.start - 5) // 8, (place.end - 5) // 8) for place in places]


def test_a_parent_is_found_where_its_columns_stand_together(con: belvedere.Connection) -> None:
    assert list_places(con, "down") == [(1, 3), (0, 1)]
    assert list_places(con, "tree") == [(0, 1)]
    for other in ("crossed", "split"):
        assert list_places(con, other) == [None], "its columns stand in another order, or apart"
    assert list_places(con, "spoken") == [None, None], "a text may be longer than another"


def draw_statement(rng: random.Random) -> str:
    n, a, b = (rng.randint(1, 3) for _ in range(3))
    key = f"n = {n} AND a = {a} AND b = {b}"
    return rng.choice(
        [
            f"INSERT INTO up VALUES ({a}, {b}) ON CONFLICT DO NOTHING",
            f"INSERT INTO one VALUES ({n}) ON CONFLICT DO NOTHING",
            f"INSERT INTO down VALUES ({n}, {a}, {b}, 0)",
            f"INSERT INTO down SELECT {n}, u.a, u.b, 1 FROM up u WHERE u.a = {a}",
            f"UPDATE down SET c = c + 1 WHERE {key}",
            f"UPDATE down SET b = {rng.randint(1, 3)} WHERE {key}",
            f"UPDATE up SET b = {rng.randint(1, 3)} WHERE a = {a} AND b = {b}",
            f"DELETE FROM down WHERE {key}",
            f"DELETE FROM up WHERE a = {a} AND b = {b}",
            f"DELETE FROM one WHERE n = {n}",
        ]
    )


def run_history(statements: list[list[str]]) -> list[object]:
    """What each statement and each commit says, and the tables at the end."""
    said: list[object] = []
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute(TABLES)
        for together in statements:
            con.execute("BEGIN")
            for text in together:
                try:
                    said.append(con.execute(text).rowcount)
                except belvedere.DatabaseError as error:
                    said.append((error.sqlstate, error.detail))
            con.execute("COMMIT")
        said += [con.execute(f"TABLE {name}").fetchall() for name in ("up", "one", "down")]
    return said


def find_nothing(*_: object) -> KeyInKey | None:
    return None


def test_parents_in_keys_are_checked_as_parents_by_values(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    drawn = [[draw_statement(rng) for _ in range(rng.randint(1, 4))] for _ in range(150)]
    said = run_history(drawn)
    monkeypatch.setattr(foreign_keys, "find_parent_in_key", find_nothing)
    assert said == run_history(drawn)
    refused = [one for one in said if isinstance(one, tuple) and one[0] == "23503"]
    assert len(refused) > 20, "the history reaches what it is about"


def test_a_parent_that_was_taken_away_since_the_snapshot_is_missed(tmp_path: Path) -> None:
    path = str(tmp_path / "store")
    with (
        belvedere.connect(path, autocommit=True) as con,
        belvedere.connect(path, autocommit=True) as other,
    ):
        con.execute(TABLES + "INSERT INTO up VALUES (1, 1); INSERT INTO one VALUES (1)")
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        assert other.execute("SELECT count(*) FROM up").fetchall() == [(1,)]
        con.execute("DELETE FROM up")
        other.execute("INSERT INTO down VALUES (1, 1, 1, 0)")
        with pytest.raises(belvedere.DatabaseError) as failed:
            other.execute("COMMIT")
        assert failed.value.sqlstate in ("23503", "40001")
        assert con.execute("TABLE down").fetchall() == []
