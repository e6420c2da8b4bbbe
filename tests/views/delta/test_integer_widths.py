"""Views over joins of integers of different widths look partners up by key, whichever side changes,
and stay equal to their queries, also with values that the narrower column cannot hold."""

from __future__ import annotations

import random

import pytest

import belvedere

BIG = 2**40
VIEWS = {
    "sums": "SELECT r.name, count(*) AS n, sum(e.v) AS s FROM r JOIN e ON e.region = r.id"
    " GROUP BY r.name",
    "rows": "SELECT e.id, r.name FROM e JOIN r ON r.id = e.region WHERE e.v > 2",
    "chain": "SELECT e.id, r.name, s.v FROM s JOIN e ON e.id = s.event JOIN r ON r.id = e.region",
    "small": "SELECT e.id, s.id AS other FROM e, s WHERE s.tiny = e.region AND s.v < e.v",
    "outer_rows": "SELECT r.id, e.v FROM r LEFT JOIN e ON e.region = r.id",
    "semi": "SELECT r.id FROM r WHERE EXISTS (SELECT 1 FROM e WHERE e.region = r.id AND e.v > 5)",
}
LOOKED_UP = ("sums", "rows", "chain", "small")
SCHEMA = (
    "CREATE TABLE r (id bigint PRIMARY KEY, name text)",
    "CREATE TABLE e (id int PRIMARY KEY, region int, v int)",
    "CREATE INDEX ON e (region)",
    "CREATE TABLE s (id int PRIMARY KEY, event bigint, tiny smallint, v int)",
    "CREATE INDEX ON s (event)",
    "CREATE INDEX ON s (tiny)",
)


def change_tables(con: belvedere.Connection, rng: random.Random, size: int) -> None:
    regions = [0, 1, 2, 3, 7, -1, 2**31 - 1, -(2**31), None]
    wide = [0, 1, 2, 3, 7, -1, 2**31 - 1, -(2**31), 2**31, BIG, -BIG]
    for _ in range(size):
        key, value = rng.randrange(40), rng.randrange(10)
        match rng.randrange(6):
            case 0:
                con.execute("DELETE FROM e WHERE id = ?", (key,))
            case 1:
                con.execute("DELETE FROM s WHERE id = ?", (key,))
            case 2:
                con.execute(
                    "INSERT INTO r VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = r.name||'x'",
                    (rng.choice(wide), f"r{value}"),
                )
            case 3:
                con.execute("DELETE FROM r WHERE id = ?", (rng.choice(wide),))
            case 4:
                con.execute(
                    "INSERT INTO s VALUES (?, ?, ?, ?) ON CONFLICT (id)"
                    " DO UPDATE SET event = excluded.event, tiny = excluded.tiny",
                    (key, rng.choice([*range(40), *wide]), rng.choice([0, 1, -1, None]), value),
                )
            case _:
                con.execute(
                    "INSERT INTO e VALUES (?, ?, ?) ON CONFLICT (id)"
                    " DO UPDATE SET region = excluded.region, v = excluded.v",
                    (key, rng.choice(regions), value),
                )


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
@pytest.mark.parametrize("size", [1, 30])
def test_views_over_integers_of_other_widths_equal_their_queries(
    maintenance: str, size: int
) -> None:
    rng = random.Random(size)
    with belvedere.connect(":memory:", autocommit=True) as con:
        for statement in SCHEMA:
            con.execute(statement)
        for name, query in VIEWS.items():
            con.execute(
                f"CREATE MATERIALIZED VIEW {name} WITH (maintenance = '{maintenance}') AS {query}"
            )
        con.execute("SET rewrite = off")
        for _ in range(60 // size + 5):
            con.execute("BEGIN")
            change_tables(con, rng, size)
            con.execute("COMMIT")
            for name, query in VIEWS.items():
                con.execute(f"REFRESH MATERIALIZED VIEW {name}")
                shown = sorted(con.execute(f"SELECT * FROM {name}").fetchall(), key=repr)
                assert shown == sorted(con.execute(query).fetchall(), key=repr), name


def test_partners_are_looked_up_by_key() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        for statement in SCHEMA:
            con.execute(statement)
        for name in LOOKED_UP:
            con.execute(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
            lines = con.execute(f"EXPLAIN MATERIALIZED VIEW {name}").fetchall()
            told = "\n".join([line for (line,) in lines])
            assert "inner lookup" in told
            assert "full scan" not in told, told
