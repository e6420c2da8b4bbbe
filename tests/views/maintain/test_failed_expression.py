"""An error that a view causes names the view, the expression and the row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere

TABLES = (
    "CREATE TABLE c (id INT PRIMARY KEY, rate INT)",
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, g INT, note TEXT)",
    "INSERT INTO c VALUES (1, 5), (2, 0)",
    "INSERT INTO t VALUES (1, 1, 1, '1')",
)
EXPLAINED = (  # definition, statement that fails, what the error tells
    ("SELECT id, 10 / a AS q FROM t", "INSERT INTO t VALUES (2, 0, 1, '')", "10 / a with a = 0"),
    ("SELECT id, 10 / a AS q FROM t", "UPDATE t SET a = 0", "for the row (id) = (1) of t"),
    (
        "SELECT g, sum(10 / a) FROM t GROUP BY g",
        "INSERT INTO t VALUES (2, 5, 1, ''), (3, 0, 1, ''), (4, 5, 1, '')",
        "the view computes 10 / a with a = 0, for the row (id) = (3) of t",
    ),
    ("SELECT g FROM t WHERE 10 / a > 1", "INSERT INTO t VALUES (2, 0, 1, '')", "10 / a with a = 0"),
    (
        "SELECT t.id, t.a / c.rate AS q FROM t JOIN c ON c.id = t.g",
        "INSERT INTO t VALUES (7, 5, 2, '')",
        "the view computes a / rate with a = 5, rate = 0, for the row (id) = (7) of t",
    ),
    (
        "SELECT t.id, t.a / c.rate AS q FROM t JOIN c ON c.id = t.g",
        "UPDATE c SET rate = 0",
        "the view computes a / rate with a = 1, rate = 0, for the row (id) = (1) of c",
    ),
    (
        "SELECT t.id, 10 / t.a AS q FROM t LEFT JOIN c ON c.id = t.g",
        "INSERT INTO t VALUES (7, 0, 2, '')",
        "10 / a with a = 0, for the row (id) = (7) of t",
    ),
    (
        "SELECT id, row_number() OVER (PARTITION BY g ORDER BY 10 / a) FROM t",
        "INSERT INTO t VALUES (7, 0, 2, '')",
        "10 / a with a = 0, for the row (id) = (7) of t",
    ),
    (
        "SELECT id FROM t UNION ALL SELECT 10 / a FROM t",
        "INSERT INTO t VALUES (7, 0, 2, '')",
        "10 / a with a = 0, for the row (id) = (7) of t",
    ),
    (
        "SELECT id, note::int AS n FROM t",
        "INSERT INTO t VALUES (7, 1, 2, 'x')",
        "note::integer with note = x, for the row (id) = (7) of t",
    ),
)


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as found:
        for statement in TABLES:
            found.execute(statement)
        yield found


@pytest.mark.parametrize(("definition", "statement", "told"), EXPLAINED)
@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_the_error_names_view_expression_and_row(
    con: belvedere.Connection, definition: str, statement: str, told: str, maintenance: str
) -> None:
    con.execute(f"CREATE MATERIALIZED VIEW v WITH (maintenance = '{maintenance}') AS {definition}")
    if maintenance == "deferred":
        con.execute(statement)
        statement = "SELECT * FROM v"
    for freshness in ("session", "latest"):
        with pytest.raises(belvedere.DataError) as raised:
            con.execute(statement, freshness=freshness)
        assert "(view=v" in str(raised.value)
        assert told in str(raised.value)


def test_a_transaction_with_more_changes_names_the_row(con: belvedere.Connection) -> None:
    con.execute("CREATE MATERIALIZED VIEW v AS SELECT t.a / c.rate FROM t JOIN c ON c.id = t.g")
    con.execute("BEGIN")
    con.execute("INSERT INTO c VALUES (3, 0)")
    con.execute("INSERT INTO t SELECT i, i, 1, '' FROM generate_series(10, 500) i")
    con.execute("INSERT INTO t VALUES (900, 4, 3, '')")
    with pytest.raises(belvedere.DataError, match="a / rate with a = 4, rate = 0"):
        con.execute("COMMIT")


def test_rows_without_a_key_are_shown_whole(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE u (a INT, b TEXT)")
    con.execute("CREATE MATERIALIZED VIEW v AS SELECT 10 / a FROM u")
    with pytest.raises(belvedere.DataError, match=r"the row \(a, b\) = \(0, x{64}\.\.\) of u"):
        con.execute("INSERT INTO u VALUES (0, ?)", ("x" * 100,))


def test_what_a_case_guards_is_not_blamed(con: belvedere.Connection) -> None:
    con.execute(
        "CREATE MATERIALIZED VIEW v AS"
        " SELECT CASE WHEN a <> 0 THEN 10 / a END AS q, 20 / (a + g) AS r FROM t"
    )
    with pytest.raises(belvedere.DataError, match=r"computes 20 / \(a \+ g\) with a = 0, g = 0,"):
        con.execute("INSERT INTO t VALUES (2, 0, 0, '')")


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
@pytest.mark.parametrize("aggregate", ["max(10 / a)", "count(DISTINCT 10 / a)"])
def test_the_error_of_an_auxiliary_view_names_the_view_of_the_user(
    con: belvedere.Connection, aggregate: str, maintenance: str
) -> None:
    con.execute(
        f"CREATE MATERIALIZED VIEW v WITH (maintenance = '{maintenance}') AS"
        f" SELECT g, {aggregate} FROM t GROUP BY g"
    )
    told = r"view=v\)\n.*10 / a with a = 0, for the row \(id\) = \(2\) of t"
    with pytest.raises(belvedere.DataError, match=told):
        con.execute("INSERT INTO t VALUES (2, 0, 0, '')")


def test_the_error_is_kept_with_the_view(con: belvedere.Connection) -> None:
    con.execute(
        "CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred') AS SELECT 10 / a FROM t"
    )
    con.execute("INSERT INTO t VALUES (2, 0, 0, '')")
    with pytest.raises(belvedere.DataError):
        con.execute("REFRESH MATERIALIZED VIEW v")
    (error,) = con.execute("SELECT error FROM belvedere.views WHERE name = 'v'").fetchone()
    assert "10 / a with a = 0, for the row (id) = (2) of t" in error


@pytest.mark.parametrize("autocommit", [True, False], ids=["online", "in a transaction"])
@pytest.mark.parametrize(
    "query", ["SELECT id, 10 / a AS q FROM t", "SELECT sum(10 / a) AS q FROM t"]
)
def test_an_error_while_create_fills_names_view_expression_and_row(
    tmp_path: Path, query: str, autocommit: bool
) -> None:
    with belvedere.connect(tmp_path / "store", autocommit=True, durability="off") as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, a int)")
        con.execute("INSERT INTO t SELECT n, n - 7 FROM generate_series(1, 1001) AS s (n)")
        con.autocommit = autocommit
        if not autocommit:
            con.execute("BEGIN")
        with pytest.raises(belvedere.DataError) as caught:
            con.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        con.rollback()
        assert str(caught.value) == (
            "division by zero (view=v)\n"
            "detail: the view computes 10 / a with a = 0, for the row (id) = (7) of t"
        )
        assert con.execute("SELECT count(*) FROM belvedere.views").fetchall() == [(0,)]


def test_an_error_while_create_fills_a_window_names_its_row() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, a int)")
        con.execute("INSERT INTO t VALUES (1, 0)")
        told = "the view computes 1 / sum with sum = 0, where id = 1, a = 0"
        with pytest.raises(belvedere.DataError, match=told):
            con.execute("CREATE MATERIALIZED VIEW v AS SELECT id, 1 / sum(a) OVER () AS q FROM t")
