"""What a plain view stands on is not taken away from under it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as made:
        made.execute("CREATE TABLE t (id int PRIMARY KEY, a int, b int)")
        made.execute("CREATE VIEW v AS SELECT id, a FROM t")
        made.execute("CREATE VIEW w AS SELECT max(a) AS m FROM v")
        yield made


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE t",
        "DROP VIEW v",
        "ALTER TABLE t DROP COLUMN a",
    ],
)
def test_a_change_that_breaks_a_view_is_refused(con: belvedere.Connection, statement: str) -> None:
    with pytest.raises(belvedere.ProgrammingError) as caught:
        con.execute(statement)
    assert caught.value.sqlstate == "2BP01"
    assert con.execute("SELECT m FROM w").fetchall() == [(None,)]


@pytest.mark.parametrize(
    "statement", ["ALTER TABLE t DROP COLUMN b", "DROP VIEW w", "DROP VIEW v, w"]
)
def test_other_changes_are_not(con: belvedere.Connection, statement: str) -> None:
    con.execute(statement)


@pytest.mark.parametrize(
    "statement", ["DROP TABLE t", "ALTER TABLE t DROP COLUMN a", "DROP VIEW v"]
)
def test_cascade_drops_the_views_too(con: belvedere.Connection, statement: str) -> None:
    con.execute(f"{statement} CASCADE")
    for name in ("v", "w"):
        with pytest.raises(belvedere.ProgrammingError) as caught:
            con.execute(f"SELECT * FROM {name}")
        assert caught.value.sqlstate == "42P01"
