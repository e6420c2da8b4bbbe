"""LIKE with a parameter: a range of an index, and the same rows as without the index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import belvedere
from belvedere.execution.python.operators import scans
from belvedere.execution.python.operators.scans import fetch_indexed_rows

ROWS = 600
PATTERNS = (
    "ab%",
    "a",
    "a_b%",
    "%b",
    "_b%",
    "",
    "%",
    "zz%",
    "\\%b%",
    "a\\_%",
    "\U0010ffff%",
    "\ud7ff%",
    None,
)
"""Beginnings, none, wildcards in front, escaped ones, and the last characters that there are."""

QUERIES = (
    "SELECT id FROM t WHERE {0} LIKE ? ORDER BY id",
    "SELECT {0}, id FROM t WHERE {0} LIKE ? ORDER BY {0}, id LIMIT 7",
    "SELECT id FROM t WHERE a = 2 AND {0} LIKE ? ORDER BY id",
    "SELECT count(*) FROM t WHERE {0} LIKE ? AND {0} > 'ab'",
    "SELECT id, x FROM t JOIN u ON x = a WHERE {0} LIKE ? ORDER BY id",
)


@pytest.fixture(scope="module")
def con() -> Iterator[belvedere.Connection]:
    """`v` and `w` are the same, once with an index and once without."""
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute("CREATE TABLE t (id int PRIMARY KEY, a int, v text, w text, pad text)")
        opened.execute("CREATE TABLE u (x int PRIMARY KEY)")
        opened.execute("INSERT INTO u VALUES (1), (2)")
        beginnings = ("ab", "a", "abc", "a_", "%b", "\U0010ffffx", "\ud7ffy", "B", "", "zy")
        texts = [f"{one}{number // 10}" for number in range(ROWS // 10) for one in beginnings]
        opened.executemany(
            "INSERT INTO t VALUES (?, ?, ?, ?, 'pad')",
            [
                (i, i % 5, None if i % 50 == 0 else v, None if i % 50 == 0 else v)
                for i, v in enumerate(texts)
            ],
        )
        opened.execute("CREATE INDEX t_v ON t (v)")
        opened.execute("CREATE INDEX t_a_v ON t (a, v DESC)")
        yield opened


def _explain(con: belvedere.Connection, text: str, *parameters: Any) -> str:
    return "\n".join(row[0] for row in con.execute(f"EXPLAIN {text}", parameters).fetchall())


@pytest.mark.parametrize("tier", ["direct", "duckdb", "auto"])
@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_those_without_the_index(con: belvedere.Connection, query: str, tier: str) -> None:
    con.execute(f"SET tier = {tier}")
    for pattern in PATTERNS:
        found = con.execute(query.format("v"), (pattern,)).fetchall()
        wanted = con.execute(query.format("w"), (pattern,)).fetchall()
        assert found == wanted, pattern


def test_a_parameter_is_served_by_a_range_of_the_index(con: belvedere.Connection) -> None:
    assert "range index t_v [like $1]" in _explain(con, "SELECT pad FROM t WHERE v LIKE ?", "ab%")
    escaped = _explain(con, "SELECT pad FROM t WHERE v LIKE ? ESCAPE '#'", "a#%%")
    assert "range index t_v [like like_escape($1, '#')]" in escaped
    assert "range" not in _explain(con, "SELECT pad FROM t WHERE v NOT LIKE ?", "ab%")
    assert "range" not in _explain(con, "SELECT pad FROM t WHERE v ILIKE ?", "ab%")
    assert "range" not in _explain(con, "SELECT pad FROM t WHERE v LIKE w")


def test_a_pattern_without_a_beginning_does_not_go_through_the_index(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[bytes] = []

    def count_fetched(reader: Any, keys: list[bytes], decode: Any) -> Any:
        fetched.extend(keys)
        return fetch_indexed_rows(reader, keys, decode)

    monkeypatch.setattr(scans, "fetch_indexed_rows", count_fetched)
    con.execute("SET tier = direct")
    query = "SELECT pad FROM t WHERE v LIKE ?"
    assert len(con.execute(query, ("zy1%",)).fetchall()) == len(fetched) > 0
    fetched.clear()
    assert con.execute(query, ("%1",)).fetchall()
    assert not fetched


def test_a_pattern_that_is_not_text_is_refused(con: belvedere.Connection) -> None:
    with pytest.raises(belvedere.Error):
        con.execute("SELECT id FROM t WHERE v LIKE ?", (5,)).fetchall()
