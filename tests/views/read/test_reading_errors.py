"""A query that fails by what a view computes for its readers names view, expression and row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere

TABLES = (
    "CREATE TABLE c (id INT PRIMARY KEY)",
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, g INT)",
    "INSERT INTO c VALUES (1), (2)",
    "INSERT INTO t VALUES (1, 1, 1)",
)
FAILS = "INSERT INTO t VALUES (2, 0, 2)"
SUM = "SELECT g, 10 / sum(a) AS q FROM t GROUP BY g"
TOLD = "division by zero (view=v)\ndetail: the view computes 10 / sum with sum = 0, where g = 2"
READ_LATER = (
    (SUM, TOLD),
    (
        "SELECT g, 10 / avg(a) AS q FROM t GROUP BY g",
        "10::numeric / avg with avg = 0.00000000000000000000, where g = 2",
    ),
    ("SELECT g FROM t GROUP BY g HAVING 10 / sum(a) > 1", TOLD),
    ("SELECT g, sum(a) AS s, 10 / sum(a) AS q FROM t GROUP BY g", TOLD),
)
COMPUTED_AT_ONCE = (
    ("SELECT g, 10 / max(a) AS q FROM t GROUP BY g", "10 / max with max = 0, where g = 2, for the"),
    (
        "SELECT id, 10 / sum(a) OVER (PARTITION BY g) AS q FROM t",
        "10 / sum with sum = 0, where id = 2, a = 0, g = 2, for the row (id) = (2) of t",
    ),
    (
        "SELECT g, 10 / s AS q FROM (SELECT g, sum(a) AS s FROM t GROUP BY g) x JOIN c ON c.id = g",
        "10 / s with s = 0, where g = 2, id = 2, for the row (id) = (2) of t",
    ),
    (
        f"{SUM} ORDER BY q LIMIT 2",
        "10 / sum with sum = 0, where g = 2, for the row (id) = (2) of t",
    ),
)


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as found:
        for statement in TABLES:
            found.execute(statement)
        yield found


def fail(con: belvedere.Connection, statement: str, freshness: str = "session") -> str:
    with pytest.raises(belvedere.DataError) as raised:
        con.execute(statement, freshness=freshness).fetchall()
    return str(raised.value)


def create(con: belvedere.Connection, maintenance: str, definition: str, name: str = "v") -> None:
    options = f"WITH (maintenance = '{maintenance}')"
    con.execute(f"CREATE MATERIALIZED VIEW {name} {options} AS {definition}")


@pytest.mark.parametrize(("definition", "told"), READ_LATER)
@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_what_readers_compute_names_view_expression_and_row(
    con: belvedere.Connection, definition: str, told: str, maintenance: str
) -> None:
    create(con, maintenance, definition)
    con.execute(FAILS)
    for freshness in ("session", "latest"):
        assert told in fail(con, "SELECT * FROM v", freshness)
        assert told in fail(con, "SELECT * FROM v WHERE g = 2", freshness)
    con.execute("REFRESH MATERIALIZED VIEW v")
    assert told in fail(con, "VERIFY MATERIALIZED VIEW v")
    assert told in fail(con, "SELECT * FROM v", "any")


@pytest.mark.parametrize(("definition", "told"), COMPUTED_AT_ONCE)
@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_what_maintenance_computes_of_groups_names_them(
    con: belvedere.Connection, definition: str, told: str, maintenance: str
) -> None:
    create(con, maintenance, definition)
    if maintenance == "deferred" and "LIMIT" not in definition:  # its auxiliary view is immediate
        con.execute(FAILS)
        error = fail(con, "SELECT * FROM v")
    else:
        error = fail(con, FAILS)
    assert "(view=v)" in error
    assert told in error


def test_a_fill_names_the_group(con: belvedere.Connection) -> None:
    con.execute(FAILS)
    error = fail(con, "CREATE MATERIALIZED VIEW v AS SELECT g, 10 / max(a) FROM t GROUP BY g")
    assert error.endswith("the view computes 10 / max with max = 0, where g = 2")


@pytest.mark.parametrize("tier", ["direct", "duckdb", "auto"])
def test_every_tier_names_it(con: belvedere.Connection, tier: str) -> None:
    create(con, "immediate", SUM)
    con.execute(FAILS)
    con.execute(f"SET tier = '{tier}'")
    assert fail(con, "SELECT * FROM v ORDER BY q") == TOLD
    assert fail(con, "SELECT * FROM v WHERE g = 2") == TOLD
    assert fail(con, "SELECT * FROM v WHERE g = 2") == TOLD  # by the kept plan


def test_a_stream_names_it(con: belvedere.Connection) -> None:
    create(con, "immediate", SUM)
    con.execute(FAILS)
    with pytest.raises(belvedere.DataError) as raised:
        list(con.stream("SELECT * FROM v"))
    assert str(raised.value) == TOLD


def test_copy_names_it(con: belvedere.Connection, tmp_path: Path) -> None:
    create(con, "immediate", SUM)
    con.execute(FAILS)
    assert fail(con, f"COPY (SELECT * FROM v) TO '{tmp_path}/v.csv'") == TOLD
    assert not list(tmp_path.iterdir())


def test_changes_of_the_transaction_are_seen(con: belvedere.Connection) -> None:
    create(con, "deferred", SUM)
    con.execute("BEGIN")
    con.execute(FAILS)
    assert fail(con, "SELECT * FROM v") == TOLD


def test_a_view_over_a_failing_view_names_itself(con: belvedere.Connection) -> None:
    create(con, "immediate", SUM)
    create(con, "immediate", "SELECT g, q + 1 AS r FROM v", "w")
    con.execute(FAILS)
    told = "division by zero (view=w)\ndetail: the view computes 10 / sum with sum = 0, where g = 2"
    assert fail(con, "SELECT * FROM w") == told
    assert fail(con, "SELECT w.r FROM c JOIN w ON w.g = c.id") == told


def test_a_query_that_fails_by_itself_does_not_blame_a_view(con: belvedere.Connection) -> None:
    create(con, "immediate", SUM)
    assert fail(con, "SELECT 1 / (g - 1) FROM v") == "division by zero"
