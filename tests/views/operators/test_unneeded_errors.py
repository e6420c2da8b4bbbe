"""What fails in a sub-query fails a view only where a row of the view needs it, as in the query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import belvedere

QUOTIENT = "SELECT 10 / count(*) AS q FROM"
QUERIES = {
    "scalar": f"SELECT a FROM t WHERE a > ({QUOTIENT} t)",
    "scalar of another table": f"SELECT a FROM t WHERE b = 1 AND a > ({QUOTIENT} u)",
    "column": f"SELECT a, ({QUOTIENT} t) AS q FROM t",
    "guarded column": (
        f"SELECT a, CASE WHEN EXISTS (SELECT 1 FROM u) THEN ({QUOTIENT} u) END AS q FROM t"
    ),
    "from": f"SELECT a FROM t, ({QUOTIENT} t) s WHERE a > q",
    "left join": f"SELECT a FROM t LEFT JOIN ({QUOTIENT} t) s ON a > q",
    "lateral": f"SELECT a, q FROM t, LATERAL ({QUOTIENT} u WHERE u.a = t.a) s",
    "with": f"WITH s AS ({QUOTIENT} t) SELECT a, q FROM t, s",
    "in": f"SELECT a FROM t WHERE a IN ({QUOTIENT} t)",
    "in rows": "SELECT a FROM t WHERE (a, b) IN (SELECT 10 / count(*), 1 FROM u)",
    "not in": f"SELECT a FROM t WHERE a NOT IN ({QUOTIENT} t)",
    "any": f"SELECT a FROM t WHERE a > ANY ({QUOTIENT} t)",
    "all": f"SELECT a FROM t WHERE a > ALL ({QUOTIENT} u)",
    "exists": "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u HAVING 10 / count(*) > 1)",
    "having": f"SELECT b, count(*) AS n FROM t GROUP BY b HAVING count(*) > ({QUOTIENT} u)",
    "having in": f"SELECT a, sum(b) AS n FROM t GROUP BY a HAVING sum(b) IN ({QUOTIENT} u)",
    "limit": f"SELECT a FROM t WHERE a > ({QUOTIENT} u) ORDER BY a LIMIT 3",
    "sum": f"SELECT sum(a / q) AS n FROM t, ({QUOTIENT} u) s",
    "window": f"SELECT a, rank() OVER (ORDER BY a) AS n FROM t, ({QUOTIENT} u) s",
}
HISTORY = (
    "INSERT INTO t VALUES (1, 1), (12, 2) ON CONFLICT DO NOTHING",
    "INSERT INTO u VALUES (1, 1), (2, 1) ON CONFLICT DO NOTHING",
    "INSERT INTO t VALUES (3, 1), (10, 2) ON CONFLICT DO NOTHING",
    "DELETE FROM u",
    "INSERT INTO u VALUES (1, 1) ON CONFLICT DO NOTHING",
    "DELETE FROM t",
    "DELETE FROM u",
    "INSERT INTO t VALUES (5, 1) ON CONFLICT DO NOTHING",
    "BEGIN; DELETE FROM t; DELETE FROM u; COMMIT",
)


def answer(read: Callable[[], list[Any]]) -> list[str] | str:
    try:
        return sorted(map(repr, read()))
    except belvedere.DataError as error:
        return str(error.sqlstate)


def run(con: belvedere.Connection, statement: str) -> bool:
    """Whether a statement succeeded; it may only fail by a division."""
    try:
        con.execute(statement)
    except belvedere.DataError as error:
        if error.sqlstate != "22012":
            raise
        return False
    return True


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_view_over_empty_tables_fails_only_where_its_query_fails(
    query: str, maintenance: str
) -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
        con.execute("CREATE TABLE u (a int PRIMARY KEY, b int)")
        con.execute(f"CREATE MATERIALIZED VIEW v WITH (maintenance = '{maintenance}') AS {query}")
        for statement in ("SELECT 1", *HISTORY):
            if not run(con, statement):
                con.rollback()
            expected = answer(lambda: con.execute(query).fetchall())
            assert answer(lambda: con.execute("SELECT * FROM v").fetchall()) == expected
        assert con.execute("VERIFY MATERIALIZED VIEW v").fetchall()[0][-1]


def test_a_failed_change_is_one_that_the_query_could_not_show() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (a int PRIMARY KEY)")
        con.execute("CREATE TABLE u (a int PRIMARY KEY)")
        con.execute(
            "CREATE MATERIALIZED VIEW v AS SELECT a, q FROM t, (SELECT 10 / count(*) AS q FROM u) s"
        )
        con.execute("INSERT INTO u VALUES (1)")
        con.execute("DELETE FROM u")
        with pytest.raises(belvedere.DataError, match="division by zero"):
            con.execute("INSERT INTO t VALUES (1)")
        con.execute("BEGIN; INSERT INTO t VALUES (1); INSERT INTO u VALUES (1), (2); COMMIT")
        assert con.execute("SELECT * FROM v").fetchall() == [(1, 5)]
        with pytest.raises(belvedere.DataError, match="division by zero"):
            con.execute("DELETE FROM u")
