"""Merge joins give what hash joins give: NULLs, repeated keys, conditions, all kinds of join."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import belvedere
from belvedere.execution.python.operators.merge_join import merge_join, merge_outer_join
from belvedere.plan import nodes as n
from belvedere.sql.rules.joins import merge_joins
from belvedere.types import INTEGER, Row


def side(chosen: random.Random, count: int) -> list[Row]:
    """Rows in the order of their first column; NULLs anywhere after what they do not disturb."""
    keys: list[Any] = sorted(chosen.randrange(12) for _ in range(count))
    for _ in range(chosen.randrange(3)):
        keys.insert(chosen.randrange(len(keys) + 1), None)
    return [(key, chosen.randrange(3), number) for number, key in enumerate(keys)]


def node_of(kind: n.JoinKind) -> n.Join:
    fields = tuple(n.Field(name, INTEGER) for name in "abc")
    return n.Join(kind, n.Values((), fields), n.Values((), fields))


def expected(kind: n.JoinKind, left: list[Row], right: list[Row], test: Any) -> list[Row]:
    pairs = [
        (one, other)
        for one in left
        for other in right
        if one[0] is not None and one[0] == other[0] and (test is None or test(one, other))
    ]
    rows = [one + other for one, other in pairs]
    nothing = (None, None, None)
    if kind is n.JoinKind.FULL:
        rows += [one + nothing for one in left if one not in [pair[0] for pair in pairs]]
    return rows + [nothing + other for other in right if other not in [pair[1] for pair in pairs]]


@pytest.mark.parametrize("kind", [n.JoinKind.RIGHT, n.JoinKind.FULL])
@pytest.mark.parametrize("test", [None, lambda one, other: one[1] == other[1]])
def test_outer_rows_come_once(kind: n.JoinKind, test: Any) -> None:
    for seed in range(60):
        chosen = random.Random(seed)
        left, right = side(chosen, chosen.randrange(15)), side(chosen, chosen.randrange(15))
        keys = (lambda row: row[0], lambda row: row[0])
        found = merge_outer_join(iter(left), iter(right), keys, node_of(kind), test)
        wanted = expected(kind, left, right, test)
        assert sorted(map(repr, found)) == sorted(map(repr, wanted)), f"seed {seed}"


def test_a_merge_join_reads_no_further_than_it_must() -> None:
    read: list[int] = []

    def rows() -> Iterator[Row]:
        for number in range(1000):
            read.append(number)
            yield (number,)

    keys = (lambda row: row[0], lambda row: row[0])
    emit = lambda row, matches: [row + other for other in matches]  # noqa: E731
    found = merge_join(iter([(3,), (4,)]), rows(), keys, emit, None)
    assert list(found) == [(3, 3), (4, 4)]
    assert len(read) < 10


QUERIES = [
    "SELECT {} FROM a JOIN b ON a.id = b.id",
    "SELECT {} FROM a LEFT JOIN b ON a.id = b.id AND a.v < b.v",
    "SELECT {} FROM a RIGHT JOIN b ON a.id = b.id",
    "SELECT {} FROM a FULL JOIN b ON a.id = b.id AND a.v < b.v",
    "SELECT {} FROM a FULL JOIN lines b ON a.id = b.id",
    "SELECT {} FROM a LEFT JOIN lines b ON a.id = b.id AND b.v % 3 = 0",
    "SELECT {} FROM lines a JOIN lines b ON a.line = b.line AND a.id = b.id",
    "SELECT {} FROM lines a JOIN lines b ON a.id = b.id",
    "SELECT a.id, a.v FROM a WHERE EXISTS (SELECT 1 FROM lines b WHERE b.id = a.id AND b.v > a.v)",
    "SELECT a.id, a.v FROM a WHERE NOT EXISTS (SELECT 1 FROM lines b WHERE b.id = a.id)",
    "SELECT {} FROM kept a FULL JOIN kept b ON a.v = b.v AND b.g = 2 WHERE a.g = 1",
    "SELECT {} FROM (SELECT g, v, id FROM kept WHERE g = 1) a FULL JOIN"
    " (SELECT g, v, id FROM kept WHERE g = 2) b ON a.v = b.v",
]


def made(seed: int) -> belvedere.Connection:
    chosen = random.Random(seed)
    con = belvedere.connect(":memory:", autocommit=True)
    con.execute("CREATE TABLE a (id bigint PRIMARY KEY, v int)")
    con.execute("CREATE TABLE b (id int PRIMARY KEY, v int)")
    con.execute("CREATE TABLE lines (id int, line int, v int, PRIMARY KEY (id, line))")
    con.execute("CREATE TABLE kept (id int PRIMARY KEY, g int, v int)")
    con.execute("CREATE INDEX ON kept (g, v) INCLUDE (id)")
    for number in range(60):
        if chosen.random() < 0.6:
            con.execute("INSERT INTO a VALUES (?, ?)", (number, chosen.randrange(9)))
        if chosen.random() < 0.6:
            con.execute("INSERT INTO b VALUES (?, ?)", (number, chosen.randrange(9)))
        for line in range(chosen.choice((0, 0, 1, 3))):
            con.execute("INSERT INTO lines VALUES (?, ?, ?)", (number, line, chosen.randrange(9)))
        v = chosen.choice((None, chosen.randrange(15)))
        con.execute("INSERT INTO kept VALUES (?, ?, ?)", (number, chosen.randrange(1, 3), v))
    return con


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[belvedere.Connection, belvedere.Connection]]:
    print("seed 11")
    with made(11) as one, made(11) as other:
        yield one, other


@pytest.mark.parametrize("query", QUERIES)
def test_merged_is_hashed(
    pair: tuple[belvedere.Connection, belvedere.Connection],
    query: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = query.format("a.id, a.v, b.id, b.v")
    merging, hashing = pair
    answers = []
    for rows_min, con in ((0.0, merging), (1e18, hashing)):
        monkeypatch.setattr(merge_joins, "ROWS_MIN", rows_min)
        for tier in ("direct", "duckdb"):
            con.execute(f"SET tier = {tier}")
            answers.append(sorted(map(repr, con.execute(text).fetchall())))
            plan = "\n".join(row[0] for row in con.execute(f"EXPLAIN {text}").fetchall())
            assert ("merge on" in plan) == (con is merging and "lookup" not in plan), plan
    assert answers == [answers[0]] * 4


@pytest.mark.parametrize(
    "condition", ["a.x = b.x", "a.id IS NOT DISTINCT FROM b.id", "a.id = b.id + 0", "a.c = b.c"]
)
def test_what_python_orders_otherwise_is_hashed(
    condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_joins, "ROWS_MIN", 0.0)
    with belvedere.connect(":memory:", autocommit=True) as con:
        for name in ("a", "b"):
            con.execute(
                f"CREATE TABLE {name} (x double precision, id int, c char(3), PRIMARY KEY (x))"
            )
            con.execute(f"CREATE INDEX ON {name} (id) INCLUDE (x, c)")
            con.execute(
                f"INSERT INTO {name} VALUES ('NaN', NULL, 'a'), (1, 1, 'a b'), ('-0', 2, 'a'),"
                " (3, 3, E'a\\t')"
            )
        text = f"SELECT a.x, b.x FROM a FULL JOIN b ON {condition}"
        answers = []
        for tier in ("direct", "duckdb"):
            con.execute(f"SET tier = {tier}")
            answers.append(sorted(map(repr, con.execute(text).fetchall())))
            lines = [row[0] for row in con.execute(f"EXPLAIN {text}").fetchall()]
            assert not any("merge" in line for line in lines)
        assert answers[0] == answers[1]


def test_large_sides_in_key_order_are_merged_without_holding_them() -> None:
    with belvedere.connect(":memory:", autocommit=True, memory_limit_mb=1) as con:
        for name in ("a", "b"):
            con.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)")
            for first in range(0, 12_000, 3_000):
                con.execute(
                    f"INSERT INTO {name} SELECT n, repeat('x', 100)"
                    " FROM generate_series(?::int, ?::int) g(n)",
                    (first, first + 2_999),
                )
        con.execute("SET tier = direct")
        text = "SELECT count(*), max(length(b.v)) FROM a FULL JOIN b ON a.id = b.id"
        assert con.execute(text).fetchall() == [(12_000, 100)]
        plan = [row[0] for row in con.execute(f"EXPLAIN {text}").fetchall()]
        assert any("Join full merge on id = id" in line for line in plan)
        con.execute("SET tier = duckdb")
        assert con.execute(text).fetchall() == [(12_000, 100)]
        lines = [row[0] for row in con.execute(f"EXPLAIN {text}").fetchall()]
        assert "reads b: scan" in lines  # a columnar copy is larger than the limit
