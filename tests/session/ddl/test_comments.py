"""COMMENT ON: kept with its object through renames and rewrites, shown by pg_catalog, and what is
refused, beside PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere

SHOWN = """
SELECT CASE classoid WHEN 1259 THEN objoid::regclass::text
  WHEN 2606 THEN (SELECT conname FROM pg_constraint c WHERE c.oid = objoid)
  ELSE (SELECT nspname FROM pg_namespace n WHERE n.oid = objoid) END AS name, objsubid, description
FROM pg_description WHERE classoid IN (1259, 2606, 2615) ORDER BY 1, 2
"""


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute(
            "CREATE TABLE t (a int PRIMARY KEY, b text, c int UNIQUE, CONSTRAINT k CHECK (a > 0))"
        )
        opened.execute("CREATE VIEW v AS SELECT 1 AS x")
        opened.execute("CREATE MATERIALIZED VIEW m AS SELECT b, count(*) AS n FROM t GROUP BY b")
        yield opened


def list_comments(con: belvedere.Connection) -> list[tuple[object, ...]]:
    return con.execute(SHOWN).fetchall()


def test_every_kind_is_shown(con: belvedere.Connection) -> None:
    for what in (
        "TABLE t",
        "COLUMN t.b",
        "CONSTRAINT k ON t",
        "CONSTRAINT t_pkey ON t",
        "VIEW v",
        "COLUMN public.v.x",
        "MATERIALIZED VIEW m",
        "COLUMN m.n",
        "INDEX t_c_key",
        "SCHEMA public",
    ):
        con.execute(f"COMMENT ON {what} IS 'of {what}'")
    assert list_comments(con) == [
        ("k", 0, "of CONSTRAINT k ON t"),
        ("m", 0, "of MATERIALIZED VIEW m"),
        ("m", 2, "of COLUMN m.n"),
        ("public", 0, "of SCHEMA public"),
        ("t", 0, "of TABLE t"),
        ("t", 2, "of COLUMN t.b"),
        ("t_c_key", 0, "of INDEX t_c_key"),
        ("t_pkey", 0, "of CONSTRAINT t_pkey ON t"),
        ("v", 0, "of VIEW v"),
        ("v", 1, "of COLUMN public.v.x"),
    ]
    asked = "SELECT obj_description('t'::regclass, 'pg_class'), col_description('t'::regclass, 2)"
    assert con.execute(asked).fetchall() == [("of TABLE t", "of COLUMN t.b")]
    asked = "SELECT obj_description('t'::regclass), col_description('t'::regclass, 1)"
    assert con.execute(asked).fetchall() == [("of TABLE t", None)]


def test_comment_is_replaced_and_taken_away(con: belvedere.Connection) -> None:
    con.execute("COMMENT ON TABLE t IS 'one'")
    con.execute("COMMENT ON COLUMN t.a IS 'column'")
    con.execute("COMMENT ON TABLE t IS 'two'")
    assert list_comments(con) == [("t", 0, "two"), ("t", 1, "column")]
    con.execute("COMMENT ON TABLE t IS NULL")
    con.execute("COMMENT ON COLUMN t.a IS ''")
    assert list_comments(con) == []


def test_comment_follows_its_object(con: belvedere.Connection) -> None:
    con.execute("COMMENT ON TABLE t IS 'table'")
    con.execute("COMMENT ON COLUMN t.c IS 'column'")
    con.execute("COMMENT ON CONSTRAINT k ON t IS 'check'")
    con.execute("COMMENT ON INDEX t_c_key IS 'index'")
    con.execute("ALTER TABLE t RENAME CONSTRAINT k TO l")
    con.execute("ALTER TABLE t RENAME COLUMN c TO d")
    con.execute("ALTER TABLE t RENAME TO u")
    kept = [("l", 0, "check"), ("t_c_key", 0, "index"), ("u", 0, "table"), ("u", 3, "column")]
    assert list_comments(con) == kept
    con.execute("ALTER TABLE u DROP CONSTRAINT l")
    con.execute("ALTER TABLE u ADD CONSTRAINT l CHECK (a > 1)")
    assert list_comments(con) == kept[1:]
    con.execute("DROP TABLE u CASCADE")
    con.execute("CREATE TABLE u (a int PRIMARY KEY)")
    assert list_comments(con) == []


def test_comment_follows_a_table_that_is_written_anew(con: belvedere.Connection) -> None:
    con.execute("COMMENT ON TABLE t IS 'table'")
    con.execute("COMMENT ON COLUMN t.c IS 'column'")
    con.execute("COMMENT ON INDEX t_c_key IS 'index'")
    con.execute("ALTER TABLE t ALTER c TYPE text")
    kept = [("t", 0, "table"), ("t", 3, "column"), ("t_c_key", 0, "index")]
    assert list_comments(con) == kept


def test_comment_of_a_replaced_view_stays(con: belvedere.Connection) -> None:
    con.execute("COMMENT ON MATERIALIZED VIEW m IS 'counts'")
    con.execute("COMMENT ON COLUMN m.n IS 'how many'")
    con.execute(
        "CREATE OR REPLACE MATERIALIZED VIEW m AS SELECT c, count(*) AS n FROM t GROUP BY c"
    )
    assert list_comments(con) == [("m", 0, "counts"), ("m", 2, "how many")]


def test_comment_is_undone_with_its_transaction(con: belvedere.Connection) -> None:
    con.execute("BEGIN")
    con.execute("COMMENT ON TABLE t IS 'never'")
    assert list_comments(con) == [("t", 0, "never")]
    con.execute("ROLLBACK")
    assert list_comments(con) == []


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("COMMENT ON COLUMN t.nothing IS 'x'", "42703"),
        ("COMMENT ON COLUMN nothing.a IS 'x'", "42P01"),
        ("COMMENT ON COLUMN t_c_key.a IS 'x'", "42809"),
        ("COMMENT ON CONSTRAINT nothing ON t IS 'x'", "42704"),
        ("COMMENT ON TABLE v IS 'x'", "42809"),
        ("COMMENT ON TABLE nothing IS 'x'", "42P01"),
        ("COMMENT ON SCHEMA nothing IS 'x'", "3F000"),
        ("COMMENT ON t IS 'x'", "42601"),
        ("COMMENT ON TABLE t IS 7", "42601"),
        ("COMMENT ON COLUMN a IS 'x'", "42601"),
        ("COMMENT ON FUNCTION f() IS 'x'", "0A000"),
    ],
)
def test_wrong_comment_is_refused(con: belvedere.Connection, statement: str, sqlstate: str) -> None:
    with pytest.raises(belvedere.DatabaseError) as caught:
        con.execute(statement)
    assert caught.value.sqlstate == sqlstate
    assert list_comments(con) == []


def test_comments_survive_a_restart(tmp_path: object) -> None:
    for _ in range(2):
        with belvedere.connect(f"{tmp_path}/shop.db", autocommit=True) as con:
            con.execute("CREATE TABLE IF NOT EXISTS t (a int)")
            if not list_comments(con):
                con.execute("COMMENT ON TABLE t IS 'kept'")
            assert list_comments(con) == [("t", 0, "kept")]
