"""What is renamed under views: plain views, materialized ones and their indexes follow."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute("CREATE TABLE a (id int PRIMARY KEY, v int, w int)")
        opened.execute("INSERT INTO a VALUES (1, 1, 5), (2, 2, 5)")
        opened.execute("CREATE VIEW p AS SELECT a.id, v FROM a WHERE w > 0")
        opened.execute("CREATE VIEW q AS SELECT x.id, p.v FROM a x JOIN p ON p.id = x.id")
        yield opened


def rows(con: belvedere.Connection, text: str) -> list[tuple[object, ...]]:
    return con.execute(text).fetchall()


def test_a_table_is_renamed_under_plain_views(con: belvedere.Connection) -> None:
    con.execute("ALTER TABLE a RENAME TO b")
    assert rows(con, "SELECT * FROM q ORDER BY id") == [(1, 1), (2, 2)]
    con.execute("INSERT INTO b VALUES (3, 3, 5)")
    assert rows(con, "SELECT * FROM p ORDER BY id") == [(1, 1), (2, 2), (3, 3)]
    con.execute("CREATE TABLE a (other text)")
    assert rows(con, "SELECT * FROM p ORDER BY id") == [(1, 1), (2, 2), (3, 3)]


def test_a_column_is_renamed_under_plain_views(con: belvedere.Connection) -> None:
    con.execute("ALTER TABLE a RENAME COLUMN v TO amount")
    con.execute("ALTER TABLE a RENAME COLUMN id TO number")
    assert rows(con, "SELECT * FROM p ORDER BY id") == [(1, 1), (2, 2)]
    assert rows(con, "SELECT * FROM q ORDER BY id") == [(1, 1), (2, 2)]


def test_a_plain_view_and_its_columns_are_renamed(con: belvedere.Connection) -> None:
    con.execute("ALTER VIEW p RENAME TO r")
    assert rows(con, "SELECT * FROM q ORDER BY id") == [(1, 1), (2, 2)]
    con.execute("ALTER VIEW r RENAME COLUMN v TO amount")
    assert rows(con, "SELECT amount FROM r ORDER BY id") == [(1,), (2,)]
    assert rows(con, "SELECT * FROM q ORDER BY id") == [(1, 1), (2, 2)]
    for statement, sqlstate in (
        ("ALTER VIEW r RENAME COLUMN v TO x", "42703"),
        ("ALTER VIEW r RENAME COLUMN id TO amount", "42701"),
    ):
        with pytest.raises(belvedere.Error) as caught:
            con.execute(statement)
        assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_a_materialized_view_with_an_index_is_renamed(
    con: belvedere.Connection, maintenance: str
) -> None:
    con.execute(
        f"CREATE MATERIALIZED VIEW m WITH (maintenance = '{maintenance}') "
        "AS SELECT w, count(*) AS n FROM a GROUP BY w"
    )
    con.execute("CREATE INDEX m_n ON m (n)")
    con.execute("CREATE MATERIALIZED VIEW over AS SELECT n, count(*) AS c FROM m GROUP BY n")
    con.execute("ALTER MATERIALIZED VIEW m RENAME TO renamed")
    con.execute("INSERT INTO a VALUES (3, 3, 5), (4, 4, 6)")
    assert rows(con, "SELECT w FROM renamed WHERE n = 3") == [(5,)]
    assert rows(con, "SELECT * FROM over ORDER BY n") == [(1, 1), (3, 1)]
    for name in ("renamed", "over"):
        con.execute(f"REFRESH MATERIALIZED VIEW {name}")
        assert con.execute(f"VERIFY MATERIALIZED VIEW {name}").fetchall()[0][0] != 0
    con.execute("DROP INDEX m_n")
    con.execute("ALTER TABLE a RENAME TO b")
    con.execute("INSERT INTO b VALUES (5, 5, 6)")
    assert rows(con, "SELECT * FROM renamed ORDER BY w") == [(5, 3), (6, 2)]
