"""Sums of numerics in views: exact however long they are, and kept as amounts where every value has
the same digits after the point."""

from __future__ import annotations

import pytest

from tests.views.sql import opened

SUMS = {
    "sum(v)": True,
    "avg(v)": True,
    "sum(v * v)": True,
    "sum(v * (1 - d))": True,
    "sum(v + 1.250)": True,
    "sum(-v - d * 2)": True,
    "variance(v)": True,
    "stddev_pop(v)": True,
    "sum(v / 3)": False,
    "sum(u)": False,
    "sum(CASE WHEN id > 2 THEN v ELSE 0 END)": False,
}
"""Whether each is kept as amounts, rather than made again from the rows of its group."""

LONG = "123456789012345678901234567890123456"


@pytest.mark.parametrize(("text", "kept"), SUMS.items())
def test_a_sum_of_numerics_is_that_of_the_query(text: str, kept: bool) -> None:
    with opened() as store:
        store.run("CREATE TABLE t (id int PRIMARY KEY, v numeric(40,4), d numeric(5,2), u numeric)")
        query = f"SELECT id % 2 AS g, {text} AS total FROM t GROUP BY id % 2"
        told = str(store.run(f"EXPLAIN CREATE MATERIALIZED VIEW x AS {query}"))
        assert ("amounts" in told) is kept
        store.run(f"CREATE MATERIALIZED VIEW x AS {query}")
        for change in (
            f"INSERT INTO t VALUES (1, {LONG}.1234, 0.05, 1.5), (2, 0.0001, 1, 1.500)",
            "INSERT INTO t VALUES (3, -0.3333, 0, NULL)",
            f"INSERT INTO t VALUES (4, NULL, 7, 100), (5, -{LONG}, 99.99, 1e-30)",
            "UPDATE t SET v = v + 1, d = 0 WHERE id IN (1, 2)",
            "UPDATE t SET v = 'NaN' WHERE id = 3",
            "DELETE FROM t WHERE id = 3",
            "DELETE FROM t WHERE id = 1",
        ):
            store.run(change)
            found = sorted(map(str, store.run("SELECT * FROM x")))
            assert found == sorted(map(str, store.run(query))), change
