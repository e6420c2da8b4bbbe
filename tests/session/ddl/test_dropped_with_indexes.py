"""Indexes go with what they index, and messages name them as what the user made."""

from __future__ import annotations

import pytest

import belvedere

OPTIONS = ("maintenance = 'deferred'", "placement = 'local'")


@pytest.mark.parametrize("options", OPTIONS)
def test_a_table_is_dropped_with_its_indexes(options: str) -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
        con.execute(f"CREATE INDEX i ON t (b) WITH ({options})")
        con.execute("DROP TABLE t")
        assert con.execute("SELECT name FROM belvedere.views").fetchall() == []


def test_views_that_stand_in_the_way_are_named_without_their_indexes() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
        con.execute("CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")
        con.execute("CREATE INDEX i ON v (n)")
        with pytest.raises(belvedere.ProgrammingError) as raised:
            con.execute("DROP TABLE t")
        assert (raised.value.sqlstate, raised.value.detail) == ("2BP01", "view v")
        con.execute("DROP TABLE t CASCADE")
        assert con.execute("SELECT name FROM belvedere.views").fetchall() == []


def test_a_column_of_an_index_names_the_index() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
        con.execute(f"CREATE INDEX i ON t (b) WITH ({OPTIONS[0]})")
        for statement in ("ALTER TABLE t DROP COLUMN b", "ALTER TABLE t ALTER b TYPE bigint"):
            with pytest.raises(belvedere.Error) as raised:
                con.execute(statement)
            assert "index i" in str(raised.value)
            assert "view i" not in str(raised.value)
        con.execute("DROP INDEX i")
        con.execute("ALTER TABLE t DROP COLUMN b")
