"""Views whose rows depend on more than their tables: REFRESH computes them again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere

VIEW = "CREATE MATERIALIZED VIEW late WITH (strict = false{}) AS SELECT id FROM t WHERE at > now()"


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute("CREATE TABLE t (id int PRIMARY KEY, at timestamptz)")
        yield opened


@pytest.mark.parametrize("options", ["", ", maintenance = 'deferred'"])
def test_refresh_computes_a_view_with_now_again(con: belvedere.Connection, options: str) -> None:
    con.execute("INSERT INTO t VALUES (1, now() + interval '1 hour')")
    con.execute("INSERT INTO t SELECT 2, now() + interval '30 ms'")
    con.execute(VIEW.format(options))
    con.execute("CREATE INDEX ON late (id)")
    assert "depends on now" in con.notices[-1]
    wait_until_passed(con, 2)
    con.execute("REFRESH MATERIALIZED VIEW late")
    assert "depends on now" in con.notices[-1]
    assert con.execute("SELECT id FROM late", freshness="any").fetchall() == [(1,)]
    assert con.execute("SELECT id FROM late WHERE id = 2").fetchall() == []
    (verified,) = con.execute("VERIFY MATERIALIZED VIEW late").fetchall()
    assert verified[-1] is True


def wait_until_passed(con: belvedere.Connection, id_: int) -> None:
    while con.execute("SELECT at > clock_timestamp() FROM t WHERE id = ?", (id_,)).fetchall()[0][0]:
        pass


def test_changes_that_follow_a_refresh_start_from_it(con: belvedere.Connection) -> None:
    con.execute("CREATE MATERIALIZED VIEW r WITH (strict = false) AS SELECT id, random() FROM t")
    for number in range(5):
        con.execute("INSERT INTO t VALUES (?, NULL)", (number,))
        con.execute("REFRESH MATERIALIZED VIEW r")
        rows = con.execute("SELECT id FROM r ORDER BY id").fetchall()
        assert rows == [(one,) for one in range(number + 1)]


def test_explain_says_that_refresh_computes_it(con: belvedere.Connection) -> None:
    con.execute(VIEW.format(""))
    lines = [row[0] for row in con.execute("EXPLAIN MATERIALIZED VIEW late").fetchall()]
    assert any("and REFRESH, because it depends on now" in line for line in lines)


def test_other_views_are_up_to_date_as_they_were(con: belvedere.Connection) -> None:
    con.execute("CREATE MATERIALIZED VIEW n AS SELECT count(*) FROM t")
    con.execute("REFRESH MATERIALIZED VIEW n")
    assert con.notices[-1] == 'view "n" is immediate, it is always up to date'
