"""CREATE MATERIALIZED VIEW and CREATE INDEX inside of a transaction, beside its other changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere

ROWS = (
    "CREATE TABLE c (id INT PRIMARY KEY, name TEXT)",
    "CREATE TABLE t (id INT PRIMARY KEY, c INT, a INT)",
    "INSERT INTO c VALUES (1, 'one'), (2, 'two')",
    "INSERT INTO t SELECT i, i % 2 + 1, i % 7 FROM generate_series(1, 50) i",
)
DEFINITIONS = (
    "SELECT a, count(*) AS n, sum(id) AS s FROM t GROUP BY a",
    "SELECT c.name, max(t.a) AS m FROM t JOIN c ON c.id = t.c GROUP BY c.name",
    "SELECT t.id, c.name FROM c LEFT JOIN t ON t.c = c.id AND t.a = 3",
    "SELECT id, row_number() OVER (PARTITION BY c ORDER BY a, id) AS r FROM t",
    "SELECT DISTINCT a FROM t ORDER BY a LIMIT 3",
)


def run(con: belvedere.Connection, *statements: str) -> None:
    for statement in statements:
        con.execute(statement)


def rows(con: belvedere.Connection, query: str) -> list[tuple[object, ...]]:
    return sorted(con.execute(query).fetchall(), key=repr)


@pytest.fixture
def con(tmp_path: Path) -> Iterator[belvedere.Connection]:
    with belvedere.connect(str(tmp_path / "store"), autocommit=True) as found:
        run(found, *ROWS)
        yield found


@pytest.fixture
def other(con: belvedere.Connection, tmp_path: Path) -> Iterator[belvedere.Connection]:
    with belvedere.connect(str(tmp_path / "store"), autocommit=True) as found:
        yield found


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_views_begin_with_the_changes_of_their_transaction(
    con: belvedere.Connection, maintenance: str
) -> None:
    run(con, "BEGIN", "DELETE FROM t WHERE id = 7", "UPDATE t SET a = a + 1 WHERE id < 9")
    for number, text in enumerate(DEFINITIONS):
        con.execute(
            f"CREATE MATERIALIZED VIEW v{number} WITH (maintenance = '{maintenance}') AS {text}"
        )
        assert rows(con, f"SELECT * FROM v{number}") == rows(con, text)
    run(con, "INSERT INTO c VALUES (3, 'three')", "INSERT INTO t VALUES (60, 3, 3)")
    for number, text in enumerate(DEFINITIONS):
        assert rows(con, f"SELECT * FROM v{number}") == rows(con, text)
    con.execute("COMMIT")
    run(con, "UPDATE t SET a = a * 2 WHERE id > 40", "UPDATE c SET name = 'x' WHERE id = 1")
    for number, text in enumerate(DEFINITIONS):
        assert rows(con, f"SELECT * FROM v{number}") == rows(con, text), text
        con.execute(f"REFRESH MATERIALIZED VIEW v{number}")
        (verified,) = con.execute(f"VERIFY MATERIALIZED VIEW v{number}").fetchall()
        assert verified[-1] is True
    assert rows(con, "SELECT DISTINCT state FROM belvedere.views") == [("ready",)]


def test_a_migration_is_one_transaction(tmp_path: Path) -> None:
    with belvedere.connect(str(tmp_path / "store"), autocommit=True) as con:
        run(con, "BEGIN", *ROWS)
        run(
            con,
            "ALTER TABLE t ADD COLUMN twice INT GENERATED ALWAYS AS (a * 2) STORED",
            "CREATE INDEX by_twice ON t (twice)",
            "CREATE UNIQUE INDEX by_name ON c (name)",
            "CREATE MATERIALIZED VIEW sums AS SELECT twice, count(*) AS n FROM t GROUP BY twice",
            "CREATE MATERIALIZED VIEW above AS SELECT n, count(*) AS m FROM sums GROUP BY n",
            "INSERT INTO t VALUES (51, 1, 100)",
            "COMMIT",
        )
    with belvedere.connect(str(tmp_path / "store"), autocommit=True) as con:
        assert rows(con, "SELECT id FROM t WHERE twice = 200") == [(51,)]
        assert rows(con, "SELECT n FROM sums WHERE twice = 200") == [(1,)]
        assert sum(m for (m,) in rows(con, "SELECT m FROM above")) == 8  # type: ignore[misc]
        with pytest.raises(belvedere.IntegrityError):
            con.execute("INSERT INTO c VALUES (9, 'two')")


def test_an_index_holds_what_others_wrote_meanwhile(
    con: belvedere.Connection, other: belvedere.Connection
) -> None:
    run(con, "BEGIN", "UPDATE t SET a = 90 WHERE id = 1", "CREATE INDEX by_a ON t (a)")
    run(other, "INSERT INTO t VALUES (70, 1, 90)", "DELETE FROM t WHERE id = 2")
    con.execute("COMMIT")
    assert "by_a" in str(con.execute("EXPLAIN SELECT id FROM t WHERE a = 90").fetchall())
    assert rows(con, "SELECT id FROM t WHERE a = 90") == [(1,), (70,)]
    by_scan = rows(con, "SELECT id FROM t WHERE a + 0 = 2")
    assert rows(con, "SELECT id FROM t WHERE a = 2") == by_scan


def test_a_value_that_is_not_unique_fails_its_statement(con: belvedere.Connection) -> None:
    run(con, "BEGIN", "INSERT INTO c VALUES (3, 'two')")
    with pytest.raises(belvedere.IntegrityError, match=r"key \(name\) = \(two\)"):
        con.execute("CREATE UNIQUE INDEX by_name ON c (name)")
    con.execute("ROLLBACK")
    run(con, "BEGIN", "UPDATE c SET name = 'two' WHERE id = 1")
    run(con, "UPDATE c SET name = 'one' WHERE id = 2", "CREATE UNIQUE INDEX by_name ON c (name)")
    con.execute("COMMIT")
    assert rows(con, "SELECT id FROM c WHERE name = 'one'") == [(2,)]


def test_a_value_that_another_wrote_fails_the_commit(
    con: belvedere.Connection, other: belvedere.Connection
) -> None:
    run(con, "BEGIN", "INSERT INTO c VALUES (3, 'three')")
    con.execute("CREATE UNIQUE INDEX by_name ON c (name)")
    other.execute("INSERT INTO c VALUES (4, 'three')")
    with pytest.raises(belvedere.IntegrityError):
        con.execute("COMMIT")
    assert rows(con, "SELECT id FROM c WHERE name = 'three'") == [(4,)]
    con.execute("CREATE UNIQUE INDEX by_name ON c (name)")


def test_rollback_leaves_nothing(con: belvedere.Connection) -> None:
    run(con, "BEGIN", "CREATE INDEX by_a ON t (a)", "SAVEPOINT s")
    run(con, "CREATE MATERIALIZED VIEW v AS SELECT a FROM t", "ROLLBACK TO s")
    with pytest.raises(belvedere.ProgrammingError, match="does not exist"):
        con.execute("SELECT * FROM v")
    con.execute("ROLLBACK")
    run(con, "CREATE INDEX by_a ON t (a)", "CREATE MATERIALIZED VIEW v AS SELECT a FROM t")


def test_a_view_that_cannot_be_computed_fails_its_statement(con: belvedere.Connection) -> None:
    con.execute("BEGIN")
    with pytest.raises(belvedere.DataError):
        con.execute("CREATE MATERIALIZED VIEW v AS SELECT 10 / a AS q FROM t")
    run(con, "ROLLBACK", "BEGIN", "DELETE FROM t WHERE a = 0")
    con.execute("CREATE MATERIALIZED VIEW v AS SELECT 10 / a AS q FROM t")
    con.execute("COMMIT")
    assert rows(con, "VERIFY MATERIALIZED VIEW v")[0][-1] is True


def test_other_views_do_not_read_the_new_index_too_early(con: belvedere.Connection) -> None:
    run(con, "CREATE INDEX first ON t (c)")
    con.execute("CREATE MATERIALIZED VIEW v AS SELECT c.name FROM c JOIN t ON t.c = c.id")
    run(con, "DROP INDEX first")  # the view finds its rows by scans from now on
    run(con, "BEGIN", "CREATE INDEX by_c ON t (c)", "UPDATE c SET name = 'new' WHERE id = 1")
    con.execute("COMMIT")
    assert rows(con, "VERIFY MATERIALIZED VIEW v")[0][-1] is True


def test_a_generated_column_may_be_unique(con: belvedere.Connection) -> None:
    con.execute("ALTER TABLE t ADD COLUMN k INT GENERATED ALWAYS AS (id * 2) STORED UNIQUE")
    assert rows(con, "SELECT id FROM t WHERE k = 14") == [(7,)]
    with pytest.raises(belvedere.IntegrityError):
        con.execute("ALTER TABLE t ADD COLUMN l INT GENERATED ALWAYS AS (a) STORED UNIQUE")
    con.execute("ALTER TABLE t ADD COLUMN m SERIAL UNIQUE")
    assert rows(con, "SELECT count(*) FROM t WHERE m BETWEEN 1 AND 50") == [(50,)]


def test_a_row_atomic_store_refuses_it() -> None:
    with belvedere.connect(":memory:", autocommit=True) as found:
        run(found, *ROWS)
        found.execute("BEGIN")
        found.execute("INSERT INTO c VALUES (3, 'three')")
        if not found.session.host.row_atomic:
            found.execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
            return
        with pytest.raises(belvedere.NotSupportedError, match="row-atomic"):
            found.execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM t")


def test_a_view_is_replaced_or_dropped_and_created_again(con: belvedere.Connection) -> None:
    changed = "MATERIALIZED VIEW v AS SELECT a, sum(id) AS s FROM t GROUP BY a"
    run(con, "CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
    for statements in (
        [f"CREATE OR REPLACE {changed}"],
        ["DROP MATERIALIZED VIEW v", f"CREATE {changed}"],
    ):
        run(con, "BEGIN", "INSERT INTO t VALUES (60, 1, 9)", *statements)
        assert rows(con, "SELECT * FROM v WHERE a = 9") == [(9, 60)]
        con.execute("COMMIT")
        assert rows(con, "SELECT * FROM v") == rows(con, "SELECT a, sum(id) FROM t GROUP BY a")
        assert con.execute("VERIFY MATERIALIZED VIEW v").fetchone()[-1] is True
        con.execute("DELETE FROM t WHERE id = 60")
