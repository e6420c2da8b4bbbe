"""ORDER BY with LIMIT, OFFSET and OR by keys: the answers of a table without indexes, and few rows
read."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import belvedere
from belvedere.execution.memory_limit import Memory

ROWS = 3_000
TIERS = ("direct", "duckdb", "auto")
INDEXES = ("v", "a, v DESC", "a", "w DESC NULLS LAST", "a, w", "b")


@pytest.fixture(scope="module")
def con() -> Iterator[belvedere.Connection]:
    """`t` has indexes, `plain` the same rows and none."""
    with belvedere.connect(":memory:", autocommit=True) as opened:
        for name in ("t", "plain"):
            opened.execute(
                f"CREATE TABLE {name} (id int PRIMARY KEY, a int NOT NULL, v int, w int, b int)"
            )
        for columns in INDEXES:
            opened.execute(f"CREATE INDEX ON t ({columns})")
        opened.execute("CREATE INDEX ON t (w) WHERE a = 1")
        opened.execute("CREATE UNIQUE INDEX ON t (b, id)")
        chosen = random.Random(7)
        rows = [
            (
                number,
                chosen.randrange(10),
                None if chosen.random() < 0.1 else chosen.randrange(ROWS),
                None if chosen.random() < 0.3 else chosen.randrange(50),
                chosen.randrange(ROWS),
            )
            for number in range(ROWS)
        ]
        for name in ("t", "plain"):
            opened.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)", rows)
        opened.execute("ANALYZE")
        yield opened


def make_condition(chosen: random.Random, depth: int = 0) -> str:
    kinds = [
        "{c} > {n}",
        "{c} <= {n}",
        "{c} = {n}",
        "{c} IS NULL",
        "a = {k}",
        "a = {k}",
        "id > {n}",
    ]
    kinds += ["{c} IN ({n}, {k})", "({c}, id) > ({n}, {k})", "{c} BETWEEN {k} AND {n}"]
    if depth < 2 and chosen.random() < 0.4:
        parts = [make_condition(chosen, depth + 1) for _ in range(chosen.randint(2, 3))]
        return "(" + chosen.choice([" OR ", " AND "]).join(parts) + ")"
    column = chosen.choice(["v", "w", "b", "id"])
    high = {"w": 50}.get(column, ROWS)
    return chosen.choice(kinds).format(c=column, n=chosen.randrange(high), k=chosen.randrange(10))


def make_order(chosen: random.Random) -> str:
    """A total order: the primary key is the last of it."""
    columns = [*chosen.sample(["a", "v", "w", "b"], chosen.randint(0, 2)), "id"]
    ends = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]
    direction = chosen.choice(ends)
    return ", ".join(
        column + (direction if chosen.random() < 0.8 else chosen.choice(ends)) for column in columns
    )


def make_query(chosen: random.Random) -> str:
    text = "SELECT " + chosen.choice(["*", "id", "id, v", "v, w, id"]) + " FROM {table}"
    if chosen.random() < 0.8:
        text += " WHERE " + make_condition(chosen)
    text += f" ORDER BY {make_order(chosen)} LIMIT {chosen.randrange(30)}"
    if chosen.random() < 0.3:
        text += f" OFFSET {chosen.choice([1, 99, 100, 101, 1500, 5000])}"
    return text


@pytest.mark.parametrize("seed", range(120))
def test_rows_in_order_are_those_of_a_table_without_indexes(
    con: belvedere.Connection, seed: int
) -> None:
    query = make_query(random.Random(seed))
    con.execute("SET tier = direct")
    wanted = con.execute(query.format(table="plain")).fetchall()
    for tier in TIERS:
        con.execute(f"SET tier = {tier}")
        assert con.execute(query.format(table="t")).fetchall() == wanted, query


@pytest.mark.parametrize("seed", range(50))
def test_rows_of_an_or_come_as_often_as_they_are_stored(
    con: belvedere.Connection, seed: int
) -> None:
    chosen = random.Random(seed)
    parts = [make_condition(chosen, 1) for _ in range(chosen.randint(2, 4))]
    query = "SELECT id, v FROM {table} WHERE " + " OR ".join(parts)
    found = []
    for table, tier in (("plain", "direct"), ("t", "direct"), ("t", "duckdb")):
        con.execute(f"SET tier = {tier}")
        found.append(sorted(con.execute(query.format(table=table)).fetchall(), key=repr))
    assert found[0] == found[1] == found[2], query


def test_changes_by_an_or_change_each_row_once(con: belvedere.Connection) -> None:
    con.execute("SET tier = auto")
    condition = "b = 5 OR v = 5 OR id = 5"
    (count,) = con.execute(f"SELECT count(*) FROM plain WHERE {condition}").fetchone() or ()
    con.execute("BEGIN")
    assert con.execute(f"UPDATE t SET w = w + 1 WHERE {condition}").rowcount == count
    assert con.execute(f"DELETE FROM t WHERE {condition}").rowcount == count
    con.execute("ROLLBACK")


FEW_ROWS = {
    "a range in its order": ("SELECT * FROM t WHERE v > ? ORDER BY v LIMIT 20", (100,), 64),
    "in reverse": ("SELECT * FROM t WHERE v < ? ORDER BY v DESC LIMIT 20", (2900,), 64),
    "nulls last": ("SELECT * FROM t WHERE v > ? ORDER BY v DESC NULLS LAST LIMIT 9", (9,), 64),
    "by prefix and key": ("SELECT * FROM t WHERE a = ? ORDER BY id LIMIT 5", (3,), 64),
    "prefix, then range": ("SELECT id FROM t WHERE a = ? AND id > ? LIMIT 5", (3, 50), 64),
    "keyset": ("SELECT id, v FROM t WHERE (v, id) > (?, ?) ORDER BY v, id LIMIT 9", (9, 3), 64),
    "either of two": ("SELECT id FROM t WHERE b = ? OR v = ?", (3, 4), 20),
    "either, with more": ("SELECT id FROM t WHERE (b = ? OR v = ?) AND a = 1", (3, 4), 20),
}


@pytest.mark.parametrize("name", FEW_ROWS)
def test_few_rows_are_read(
    con: belvedere.Connection, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, parameters, most = FEW_ROWS[name]
    con.execute("SET tier = auto")
    read: list[int] = []

    def count_read(memory: Any, count: int) -> None:
        read.append(count)

    monkeypatch.setattr(Memory, "count_read", count_read)
    con.execute(query, parameters).fetchall()
    assert 0 < sum(read) <= most
