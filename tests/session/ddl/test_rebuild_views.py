"""ALTER TABLE that writes every row of a table under materialized views."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere

MADE = (
    "CREATE TABLE c (id INT PRIMARY KEY, name TEXT)",
    "CREATE TABLE t (id INT PRIMARY KEY, c INT REFERENCES c, a INT, free INT)",
    "INSERT INTO c VALUES (1, 'one'), (2, 'two')",
    "INSERT INTO t SELECT i, i % 2 + 1, i % 7, i FROM generate_series(1, 30) i",
    "CREATE INDEX by_free ON t (free)",
    "CREATE MATERIALIZED VIEW sums AS SELECT a, count(*) AS n, max(c) AS m FROM t GROUP BY a",
    "CREATE UNIQUE INDEX sums_a ON sums (a)",
    "CREATE MATERIALIZED VIEW above AS SELECT n, count(*) AS k FROM sums GROUP BY n",
    "CREATE MATERIALIZED VIEW joined WITH (maintenance = 'deferred') AS"
    " SELECT t.id, c.name FROM t JOIN c ON c.id = t.c",
    "CREATE VIEW plain AS SELECT * FROM sums",
)
VIEWS = ("sums", "sums_a", "above", "joined")


@pytest.fixture
def con(tmp_path: Path) -> Iterator[belvedere.Connection]:
    with belvedere.connect(str(tmp_path / "store"), autocommit=True) as found:
        for statement in MADE:
            found.execute(statement)
        yield found


def rows(con: belvedere.Connection, query: str) -> list[tuple[object, ...]]:
    return sorted(con.execute(query).fetchall(), key=repr)


def show_views(con: belvedere.Connection) -> dict[str, list[tuple[object, ...]]]:
    return {name: rows(con, f"SELECT * FROM {name}") for name in (*VIEWS, "plain")}


def require_right(con: belvedere.Connection) -> None:
    for name in VIEWS:
        con.execute(f"REFRESH MATERIALIZED VIEW {name}")
        (verified,) = con.execute(f"VERIFY MATERIALIZED VIEW {name}").fetchall()
        assert verified[-1] is True


@pytest.mark.parametrize(
    "action",
    [
        "ALTER COLUMN free TYPE BIGINT",
        "ALTER COLUMN free TYPE TEXT USING free || '!'",
        "DROP CONSTRAINT t_pkey",
    ],
)
def test_views_stay_what_they_are(con: belvedere.Connection, action: str) -> None:
    before = show_views(con)
    con.execute(f"ALTER TABLE t {action}")
    assert show_views(con) == before
    require_right(con)
    con.execute("INSERT INTO t VALUES (100, 1, 3, '7')")
    con.execute("UPDATE t SET a = a + 1 WHERE id < 5")
    con.execute("UPDATE c SET name = 'new' WHERE id = 1")
    require_right(con)
    assert rows(con, "SELECT id FROM t WHERE free = '7' AND id > 50") == [(100,)]
    with pytest.raises(belvedere.IntegrityError):
        con.execute("INSERT INTO t VALUES (101, 9, 3, '7')")


def test_a_column_that_a_view_reads_keeps_its_type(con: belvedere.Connection) -> None:
    con.execute("DROP VIEW plain")
    for column, reader in (("a", "view sums"), ("c", "view sums"), ("id", "view joined")):
        with pytest.raises(belvedere.NotSupportedError) as refused:
            con.execute(f"ALTER TABLE t ALTER COLUMN {column} TYPE BIGINT")
        assert f"column={column}, readers={reader}" in str(refused.value)
    require_right(con)


def test_rollback_leaves_table_and_views(con: belvedere.Connection) -> None:
    before = show_views(con)
    con.execute("BEGIN")
    con.execute("DELETE FROM t WHERE id < 9")
    con.execute("ALTER TABLE t ALTER COLUMN free TYPE TEXT")
    con.execute("INSERT INTO t VALUES (100, 1, 3, 'text')")
    assert rows(con, "SELECT sum(n) FROM sums") == [(23,)]
    con.execute("ROLLBACK")
    assert show_views(con) == before
    require_right(con)


def test_what_would_be_lost_is_refused(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE x (id INT PRIMARY KEY, later INT)")
    con.execute("CREATE MATERIALIZED VIEW met AS SELECT name FROM c NATURAL JOIN x")
    con.execute("ALTER TABLE c ADD COLUMN later INT, ADD COLUMN free INT")
    with pytest.raises(belvedere.NotSupportedError, match=r"view=met\)\n.*added later"):
        con.execute("ALTER TABLE c ALTER COLUMN free TYPE BIGINT")
    con.execute("DROP MATERIALIZED VIEW met")
    con.execute("CREATE MATERIALIZED VIEW kept WITH (keep_changes = '9') AS SELECT id FROM c")
    with pytest.raises(belvedere.NotSupportedError, match=r"view=kept\)\n.*keeps its changes"):
        con.execute("ALTER TABLE c ALTER COLUMN free TYPE BIGINT")
    con.execute("DROP MATERIALIZED VIEW kept")
    con.execute("ALTER TABLE c ALTER COLUMN free TYPE BIGINT")
    require_right(con)
