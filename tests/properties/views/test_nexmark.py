"""Nexmark's queries as views: right after every transaction of a stream of events, each query alone
and all of them together; `make long RUN=nexmark` does the latter at a larger scale."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from belvedere.session.session import Session
from tests.properties.views.law import open_manual
from tests.properties.views.workloads.nexmark import QUERIES, TABLES, Events
from tests.properties.views.workloads.nexmark_full import loaded
from tests.unrewritten import make_unrewritten_session

TRANSACTIONS = 12


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_right_as_a_view(name: str, seed: int) -> None:
    events = Events(random.Random(f"nexmark/{seed}/{name}"))
    with open_manual() as db:
        shared = db.open_shared_state()
        try:
            session = make_unrewritten_session(shared)
            for statement in TABLES:
                session.execute(statement)
            session.execute(
                "INSERT INTO side_input SELECT i, 'v' || i FROM generate_series(1, 9) i"
            )
            for kind in ("immediate", "deferred"):
                session.execute(
                    f"CREATE MATERIALIZED VIEW {kind} WITH (maintenance = '{kind}')"
                    f" AS {QUERIES[name]}"
                )
            for number in range(TRANSACTIONS):
                _transaction(session, events.statements(8))
                expected = _rows(session, QUERIES[name])
                for kind in ("immediate", "deferred"):
                    found = _rows(session, f"SELECT * FROM {kind}")
                    assert found == expected, f"seed {seed}, transaction {number}, {kind}"
            assert expected
        finally:
            db.close_shared_state()


@pytest.mark.slow
def test_all_queries_are_right_as_views_beside_each_other(seed: int) -> None:
    with loaded(600, seed) as nexmark:
        counts = nexmark.counts
        assert not counts.refused
        assert len(counts.incremental) == len(QUERIES)
        for number, _ in enumerate(nexmark.cycle()):
            if number in (2, 3, 5):
                nexmark.compare()
        assert not counts.wrong, f"seed {seed}: {counts.wrong}"
        assert counts.comparisons == 3 * 2 * len(QUERIES)


def _transaction(session: Session, statements: list[str]) -> None:
    session.execute("BEGIN")
    for statement in statements:
        session.execute(statement)
    session.execute("COMMIT")


def _rows(session: Session, text: str) -> Counter[Any]:
    result = session.execute(text)
    result.convert_arrow_to_rows()
    return Counter(tuple(row) for row in result.rows)
