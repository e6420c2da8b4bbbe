"""Estimated rows of plans, where the columns of a key depend on each other, or years are few."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import belvedere

SCHEMA = (
    "CREATE TABLE offers (part int, seller int, price int, PRIMARY KEY (part, seller))",
    "CREATE TABLE sales (id int PRIMARY KEY, part int NOT NULL, seller int NOT NULL, day date)",
    "INSERT INTO offers SELECT g / 4, (g / 4 * 7 + g % 4 * 13) % 100, g"
    " FROM generate_series(0, 1999) AS g",
    "INSERT INTO sales SELECT g, part, seller, date '2020-01-01' + g % 1000"
    " FROM generate_series(1, 3000) AS g JOIN offers ON price = g % 2000",
)


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as found:
        for statement in SCHEMA:
            found.execute(statement)
        yield found


def _estimate(con: belvedere.Connection, query: str) -> int:
    first = con.execute(f"EXPLAIN {query}").fetchall()[0][0]
    found = re.search(r"\(rows=(\d+)\)", first)
    assert found is not None
    return int(found[1])


def test_a_join_along_a_key_of_two_columns_keeps_every_row(con: belvedere.Connection) -> None:
    query = "SELECT s.id, o.price FROM sales s, offers o WHERE s.part = o.part"
    assert 2_000 < _estimate(con, f"{query} AND s.seller = o.seller") <= 3_500


def test_years_of_a_column_are_as_many_as_it_spans(con: belvedere.Connection) -> None:
    query = "SELECT extract(year FROM day), count(*) FROM sales GROUP BY 1"
    assert len(con.execute(query).fetchall()) == 3
    assert _estimate(con, query) == 3
