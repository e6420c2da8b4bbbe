"""Statements: both systems answer the same, and no kind costs more the later it comes."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from belvedere.benchmarks.statements import path_suite, suite
from belvedere.benchmarks.statements.kinds import KINDS, StatementKind
from belvedere.benchmarks.statements.path_queries import PATH_QUERIES
from belvedere.benchmarks.statements.peers import StatementPeer
from belvedere.benchmarks.statements.shape import (
    GROWTH_MAX,
    count_bytecodes,
    count_in_transaction,
)

ROWS = 4000
ROWS_READ_MAX = 700
"""Of a list of three values with some 200 rows each."""


@pytest.fixture(scope="module")
def peers() -> Iterator[tuple[StatementPeer, StatementPeer]]:
    with suite.open_peers(ROWS) as opened:
        yield opened


def draw_start(kind: StatementKind) -> int:
    return ROWS if kind.inserts else 1000


def test_bytecodes_are_counted() -> None:
    short, long = (count_bytecodes(lambda n=n: sum(x for x in range(n))) for n in (10, 1000))
    assert 50 < long / short < 100


def run_and_undo(
    peer: StatementPeer, kind: StatementKind, rows: int
) -> tuple[int, list[tuple[object, ...]]]:
    """Rows affected, and those read or the table afterwards."""
    text, values = kind.text(rows), kind.values(rows, draw_start(kind))
    peer.execute("BEGIN")
    done = peer.execute(text, values)
    found = done.fetchall() if kind.reads else peer.fetch_rows(f"SELECT * FROM {kind.table}", ())
    peer.execute("ROLLBACK")
    return (0 if kind.reads else done.rowcount), sorted(map(tuple, found))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_both_systems_do_the_same(
    peers: tuple[StatementPeer, StatementPeer], kind: StatementKind
) -> None:
    for rows in kind.sizes:
        ours, lite = (run_and_undo(peer, kind, rows) for peer in peers)
        assert ours == lite
        assert ours[0] == (0 if kind.reads else rows)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_cost_does_not_grow_in_a_transaction(
    peers: tuple[StatementPeer, StatementPeer], kind: StatementKind
) -> None:
    ours, start = peers[0], draw_start(kind)
    costs = {}
    for rows in kind.sizes:
        count_in_transaction(ours, kind, rows, start, suite.FEW_PRECEDING)  # plans are made
        first = count_in_transaction(ours, kind, rows, start, suite.FEW_PRECEDING)
        costs[rows] = count_in_transaction(ours, kind, rows, start, suite.PRECEDING)
        assert costs[rows] <= GROWTH_MAX * first, f"{rows} rows: {first} to {costs[rows]}"
        if rows == kind.sizes[0]:
            late = count_in_transaction(ours, kind, rows, start, suite.MANY_PRECEDING)
            assert late <= suite.MANY_GROWTH_MAX * first, f"{rows} rows: {first} to {late}"
    assert costs[1000] / 1000 <= GROWTH_MAX * costs[10] / 10


def test_all_parts_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "ROUNDS", 1)
    monkeypatch.setattr(suite, "COUNTS", {1: 2, 10: 1, 1000: 1})
    monkeypatch.setattr(path_suite, "ROUNDS", 1)
    monkeypatch.setattr(path_suite, "ROUND_RUNS", 1)
    report = suite.run(4000, seed=1)
    sizes = sum(len(kind.sizes) for kind in KINDS)
    assert len(report.figures) == 3 * sizes + 2 * len(KINDS) + len(PATH_QUERIES)
    assert all(figure.value > 0 for figure in report.figures)


def test_queries_by_access_paths_answer_alike_and_read_few_rows() -> None:
    rows, rng = 20_000, random.Random(2)
    with path_suite.open_path_peers(rows, seed=1) as peers:
        assert len(peers) == 3
        for query in PATH_QUERIES:
            values = query.values(rng, rows)
            found = [sorted(peer.fetch(query.text, values)) for peer in peers]
            assert found[0] == found[1] == found[2], query.name
            assert found[0] or "NOT EXISTS" in query.text
            if "OFFSET" in query.name or "all rows" in query.name:
                continue
            lines = peers[0].fetch(f"EXPLAIN ANALYZE {query.text}", values)
            told = "\n".join([line for (line,) in lines])
            read = [int(number) for number in re.findall(r"actual rows=(\d+)", told)]
            assert read, told
            assert max(read) <= ROWS_READ_MAX, told
            assert "columnar copy" not in told or "run in Python" in told, told
