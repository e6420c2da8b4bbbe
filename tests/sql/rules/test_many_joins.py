"""A chain of many joins is planned in time, and in an order without products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import belvedere
from belvedere.sql.rules import estimates

TABLES = 40


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as made:
        for i in range(TABLES):
            made.execute(f"CREATE TABLE t{i} (a{i} integer PRIMARY KEY, b{i} integer)")
            made.execute(f"INSERT INTO t{i} SELECT g, g % 10 + 1 FROM generate_series(1, 10) g")
        yield made


def chain(count: int) -> str:
    """Neighbours in the chain are far apart in FROM."""
    order = sorted(range(count), key=lambda i: (i * 7) % count)
    conditions = [f"a{i} = b{i + 1}" for i in range(count - 1)]
    listed = ", ".join(f"t{i}" for i in order)
    return f"SELECT a0 FROM {listed} WHERE a{count - 1} = 3 AND {' AND '.join(conditions[::-1])}"


def test_forty_tables_are_joined_without_a_product(con: belvedere.Connection) -> None:
    assert len(con.execute(chain(TABLES)).fetchall()) == 1


def test_work_of_estimating_does_not_double_with_each_join(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    real = estimates._estimate_join

    def counted(*arguments: Any) -> float:
        nonlocal calls
        calls += 1
        return real(*arguments)

    monkeypatch.setattr(estimates, "_estimate_join", counted)
    con.execute(chain(20)).fetchall()
    assert 0 < calls < 20 * 20
