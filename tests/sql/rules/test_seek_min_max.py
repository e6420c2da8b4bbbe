"""min and max of key columns: one seek, and the same answer as all rows give."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from typing import Any

import pytest

import belvedere

TIERS = ("direct", "duckdb", "auto")


@pytest.fixture(scope="module")
def con() -> Iterator[belvedere.Connection]:
    """Every column is there twice, once without an index."""
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute(
            "CREATE TABLE t (id int PRIMARY KEY, a int, v int, w int, d date NOT NULL, e date,"
            " f double precision, g double precision, x numeric, nothing int)"
        )
        for columns in ("v", "a, v DESC", "d", "f DESC NULLS LAST", "x", "nothing"):
            opened.execute(f"CREATE INDEX ON t ({columns})")
        opened.execute("CREATE INDEX partial ON t (w) WHERE a = 1")
        chosen = random.Random(5)
        for number in range(700):
            v = None if chosen.random() < 0.3 else chosen.randrange(-500, 500)
            day = datetime.date(2024, 1, 1) + datetime.timedelta(chosen.randrange(4000))
            f = chosen.choice([None, float("nan"), -0.5, chosen.random()])
            opened.execute(
                "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
                (number * 3, number % 5, v, v, day, day, f, f, v),
            )
        yield opened


def answers(con: belvedere.Connection, text: str) -> list[tuple[Any, ...]]:
    found = []
    for tier in TIERS:
        con.execute(f"SET tier = {tier}")
        found.append(con.execute(text).fetchall())
    assert [repr(one) for one in found] == [repr(found[0])] * 3
    return found[0]


def explained(con: belvedere.Connection, text: str) -> str:
    return "\n".join(row[0] for row in con.execute(f"EXPLAIN {text}").fetchall())


SAME = {
    "nullable": ("max({}), min({})", "v", "w", ""),
    "primary key": ("max({}) - min({})", "id", "id + 0", ""),
    "not null": ("min({}), max({})", "d", "e", ""),
    "descending, with NaN": ("max({}), min({})", "f", "g", ""),
    "after an equality": ("max({}), min({})", "v", "w", "WHERE a = 3"),
    "in a range": ("max({}), min({})", "v", "w", "WHERE a = 3 AND v > -20 AND v <= 77"),
    "no rows": ("max({}), min({})", "v", "w", "WHERE a = 99"),
    "nothing but NULL": ("max({}), min({})", "nothing", "nothing + 0", ""),
}


@pytest.mark.parametrize("name", SAME)
def test_the_end_of_a_key_is_what_all_rows_give(con: belvedere.Connection, name: str) -> None:
    form, keyed, other, condition = SAME[name]
    text = f"SELECT {form.format(keyed, keyed)} FROM t {condition}"
    whole = f"SELECT {form.format(other, other)} FROM t {condition}"
    assert repr(answers(con, text)) == repr(answers(con, whole))
    assert "Limit 1" in explained(con, text)
    assert "Aggregate" not in explained(con, text)
    assert "Aggregate" in explained(con, whole)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT max(v), count(*) FROM t",
        "SELECT a, max(v) FROM t GROUP BY a ORDER BY a",
        "SELECT max(v) FILTER (WHERE a = 1) FROM t",
        "SELECT max(v) FROM t WHERE w > 3",  # would have to be checked for every row
        "SELECT max(v) FROM t WHERE v = 4",  # the key orders by what follows
        "SELECT max(x) FROM t",  # 1.0 and 1.00 are one key
        "SELECT max(w) FROM t WHERE a IN (1, 2)",
        "SELECT max(v + 1) FROM t",
    ],
)
def test_other_aggregates_read_their_rows(con: belvedere.Connection, text: str) -> None:
    answers(con, text)
    assert "Aggregate" in explained(con, text)


def test_the_latest_of_each_by_a_correlated_sub_query(con: belvedere.Connection) -> None:
    text = (
        "SELECT k.a, (SELECT max({0}) FROM t WHERE t.a = k.a) FROM"
        " (VALUES (1), (3), (77), (NULL)) k (a) ORDER BY 1"
    )
    assert answers(con, text.format("v")) == answers(con, text.format("w"))
    assert "index t_a_v_idx only [outer.a, ]" in explained(con, text.format("v"))


def test_the_rows_that_have_the_most(con: belvedere.Connection) -> None:
    text = "SELECT id FROM t WHERE {0} = (SELECT max({0}) FROM t) ORDER BY id"
    assert answers(con, text.format("v")) == answers(con, text.format("w"))
    con.execute("SET tier = duckdb")
    plan = explained(con, text.format("v"))
    assert "prefix index t_v_idx only [<scalar 1>]" in plan
    assert "Limit 1" in plan


def test_own_changes_count(con: belvedere.Connection) -> None:
    con.execute("SET tier = auto")
    con.execute("BEGIN")
    con.execute("INSERT INTO t (id, v, w, d) VALUES (-1, 1000, 1000, '2024-01-01')")
    assert answers(con, "SELECT max(v), min(id) FROM t") == [(1000, -1)]
    con.execute("ROLLBACK")
    assert answers(con, "SELECT min(id) FROM t") == [(0,)]
