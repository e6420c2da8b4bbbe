"""ALTER MATERIALIZED VIEW .. SET (maintenance = ..) in a transaction that changes its tables."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import belvedere

QUERIES = {
    "rows": "SELECT id, b FROM t WHERE b > 1",
    "sums": "SELECT a, sum(b) AS s, count(*) AS n FROM t GROUP BY a",
    "extrema": "SELECT a, min(b) AS least, max(b) AS most FROM t GROUP BY a",
    "distinct": "SELECT a, count(DISTINCT b) AS n FROM t GROUP BY a",
    "outer": "SELECT t.id, r.b FROM t LEFT JOIN r ON t.a = r.a",
    "top": "SELECT id, b FROM t ORDER BY b DESC, id LIMIT 2",
    "window": "SELECT id, rank() OVER (PARTITION BY a ORDER BY b) AS k FROM t",
}
OTHER = {"immediate": "deferred", "deferred": "immediate"}


def _change(con: belvedere.Connection, source: random.Random) -> None:
    for _ in range(3):
        table, row = source.choice("tr"), [source.randint(1, 6) for _ in range(3)]
        con.execute(
            f"INSERT INTO {table} VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE"
            " SET a = excluded.a, b = excluded.b",
            row,
        )
        con.execute(f"DELETE FROM {table} WHERE id = ?", (source.randint(1, 6),))


@pytest.mark.parametrize("begin", [False, True], ids=["implicit", "begin"])
@pytest.mark.parametrize("name", QUERIES)
def test_the_changes_of_the_transaction_reach_the_view(
    tmp_path: Path, name: str, begin: bool
) -> None:
    query, source, now = QUERIES[name], random.Random(name), "immediate"
    with belvedere.connect(tmp_path / "store", durability="off") as con:
        for table in "tr":
            con.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, a int, b int)")
        con.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        con.commit()
        for before, after in ((True, False), (False, True), (True, True), (True, True)):
            now = OTHER[now]
            if begin:
                con.execute("BEGIN")
            if before:
                _change(con, source)
            con.execute(f"ALTER MATERIALIZED VIEW v SET (maintenance = '{now}')")
            if after:
                _change(con, source)
            for _ in range(2):  # inside of the transaction, and after it
                expected = sorted(map(repr, con.execute(query).fetchall()))
                assert sorted(map(repr, con.execute("SELECT * FROM v").fetchall())) == expected
                con.commit()
            con.execute("REFRESH MATERIALIZED VIEW v")
            (found,) = con.execute("VERIFY MATERIALIZED VIEW v").fetchall()
            assert found[-1] is True, found
            con.commit()


def test_a_rollback_leaves_the_maintenance_as_it_was(tmp_path: Path) -> None:
    with belvedere.connect(tmp_path / "store", durability="off") as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY)")
        con.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
        con.commit()
        con.execute("INSERT INTO t VALUES (1)")
        con.execute("ALTER MATERIALIZED VIEW v SET (maintenance = 'deferred')")
        con.rollback()
        con.execute("INSERT INTO t VALUES (2), (3)")
        con.commit()
        assert con.execute("SELECT n FROM v", freshness="any").fetchall() == [(2,)]
