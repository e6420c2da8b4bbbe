"""A view is read by its key where a condition names it, and gives what its query gives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.views.cost.test_cost_estimate import counted
from tests.views.sql import Store, opened

QUERIES = {
    "counted": "SELECT g, count(*) AS n, sum(v) AS total FROM t GROUP BY g",
    "twice": "SELECT g, k, max(v) AS most FROM t GROUP BY g, k",
    "large": "SELECT g, count(*) AS n FROM t GROUP BY g HAVING count(*) > 2",
    "rows": "SELECT g, v FROM t WHERE v > 1",
    "joined": "SELECT a.g, b.v FROM t a LEFT JOIN t b ON b.v = a.g",
    "texts": "SELECT name, count(*) AS n FROM t GROUP BY name",
    "sums": "SELECT g + 1 AS h, sum(d) AS total FROM t GROUP BY g + 1",
}

READS = [
    ("counted", "g = 3"),
    ("counted", "g IN (1, 2, NULL, 2)"),
    ("counted", "g IS NULL"),
    ("counted", "g BETWEEN 2 AND 4"),
    ("counted", "g = 3 AND n > 1"),
    ("counted", "n = 2"),
    ("counted", "g = 99"),
    ("counted", "g = 3 AND g = 4"),
    ("counted", "g = ANY (ARRAY[1, 5, NULL])"),
    ("twice", "g = 1"),
    ("twice", "g = 1 AND k = 1"),
    ("twice", "g = 1 AND k > 0"),
    ("twice", "k = 1"),
    ("twice", "g IS NULL AND k = 0"),
    ("large", "g = 1"),
    ("large", "g = 7"),
    ("rows", "g = 2"),
    ("rows", "g = 2 AND v = 2"),
    ("rows", "g IS NULL"),
    ("joined", "g = 2"),
    ("joined", "v IS NULL"),
    ("texts", "name = 'b'"),
    ("texts", "name LIKE 'a%'"),
    ("sums", "h = 2"),
    ("sums", "h > 4"),
]


@pytest.fixture(scope="module", params=["immediate", "deferred"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    with opened() as made:
        made.run(
            "CREATE TABLE t (id int PRIMARY KEY, g int, k int, v int, d numeric(8,2), name text)"
        )
        for name, query in QUERIES.items():
            made.run(
                f"CREATE MATERIALIZED VIEW {name} WITH (maintenance = '{request.param}') AS {query}"
            )
        made.run(
            "INSERT INTO t SELECT i, nullif(i % 9, 8), i % 2, i % 5, i / 4.0, chr(97 + i % 4)"
            " || repeat('x', i % 2) FROM generate_series(1, 40) AS s (i)",
            "DELETE FROM t WHERE id IN (7, 8, 9, 10)",
            "UPDATE t SET g = 3 WHERE id = 11",
        )
        yield made


@pytest.mark.parametrize(("view", "condition"), READS)
def test_a_condition_on_a_view_selects_what_it_selects_of_the_query(
    store: Store, view: str, condition: str
) -> None:
    found = store.run(f"SELECT * FROM {view} WHERE {condition}")
    expected = store.run(f"SELECT * FROM ({QUERIES[view]}) q WHERE {condition}")
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def test_a_row_of_a_view_is_one_get() -> None:
    with opened() as store:
        store.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
        store.run(
            "INSERT INTO t SELECT i, i % 500, i FROM generate_series(1, 1000) AS s (i)",
            "CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS n FROM t GROUP BY g",
        )
        for text, found, read in (
            ("SELECT n FROM v WHERE g = 7", 1, 0),
            ("SELECT n FROM v WHERE g BETWEEN 7 AND 9", 3, 3),
        ):
            store.run(text)  # planned, with the statistics that this takes
            with counted() as rows:
                assert len(store.run(text)) == found
            assert sum(rows) == read


@pytest.mark.parametrize("condition", ["g = 7", "g IN (3, 4)", "g BETWEEN 2 AND 4", "n = 2"])
def test_a_group_of_a_local_view_is_looked_up_in_every_partition(condition: str) -> None:
    query = "SELECT g, count(*) AS n, sum(v) AS total FROM t GROUP BY g"
    with opened() as store:
        store.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int) WITH (partitions = 4)")
        store.run(
            "INSERT INTO t SELECT i, i % 50, i FROM generate_series(1, 100) AS s (i)",
            f"CREATE MATERIALIZED VIEW v WITH (placement = 'local') AS {query}",
            "DELETE FROM t WHERE id = 57",
        )
        expected = store.run(f"SELECT * FROM ({query}) q WHERE {condition}")
        store.run(f"SELECT * FROM v WHERE {condition}")  # planned, with statistics
        with counted() as read:
            found = store.run(f"SELECT * FROM v WHERE {condition}")
        assert sorted(found) == sorted(expected)
        assert expected
        if condition.startswith("g"):
            assert sum(read) <= 4 * 3  # of some hundred entries
