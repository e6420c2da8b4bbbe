"""A view is stored in the order of its definition, and ORDER BY .. LIMIT reads it in that order."""

from __future__ import annotations

import random

import pytest

from belvedere.interfaces.dbapi import Connection, connect

ORDERS = ("s, d DESC, x", "s, d, x", "s DESC, d, x DESC", "s, d DESC NULLS LAST, x NULLS FIRST", "")


@pytest.fixture
def connection(rng: random.Random) -> Connection:
    made = connect(":memory:", autocommit=True)
    made.execute("CREATE TABLE t (id int PRIMARY KEY, s text, d int, x text)")
    for number in range(60):
        row = (number, rng.choice("ab"), rng.choice((None, 1, 2, 3)), rng.choice((None, "p", "q")))
        made.execute("INSERT INTO t VALUES (?, ?, ?, ?)", row)
    return made


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("wanted", [one for one in ORDERS if one])
def test_every_order_gives_the_rows_of_the_query(
    connection: Connection, order: str, wanted: str
) -> None:
    ordered = f"ORDER BY {order}" if order else ""
    connection.execute(f"CREATE MATERIALIZED VIEW v AS SELECT s, d, x, id FROM t {ordered}")
    connection.execute("UPDATE t SET d = 9 WHERE id = 5")
    connection.execute("DELETE FROM t WHERE id = 6")
    connection.execute("INSERT INTO t VALUES (100, 'a', 2, NULL)")
    connection.execute("SET rewrite = off")
    for limit in ("", " LIMIT 7"):
        for where in ("", " WHERE s = 'a'"):
            tail = f"{where} ORDER BY {wanted}, id{limit}"
            ours, theirs = (
                connection.execute(f"SELECT s, d, x, id FROM {name}{tail}").fetchall()
                for name in ("v", "t")
            )
            assert ours == theirs
    ((_, _, _, _, _, equal),) = connection.execute("VERIFY MATERIALIZED VIEW v").fetchall()
    assert equal


def test_a_limit_reads_the_order_of_the_view(connection: Connection) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW v AS SELECT s, d, x, id FROM t ORDER BY s, d DESC, x"
    )
    query = "SELECT id FROM v WHERE s = 'a' ORDER BY d DESC, x LIMIT 3"
    plan = str(connection.execute(f"EXPLAIN {query}").fetchall())
    assert "ordered" in plan
    assert "TopN" not in plan
