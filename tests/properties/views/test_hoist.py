"""A seeded sample of the queries of SQL Logic Test, as views; `make long RUN=hoist` does all of
them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.mutations.registry import mutated
from tests.properties.views.workloads.hoist import (
    Counts,
    Round,
    of_tables,
    rounds,
    run_round,
    sampled,
    shard,
    sharded,
)
from tests.slt.runner import corpus

FILES = sorted((corpus() or Path("nowhere")).glob("*.test"))
SAMPLE = 8
TABLES_MAX = 10
"""A sample leaves out joins of more tables than that: they take their time to be made."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_queries_are_right_as_views(path: Path, seed: int) -> None:
    counts, rng = Counts(), random.Random(f"{seed}/{path.name}")
    for one in sampled([of_tables(one, TABLES_MAX) for one in rounds(path)], SAMPLE, rng):
        run_round(one, counts)
    assert not counts.wrong, "\n".join(counts.wrong)
    assert not counts.refused, str(counts)


ROUND = Round(
    ["CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER)"],
    [
        "INSERT INTO t VALUES (1, 1)",
        "INSERT INTO t VALUES (2, NULL)",
        "INSERT INTO t VALUES (3, 0)",
        "INSERT INTO t VALUES (1, 5)",  # a key that is there: refused as such
        "UPDATE t SET b = 2 WHERE a = 2",
        "DELETE FROM t WHERE a = 1",
    ],
)


def counted(*queries: str) -> Counts:
    counts = Counts()
    run_round(Round(ROUND.schema, ROUND.changes, dict.fromkeys(queries, 1)), counts)
    return counts


def test_shards_make_up_all_queries() -> None:
    queries = dict.fromkeys((f"SELECT {n} FROM t" for n in range(11)), 1)
    both = [
        Round(queries=dict(list(queries.items())[:4])),
        Round(queries=dict(list(queries.items())[4:])),
    ]
    parts = [sharded(both, *shard(f"{k}/3")) for k in (1, 2, 3)]
    found = [query for rounds_ in parts for one in rounds_ for query in one.queries]
    assert sorted(found) == sorted(queries)
    assert [sum(len(one.queries) for one in part) for part in parts] == [4, 4, 3]
    assert sharded(both, *shard("1/1")) == both


def test_right_views_are_counted() -> None:
    counts = counted("SELECT b FROM t", "SELECT sum(b) FROM t", "SELECT count(*) FROM t")
    assert (counts.queries, counts.correct, counts.failing) == (3, 3, 0)


def test_a_constant_that_is_tested_for_null_raises_no_warning() -> None:
    """Warnings are errors in tests; outside they would be printed to the user."""
    counts = counted(
        "SELECT b FROM t WHERE NOT -58 IS NULL",
        "SELECT 1 FROM t WHERE 'x' IS NULL",
        "SELECT count(1) FROM t",
        "SELECT count(-58) FROM t",
        "SELECT count(2 + 3) FROM t GROUP BY a",
        "SELECT count(NULL) FROM t",
    )
    assert counts.correct == 6


def test_a_query_that_fails_on_a_row_fails_the_view_too() -> None:
    counts = counted("SELECT 1 / b FROM t", "SELECT b FROM t", "SELECT nothing FROM t")
    assert (counts.queries, counts.correct, counts.failing) == (3, 1, 2)
    assert not counts.wrong


def test_a_refused_query_is_counted_by_its_reason() -> None:
    counts = counted("SELECT random() > 2 FROM t")
    assert sum(counts.refused.values()) == 1
    assert counts.refused_share == 1.0


def test_a_wrong_view_is_found() -> None:
    with mutated("view_delta_twice"):
        counts = counted("SELECT b FROM t", "SELECT count(*) FROM t")
    assert len(counts.wrong) == 2
