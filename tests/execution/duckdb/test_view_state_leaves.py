"""DuckDB reads the state of views as columns, and the values of its amounts are exact there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.codec.arrow import state_to_arrow
from belvedere.interfaces.dbapi import Connection, connect

VIEW = """
CREATE MATERIALIZED VIEW sums WITH (maintenance = 'immediate') AS
SELECT g, s, count(*) AS rows, count(v) AS n, sum(v) AS total, sum(w) AS small,
  avg(w) AS mean, avg(v) AS wide, sum(p) AS money, sum(p + 0.001) AS more
FROM t GROUP BY g, s
"""


@pytest.fixture
def shop() -> Iterator[Connection]:
    with connect(":memory:") as made:
        made.execute(
            "CREATE TABLE t (id int PRIMARY KEY, g int, s text, v bigint, w int, p numeric(12,2))"
        )
        made.execute(
            "INSERT INTO t SELECT i, nullif(i % 40, 7), 't' || i % 3, nullif(i * 77 % 91, 9) - 40,"
            " nullif(i % 13, 4), nullif(i % 7, 3) * 1.25 - 3 FROM generate_series(1, 400) s (i)"
        )
        made.execute("INSERT INTO t (id, g) VALUES (401, 1000), (402, NULL)")
        made.commit()
        made.execute(VIEW)
        made.commit()
        yield made


def answers(shop: Connection, query: str) -> list[list[object]]:
    found = []
    for tier in ("direct", "duckdb"):
        shop.execute(f"SET tier = {tier}")
        rows = shop.execute(query).fetchall()
        found.append([(type(one), str(one)) for row in rows for one in row])
    return found  # type: ignore[return-value]


def explained(shop: Connection, query: str) -> str:
    return "\n".join(row[0] for row in shop.execute(f"EXPLAIN ANALYZE {query}").fetchall())


@pytest.mark.parametrize(
    "column", ["rows", "n", "total", "small", "mean", "wide", "money", "more", "s"]
)
def test_values_of_amounts_are_those_of_python(shop: Connection, column: str) -> None:
    query = f"SELECT {column}, g FROM sums ORDER BY {column} DESC, g, s"
    direct, columnar = answers(shop, query)
    assert direct == columnar
    told = explained(shop, query)
    assert "reads sums: scan" in told
    assert "Python" not in told


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM sums",
        "SELECT sum(total), max(small) FROM sums WHERE n > 1",
        "SELECT g, max(money) FROM sums WHERE g BETWEEN 3 AND 9 GROUP BY g ORDER BY g",
        "SELECT t.id, s.total FROM t JOIN sums s ON s.g = t.g AND s.s = t.s ORDER BY t.id",
        "SELECT a.g, b.total FROM sums a JOIN sums b ON a.g = b.g ORDER BY 1, 2",
    ],
)
def test_queries_over_state_give_what_python_gives(shop: Connection, query: str) -> None:
    direct, columnar = answers(shop, query)
    assert direct == columnar


@pytest.mark.parametrize("value", [2**62, -(2**62)])
def test_totals_beyond_eight_bytes_are_read_by_python(shop: Connection, value: int) -> None:
    shop.execute(
        f"INSERT INTO t (id, g, v) SELECT i, 2000, {value} FROM generate_series(501, 504) s (i)"
    )
    query = "SELECT g, total, wide FROM sums WHERE total IS NOT NULL ORDER BY total, g, s"
    direct, columnar = answers(shop, query)
    assert direct == columnar
    assert str(4 * value) in str(direct)


def test_nan_is_read_by_python(shop: Connection) -> None:
    shop.execute("INSERT INTO t (id, g, p) VALUES (501, 2000, 'NaN')")
    direct, columnar = answers(shop, "SELECT g, money FROM sums ORDER BY money, g, s")
    assert direct == columnar
    assert "NaN" in str(direct)


def test_no_row_is_made_of_a_state_that_becomes_columns(
    shop: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    convert = state_to_arrow.states_to_arrow

    def watch(*given: object) -> object:
        made.append(1)
        return convert(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("belvedere.execution.duckdb.leaves.states_to_arrow", watch)
    shop.execute("SET tier = duckdb")
    shop.execute("SELECT sum(total) FROM sums").fetchall()
    assert made
