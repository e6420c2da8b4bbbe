"""Updates of one row by its key: the fast path gives what the general path gives."""

from __future__ import annotations

import pytest

from belvedere.interfaces.dbapi import Connection, connect
from belvedere.interfaces.exceptions import IntegrityError, ProgrammingError

SCHEMA = """
CREATE TABLE parent (id integer PRIMARY KEY, code text UNIQUE, note text);
CREATE TABLE child (id integer PRIMARY KEY, code text REFERENCES parent (code) ON UPDATE CASCADE);
CREATE TABLE wide (
    a integer, gone text, id integer PRIMARY KEY, b integer CHECK (b > 0),
    doubled integer GENERATED ALWAYS AS (b * 2) STORED, c text NOT NULL);
ALTER TABLE wide DROP COLUMN gone;
INSERT INTO parent VALUES (1, 'x', 'first'), (2, 'y', 'second');
INSERT INTO child VALUES (10, 'x'), (11, 'y');
INSERT INTO wide (a, id, b, c) VALUES (1, 1, 5, 'one');
"""


@pytest.fixture
def con() -> Connection:
    made = connect(":memory:")
    made.autocommit = True
    made.execute(SCHEMA)
    return made


def twice(con: Connection, sql: str, *parameters: tuple[object, ...]) -> list[int]:
    """The first call plans; from the second on the cached fast path is taken."""
    return [con.execute(sql, one).rowcount for one in parameters]


def test_a_column_that_others_refer_to_takes_them_along(con: Connection) -> None:
    sql = "UPDATE parent SET code = ? WHERE id = ?"
    assert twice(con, sql, ("x1", 1), ("x2", 1), ("y2", 2), ("z", 3)) == [1, 1, 1, 0]
    assert con.execute("SELECT * FROM child ORDER BY id").fetchall() == [(10, "x2"), (11, "y2")]


def test_a_primary_key_moves_the_row(con: Connection) -> None:
    sql = "UPDATE parent SET id = ?, note = ? WHERE id = ?"
    assert twice(con, sql, (3, "n", 1), (4, "m", 3)) == [1, 1]
    found = con.execute("SELECT id, note FROM parent ORDER BY id").fetchall()
    assert found == [(2, "second"), (4, "m")]
    with pytest.raises(IntegrityError) as taken:
        con.execute(sql, (2, "n", 4))
    assert taken.value.sqlstate == "23505"


def test_dropped_generated_and_checked_columns(con: Connection) -> None:
    sql = "UPDATE wide SET c = ?, b = ?, a = a + ? WHERE id = ?"
    assert twice(con, sql, ("two", 6, 1, 1), ("three", 7, 10, 1)) == [1, 1]
    assert con.execute("SELECT * FROM wide").fetchall() == [(12, 1, 7, 14, "three")]
    for parameters, sqlstate in ((("x", -1, 0, 1), "23514"), ((None, 1, 0, 1), "23502")):
        with pytest.raises(IntegrityError) as refused:
            con.execute(sql, parameters)
        assert refused.value.sqlstate == sqlstate
    assert con.execute("SELECT * FROM wide").fetchall() == [(12, 1, 7, 14, "three")]


def test_a_dropped_column_alone_keeps_places(con: Connection) -> None:
    con.execute("CREATE TABLE t (x text, gone int, id int PRIMARY KEY, y text, z text)")
    con.execute("ALTER TABLE t DROP COLUMN gone")
    con.execute("INSERT INTO t VALUES ('x', 1, 'y', 'z')")
    sql = "UPDATE t SET y = ? WHERE id = ?"
    assert twice(con, sql, ("y1", 1), ("y2", 1)) == [1, 1]
    assert con.execute("SELECT * FROM t").fetchall() == [("x", 1, "y2", "z")]


@pytest.mark.parametrize("limit", [1, 63, 64, 100, 1000, 2000])
def test_a_limit_reads_as_many_rows_as_are_there(con: Connection, limit: int) -> None:
    """Scans that know how many rows are wanted go in batches of that size."""
    con.execute("CREATE TABLE n (id int PRIMARY KEY, odd boolean)")
    con.execute("INSERT INTO n SELECT i, i % 2 = 1 FROM generate_series(1, 1500) AS g(i)")
    for _ in range(2):
        found = con.execute("SELECT id FROM n WHERE id > ? ORDER BY id LIMIT ?", (10, limit))
        assert [row[0] for row in found.fetchall()] == list(range(11, 1501))[:limit]
        found = con.execute("SELECT id FROM n WHERE id > ? AND odd ORDER BY id LIMIT ?", (3, limit))
        assert [row[0] for row in found.fetchall()] == list(range(5, 1501, 2))[:limit]


def test_an_update_by_key_keeps_indexes_and_views(con: Connection) -> None:
    con.execute("CREATE TABLE s (id int PRIMARY KEY, shop text, n int, UNIQUE (shop, n))")
    con.execute("CREATE MATERIALIZED VIEW v AS SELECT shop, sum(n) FROM s GROUP BY shop")
    con.execute("INSERT INTO s VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 3)")
    sql = "UPDATE s SET shop = ?, n = n + ? WHERE id = ?"
    assert twice(con, sql, ("b", 1, 1), ("c", 1, 2), ("c", 5, 3), ("c", 0, 4)) == [1, 1, 1, 0]
    assert con.execute("SELECT * FROM v ORDER BY 1").fetchall() == [("b", 2), ("c", 11)]
    assert con.execute("SELECT id FROM s WHERE shop = 'c' AND n = 8").fetchall() == [(3,)]
    with pytest.raises(IntegrityError) as taken:
        con.execute(sql, ("c", -5, 3))
    assert taken.value.sqlstate == "23505"
    assert con.execute("SELECT * FROM v ORDER BY 1").fetchall() == [("b", 2), ("c", 11)]
    calls, errors = con.execute(
        "SELECT calls, errors FROM belvedere.statements WHERE text ILIKE 'update s set%'"
    ).fetchone() or (0, 0)
    assert (calls, errors) == (4, 1)


def test_an_update_by_key_is_refused_by_a_read_only_session(con: Connection) -> None:
    sql = "UPDATE parent SET note = ? WHERE id = ?"
    assert twice(con, sql, ("a", 1), ("b", 1)) == [1, 1]
    con.execute("SET default_transaction_read_only = on")
    with pytest.raises(ProgrammingError) as refused:
        con.execute(sql, ("c", 1))
    assert refused.value.sqlstate == "25006"
    con.execute("SET default_transaction_read_only = off")
    assert con.execute("SELECT note FROM parent WHERE id = 1").fetchall() == [("b",)]


def test_an_update_by_key_that_wrote_is_seen_by_its_token(con: Connection) -> None:
    sql = "UPDATE parent SET note = ? WHERE id = ?"
    before = con.token
    assert twice(con, sql, ("a", 1), ("b", 1)) == [1, 1]
    assert con.token != before
    found = con.execute("SELECT note FROM parent WHERE id = 1", freshness=con.token).fetchall()
    assert found == [("b",)]


def test_an_update_by_key_sees_a_column_added_since(con: Connection) -> None:
    sql = "UPDATE parent SET note = ? WHERE id = ?"
    assert twice(con, sql, ("a", 1), ("b", 1)) == [1, 1]
    con.execute("ALTER TABLE parent ADD COLUMN extra int NOT NULL DEFAULT 7")
    assert twice(con, sql, ("c", 1), ("d", 1)) == [1, 1]
    found = con.execute("SELECT note, extra FROM parent WHERE id = 1").fetchall()
    assert found == [("d", 7)]


def test_an_insert_of_one_row_is_what_the_usual_way_gives(con: Connection) -> None:
    con.execute(
        "CREATE TABLE i (id bigserial PRIMARY KEY, a int DEFAULT 7, b text NOT NULL UNIQUE,"
        " twice int GENERATED ALWAYS AS (a * 2) STORED, CHECK (a > 0))"
    )
    con.execute("CREATE TABLE keyless (a int)")
    con.execute("CREATE MATERIALIZED VIEW totals AS SELECT sum(a), count(*) FROM i")
    sql = "INSERT INTO i (b) VALUES (?)"
    assert twice(con, sql, ("x",), ("y",), ("z",)) == [1, 1, 1]
    for text, parameters, sqlstate in (
        (sql, ("x",), "23505"),
        (sql, (None,), "23502"),
        ("INSERT INTO i (id, b) VALUES (?, ?)", (2, "w"), "23505"),
        ("INSERT INTO i (a, b) VALUES (?, ?)", (-1, "w"), "23514"),
    ):
        for _ in range(2):
            with pytest.raises(IntegrityError) as refused:
                con.execute(text, parameters)
            assert refused.value.sqlstate == sqlstate
    assert twice(con, "INSERT INTO keyless VALUES (?)", (1,), (1,), (None,)) == [1, 1, 1]
    assert con.execute("SELECT a FROM keyless ORDER BY a").fetchall() == [(1,), (1,), (None,)]
    found = con.execute("SELECT a, b, twice FROM i ORDER BY id").fetchall()
    assert found == [(7, "x", 14), (7, "y", 14), (7, "z", 14)]
    assert con.execute("SELECT * FROM totals").fetchall() == [(21, 3)]
