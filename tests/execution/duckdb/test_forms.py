"""Expressions that go to DuckDB in a form of their own mean the same there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere

EXPRESSIONS = [
    *[f"substring(v from {s} for {n})" for s, n in ((1, 2), (3, 3), (0, 2), (5, 0), (99, 2))],
    "substring(p from 1 for 2)",
    "p IN ('ab', 'é  ')",
    "p NOT IN ('ab', 'é  ')",
    "p IN ('ab', NULL)",
    *[f"extract({field} FROM d)" for field in ("year", "month", "day", "dow", "doy", "quarter")],
    *[f"extract({field} FROM at)" for field in ("year", "hour", "minute", "second", "epoch")],
]


@pytest.fixture(scope="module")
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute(
            "CREATE TABLE t (id int PRIMARY KEY, v text, p char(8), d date, at timestamp)"
        )
        opened.execute(
            "INSERT INTO t VALUES (1, 'aäöß€x', 'ab', '2024-02-29', '2024-02-29 23:59:59.5'),"
            " (2, '', '', '0001-01-01', '1969-12-31 23:59:59.999999'),"
            " (3, NULL, NULL, NULL, NULL),"
            " (4, 'e\u0301clair', 'é', '9999-12-31', '9999-12-31')"
        )
        yield opened


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_both_tiers_agree(con: belvedere.Connection, expression: str) -> None:
    answers = []
    for tier in ("direct", "duckdb"):
        con.execute(f"SET tier = {tier}")
        answers.append(con.execute(f"SELECT {expression} FROM t ORDER BY id + 0").fetchall())
    assert list(map(repr, answers[0])) == list(map(repr, answers[1]))


@pytest.mark.parametrize(
    "expression", ["substring(v from 1 for 2)", "p IN ('ab')", "extract(year FROM d)"]
)
def test_the_form_is_duckdbs_own(con: belvedere.Connection, expression: str) -> None:
    con.execute("SET tier = duckdb")
    lines = [row[0] for row in con.execute(f"EXPLAIN SELECT {expression} FROM t").fetchall()]
    assert any(line.startswith("duckdb: SELECT") for line in lines)
    assert not any("belvedere_" in line.lower() for line in lines)
