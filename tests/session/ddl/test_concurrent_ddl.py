"""DDL beside open transactions: what changes nothing writes nothing, what only creates goes
together, and a column that is only added lets open writers commit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere
from belvedere.interfaces.client.connection import Connection

SETUP = """
    CREATE TABLE t (id int PRIMARY KEY, x int);
    CREATE INDEX i ON t (x);
    CREATE SEQUENCE s;
    CREATE MATERIALIZED VIEW v AS SELECT x, count(*) AS n FROM t GROUP BY x;
    CREATE VIEW w AS SELECT id FROM t;
    CREATE ROLE r;
    GRANT SELECT ON t TO r;
"""
WITHOUT_EFFECT = (
    "CREATE TABLE IF NOT EXISTS t (id int)",
    "CREATE TABLE IF NOT EXISTS t AS SELECT 1",
    "CREATE INDEX IF NOT EXISTS i ON t (x)",
    "CREATE SEQUENCE IF NOT EXISTS s",
    "CREATE SCHEMA IF NOT EXISTS public",
    "CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1 AS x",
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS x int",
    "ALTER TABLE t DROP COLUMN IF EXISTS nope",
    "ALTER TABLE t DROP CONSTRAINT IF EXISTS nope",
    "ALTER TABLE t ALTER x DROP NOT NULL",
    "ALTER TABLE IF EXISTS nope RENAME TO other",
    "ALTER SEQUENCE IF EXISTS nope RESTART",
    "DROP TABLE IF EXISTS nope",
    "DROP INDEX IF EXISTS nope",
    "DROP VIEW IF EXISTS nope",
    "DROP MATERIALIZED VIEW IF EXISTS nope",
    "DROP SEQUENCE IF EXISTS nope",
    "DROP SCHEMA IF EXISTS nope",
    "DROP ROLE IF EXISTS nope",
    "DROP SERVER IF EXISTS nope",
    "GRANT SELECT ON t TO r",
    "COMMENT ON TABLE t IS NULL",
)


@pytest.fixture
def two() -> Iterator[tuple[Connection, Connection]]:
    """Two connections without autocommit, at READ COMMITTED."""
    with belvedere.connect(":memory:ddl") as one, belvedere.connect(":memory:ddl") as other:
        one.autocommit = True
        for statement in filter(str.strip, SETUP.split(";")):
            one.execute(statement)
        one.autocommit = False
        yield one, other


@pytest.mark.parametrize("statement", WITHOUT_EFFECT)
@pytest.mark.parametrize("autocommit", [False, True])
def test_a_statement_without_effect_writes_nothing_and_conflicts_with_nobody(
    two: tuple[Connection, Connection], statement: str, *, autocommit: bool
) -> None:
    one, other = two
    before = one.session.host.position
    one.autocommit = other.autocommit = autocommit
    one.execute(statement)
    other.execute(statement)
    one.commit()
    other.commit()
    assert one.session.host.position == before


def test_transactions_that_create_different_tables_both_commit(
    two: tuple[Connection, Connection],
) -> None:
    one, other = two
    for con, name in ((one, "a"), (other, "b")):
        con.execute(f"CREATE SCHEMA of_{name}")
        con.execute(
            f"CREATE TABLE of_{name}.{name} "
            "(id serial PRIMARY KEY, x int UNIQUE, t int REFERENCES t)"
        )
        con.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, x text)")
        con.execute(f"CREATE INDEX {name}_x ON {name} (x)")
        con.execute(f"INSERT INTO of_{name}.{name} (x) VALUES (1)")
        con.execute(f"INSERT INTO {name} VALUES (1, '{name}')")
    one.commit()
    other.commit()
    for name in "ab":
        assert one.execute(f"SELECT id, x FROM of_{name}.{name}").fetchall() == [(1, 1)]
        assert one.execute(f"SELECT id FROM {name} WHERE x = '{name}'").fetchall() == [(1,)]
    one.execute("CREATE TABLE c (id int PRIMARY KEY)")  # the ids of all are known by now
    one.execute("INSERT INTO c VALUES (7)")
    one.commit()
    assert other.execute("SELECT * FROM c").fetchall() == [(7,)]
    assert other.execute("SELECT count(*) FROM a").fetchall() == [(1,)]


def test_objects_created_together_are_there_after_a_restart(tmp_path: object) -> None:
    with belvedere.connect(f"{tmp_path}/s") as one, belvedere.connect(f"{tmp_path}/s") as other:
        for con, name in ((one, "a"), (other, "b")):
            con.execute(f"CREATE TABLE {name} (id int PRIMARY KEY)")
            con.execute(f"INSERT INTO {name} VALUES (1)")
        one.commit()
        other.commit()
    with belvedere.connect(f"{tmp_path}/s") as one:
        assert one.execute("SELECT a.id, b.id FROM a, b").fetchall() == [(1, 1)]
        assert one.execute("SELECT count(*) FROM pg_class WHERE relname IN ('a', 'b')").fetchone()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("CREATE TABLE a (id int)", "CREATE TABLE a (id int)"),
        ("CREATE TABLE a (id int)", "CREATE SEQUENCE a"),
        ("CREATE SCHEMA a", "CREATE SCHEMA a"),
        ("ALTER TABLE t ADD COLUMN y int", "CREATE TABLE a (id int REFERENCES t)"),
        ("DROP SEQUENCE s", "CREATE TABLE a (id int DEFAULT nextval('s'))"),
        ("CREATE TABLE a (id int)", "ALTER TABLE t ADD COLUMN y int"),
    ],
)
def test_changes_of_the_catalog_that_may_depend_on_each_other_do_not_both_commit(
    two: tuple[Connection, Connection], first: str, second: str
) -> None:
    one, other = two
    one.execute(first)
    other.execute(second)
    one.commit()
    with pytest.raises(belvedere.OperationalError) as caught:
        other.commit()
    assert caught.value.sqlstate == "40001"


@pytest.mark.parametrize("writer_first", [False, True])
def test_an_open_writer_and_an_added_column_both_commit(
    two: tuple[Connection, Connection], *, writer_first: bool
) -> None:
    writer, changer = two
    writer.execute("INSERT INTO t VALUES (1, 10)")
    changer.execute("ALTER TABLE t ADD COLUMN y int DEFAULT 7")
    changer.execute("ALTER TABLE t ADD COLUMN z text")
    for con in two if writer_first else (changer, writer):
        con.commit()
    writer.execute("INSERT INTO t VALUES (2, 10)")
    writer.commit()
    rows = changer.execute("SELECT * FROM t ORDER BY id").fetchall()
    assert rows == [(1, 10, 7, None), (2, 10, 7, None)]
    assert changer.execute("SELECT n FROM v WHERE x = 10").fetchall() == [(2,)]
    assert changer.execute("VERIFY MATERIALIZED VIEW v").fetchall()[0][0] != "different"


@pytest.mark.parametrize("action", ["ALTER x SET NOT NULL", "ADD CHECK (x > 0)", "DROP COLUMN x"])
@pytest.mark.parametrize("writer_first", [False, True])
@pytest.mark.parametrize("autocommit", [False, True])
def test_no_row_comes_past_a_constraint_that_is_added_beside_its_writer(
    two: tuple[Connection, Connection], action: str, *, writer_first: bool, autocommit: bool
) -> None:
    writer, changer = two
    changer.execute("CREATE TABLE u (id int PRIMARY KEY, x int)")
    changer.commit()
    changer.autocommit = autocommit and not writer_first
    writer.execute("INSERT INTO u VALUES (1, -1), (2, NULL)")
    changer.execute(f"ALTER TABLE u {action}")
    first, second = two if writer_first else (changer, writer)
    first.commit()
    if writer_first and action.startswith("DROP"):
        second.commit()
        return
    with pytest.raises(belvedere.OperationalError) as caught:
        second.commit()
    assert caught.value.sqlstate == "40001"
