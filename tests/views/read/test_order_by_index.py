"""The first rows of a view in the order of one of its indexes are read from the index."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere

ORDERED = (
    "SELECT total FROM s ORDER BY total DESC LIMIT 5",
    "SELECT total FROM s ORDER BY total LIMIT 5 OFFSET 7",
    "SELECT g, n FROM s ORDER BY total DESC, g DESC LIMIT ?",
    "SELECT total * 2 FROM s ORDER BY total LIMIT ?",
    "SELECT a FROM t ORDER BY a LIMIT ?",
)
NOT_ORDERED = (
    "SELECT g FROM s ORDER BY total DESC, g LIMIT 5",
    "SELECT g FROM s ORDER BY n DESC LIMIT 5",
    "SELECT g FROM s ORDER BY total + 1 LIMIT 5",
    "SELECT g FROM s WHERE n > 1 ORDER BY total LIMIT 5",
    "SELECT g FROM s ORDER BY total",
    "SELECT a, b FROM t ORDER BY a LIMIT ?",
)


@pytest.fixture(scope="module")
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute("CREATE TABLE t (id int PRIMARY KEY, g int NOT NULL, a int, b text)")
        opened.execute(
            "INSERT INTO t SELECT i, i % 300, nullif((i * 7919) % 1009, 5) - 500, 'b' || i"
            " FROM generate_series(1, 900) i"
        )
        opened.execute(
            "CREATE MATERIALIZED VIEW s AS"
            " SELECT g, count(*) AS n, sum(a) FILTER (WHERE g % 10 <> 0) AS total FROM t GROUP BY g"
        )
        opened.execute("CREATE INDEX by_total ON s (total)")
        opened.execute("CREATE INDEX by_a ON t (a) WITH (maintenance = 'deferred')")
        yield opened


def values_of(query: str) -> tuple[int, ...]:
    return (9,) if "?" in query else ()


def explain(con: belvedere.Connection, query: str) -> str:
    return "\n".join(row[0] for row in con.execute(f"EXPLAIN {query}", values_of(query)))


@pytest.mark.parametrize("query", ORDERED)
def test_the_first_rows_are_read_from_the_index(con: belvedere.Connection, query: str) -> None:
    plan = explain(con, query)
    assert "Scan by_total (" in plan or "Scan by_a (" in plan
    assert "full ordered" in plan
    assert "tier: direct" in plan


@pytest.mark.parametrize("query", NOT_ORDERED)
def test_another_order_a_condition_or_all_rows_are_not(
    con: belvedere.Connection, query: str
) -> None:
    plan = explain(con, query)
    assert "Scan by_total (" not in plan
    assert "Scan by_a (" not in plan


@pytest.mark.parametrize("query", ORDERED)
@pytest.mark.parametrize("change", [None, "UPDATE t SET a = 100000 WHERE id IN (3, 40, 51)"])
def test_answers_are_those_of_a_sort(
    con: belvedere.Connection, query: str, change: str | None
) -> None:
    definition = (
        "SELECT g, count(*) AS n, sum(a) FILTER (WHERE g % 10 <> 0) AS total FROM t GROUP BY g"
    )
    plain = query.replace("FROM s", f"FROM ({definition} OFFSET 0) s")
    plain = plain.replace("FROM t ORDER", "FROM (SELECT * FROM t OFFSET 0) t ORDER")
    con.execute("BEGIN")
    try:
        con.execute(change) if change else None
        found = con.execute(query, values_of(query)).fetchall()
        assert found == con.execute(plain, values_of(query)).fetchall()
        assert found
    finally:
        con.execute("ROLLBACK")
