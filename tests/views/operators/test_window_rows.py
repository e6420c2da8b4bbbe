"""Windows over a table: the rows around a change, or the first rows of its partition."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import belvedere
from belvedere.views.operators import recompute

NEAR = (
    "SELECT id, lag(v) OVER (PARTITION BY g ORDER BY v) AS x FROM t",
    "SELECT id, lag(id, 2, -1) OVER (PARTITION BY g ORDER BY v DESC) AS x FROM t",
    "SELECT id, lead(s) OVER (PARTITION BY g ORDER BY v, s) AS x FROM t",
    "SELECT id, lead(id, 0) OVER (ORDER BY v) AS x, lag(id, 3) OVER (ORDER BY v) AS y FROM t",
    "SELECT id, s, lead(id, 2) OVER (PARTITION BY g, s ORDER BY v DESC) AS x FROM t",
    "SELECT id, sum(v) OVER (PARTITION BY g ORDER BY v ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)"
    " AS x FROM t",
    "SELECT g, count(*) OVER (PARTITION BY g ORDER BY v DESC ROWS BETWEEN 1 FOLLOWING AND"
    " 3 FOLLOWING) AS x FROM t",
    "SELECT g, first_value(id) OVER (PARTITION BY g ORDER BY v ROWS BETWEEN 2 PRECEDING AND"
    " CURRENT ROW) AS x FROM t",
    "SELECT v, max(s) OVER (PARTITION BY g ORDER BY v, s DESC ROWS BETWEEN 3 PRECEDING AND"
    " 2 PRECEDING) AS x FROM t",
    "SELECT x, lag(x) OVER (PARTITION BY g ORDER BY x) AS y FROM t",
    "SELECT g, lag(v) OVER (PARTITION BY g ORDER BY g, v) - v AS x FROM t",
    *(
        f"SELECT {shown} FROM t WINDOW w AS (PARTITION BY {window})"
        for shown, window in (
            ("id, first_value(id) OVER w AS x", "g ORDER BY v"),
            ("id, first_value(s) OVER w AS x, lag(id) OVER w AS y", "g ORDER BY v DESC, s DESC"),
            ("g, v - first_value(v) OVER w AS x", "g, s ORDER BY v"),
            (
                "id, first_value(id) OVER w AS x, last_value(s) OVER w AS y",
                "g ORDER BY v ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            ),
            (
                "id, last_value(x) OVER w AS x, lead(s, 2) OVER w AS y",
                "g ORDER BY v, s ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            ),
            (
                "s, last_value(id) OVER w AS x",
                "g ORDER BY v DESC ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING",
            ),
            (
                "s, first_value(id) OVER w AS x, last_value(id) OVER w AS y",
                "g ORDER BY v DESC RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            ),
        )
    ),
)
FIRST = (
    "SELECT id, p FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY v DESC) AS p FROM t)"
    " AS r WHERE p <= 2",
    "SELECT id, p FROM (SELECT id, rank() OVER (PARTITION BY g ORDER BY v) AS p FROM t) AS r"
    " WHERE p < 3",
    "SELECT id FROM (SELECT id, s, row_number() OVER (PARTITION BY g ORDER BY v, s) AS p FROM t)"
    " AS r WHERE p = 2 AND s = 'a'",
    "SELECT id, y FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY v) AS p,"
    " sum(v) OVER (PARTITION BY g ORDER BY v) AS y FROM t) AS r WHERE p <= 4",
    "SELECT id, p FROM (SELECT id, row_number() OVER (ORDER BY v DESC, x) AS p FROM t)"
    " AS r WHERE p BETWEEN 2 AND 5",
    "SELECT id FROM (SELECT id, rank() OVER (PARTITION BY g ORDER BY v) AS p FROM t) AS r"
    " WHERE p <= 0",
)
BY_PARTITION = (
    "SELECT id, lead(id) OVER (PARTITION BY g ORDER BY v DESC NULLS LAST) AS x FROM t",
    "SELECT id, row_number() OVER (PARTITION BY g ORDER BY v) AS x FROM t",
    "SELECT id, p FROM (SELECT id, dense_rank() OVER (PARTITION BY g ORDER BY v) AS p FROM t) AS r"
    " WHERE p <= 2",
    "SELECT id, y FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY v) AS p,"
    " lead(v) OVER (PARTITION BY g ORDER BY v) AS y, count(*) OVER (PARTITION BY g ORDER BY v)"
    " AS c FROM t) AS r WHERE p <= 2",
    "SELECT id, sum(v) OVER (PARTITION BY g ORDER BY v RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)"
    " AS x FROM t",
    "SELECT id, first_value(v) OVER (PARTITION BY g ORDER BY v ROWS BETWEEN UNBOUNDED PRECEDING"
    " AND 1 PRECEDING) AS x FROM t",
    "SELECT id, last_value(v) OVER (PARTITION BY g ORDER BY v ROWS BETWEEN UNBOUNDED PRECEDING AND"
    " UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) AS x FROM t",
    "SELECT id, last_value(v) OVER (PARTITION BY g ORDER BY v RANGE BETWEEN 1 PRECEDING AND"
    " UNBOUNDED FOLLOWING) AS x FROM t",
    "SELECT id, nth_value(v, 2) OVER (PARTITION BY g ORDER BY v) AS x FROM t",
    "SELECT id, lag(v, id) OVER (PARTITION BY g ORDER BY v) AS x FROM t",
    "SELECT id, avg(f) OVER (PARTITION BY g ORDER BY v ROWS 2 PRECEDING) AS x FROM t",
    "SELECT id, lag(v) OVER (PARTITION BY g ORDER BY v + 1) AS x FROM t",
    "SELECT id, lag(v) OVER (PARTITION BY g) AS x FROM t",
)


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute(
            "CREATE TABLE t (id int PRIMARY KEY, g int, v int, s text, x numeric, f float)"
        )
        yield opened


def change_randomly(con: belvedere.Connection, chosen: random.Random) -> None:
    g, v = chosen.choice([None, 1, 1, 2]), chosen.choice([None, 1, 2, 3, 4, 5, 6])
    x = chosen.choice(["1.0", "1.00", "1", "2", None])
    key = chosen.randrange(25)
    match chosen.randrange(5):
        case 0 | 1:
            row = (key, g, v, chosen.choice("ab"), x, chosen.random())
            con.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", row)
        case 2:
            con.execute("UPDATE t SET g = ?, v = ?, x = ? WHERE id = ?", (g, v, x, key))
        case 3:
            con.execute("UPDATE t SET v = v + 1 WHERE id % 4 = ?", (key % 4,))
        case _:
            con.execute("DELETE FROM t WHERE id = ?", (key,))


@pytest.mark.parametrize("definition", NEAR + FIRST + BY_PARTITION)
def test_the_view_is_its_query_after_every_change(
    con: belvedere.Connection, definition: str
) -> None:
    con.execute(f"CREATE MATERIALIZED VIEW w AS {definition}")
    chosen = random.Random(7)
    for _ in range(12):
        for _ in range(6):
            change_randomly(con, chosen)
        (report,) = con.execute("VERIFY MATERIALIZED VIEW w").fetchall()
        assert report[-1] is True, report


def explain(con: belvedere.Connection, definition: str) -> str:
    con.execute(f"CREATE MATERIALIZED VIEW w AS {definition}")
    return "\n".join(row[0] for row in con.execute("EXPLAIN MATERIALIZED VIEW w"))


@pytest.mark.parametrize("definition", NEAR)
def test_rows_around_a_change_are_read_from_an_index(
    con: belvedere.Connection, definition: str
) -> None:
    assert "window: the rows around it" in explain(con, definition)


@pytest.mark.parametrize("definition", FIRST)
def test_first_rows_are_read_from_an_index(con: belvedere.Connection, definition: str) -> None:
    assert "window: the first " in explain(con, definition)


@pytest.mark.parametrize("definition", BY_PARTITION)
def test_what_depends_on_more_is_done_by_partition(
    con: belvedere.Connection, definition: str
) -> None:
    assert "window: done again over the rows with the touched g" in explain(con, definition)


def test_many_changes_at_once_are_done_by_partition(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recompute, "CHANGED_ROWS_MAX", 3)
    con.execute(f"CREATE MATERIALIZED VIEW w AS {NEAR[0]}")
    con.execute("INSERT INTO t SELECT i, i % 3, i % 5 FROM generate_series(1, 40) AS s (i)")
    con.execute("UPDATE t SET v = v + 1 WHERE id % 2 = 0")
    con.execute("UPDATE t SET v = 7 WHERE id = 3")
    (report,) = con.execute("VERIFY MATERIALIZED VIEW w").fetchall()
    assert report[-1] is True, report
