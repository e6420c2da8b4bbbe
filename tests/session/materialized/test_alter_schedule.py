"""ALTER MATERIALIZED VIEW .. SET and RESET of schedules, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute("CREATE TABLE t (id int PRIMARY KEY, x int)")
        opened.execute(
            "CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred', max_lag = '1 hour') AS "
            "SELECT x, count(*) AS n FROM t GROUP BY x"
        )
        yield opened


def show(con: belvedere.Connection) -> tuple[object, ...]:
    found = con.execute("SELECT maintenance, schedule FROM belvedere.views WHERE name = 'v'")
    row: tuple[object, ...] = found.fetchall()[0]
    return row


@pytest.mark.parametrize(
    "action", ["SET (max_lag = 'close')", "RESET (max_lag)", "RESET (max_lag, refresh_every)"]
)
def test_a_view_follows_closely_again(con: belvedere.Connection, action: str) -> None:
    assert show(con) == ("deferred", "max_lag 1 hour")
    con.execute(f"ALTER MATERIALIZED VIEW v {action}")
    assert show(con) == ("deferred", "close")
    con.execute("INSERT INTO t VALUES (1, 1)")
    found = con.execute("SELECT * FROM v", freshness="latest")
    assert found.fetchall() == [(1, 1)]


def test_the_maintenance_is_reset_with_its_schedule(con: belvedere.Connection) -> None:
    con.execute("ALTER MATERIALIZED VIEW v RESET (maintenance)")
    assert show(con) == ("immediate", None)
    with pytest.raises(belvedere.DataError, match="unknown option"):
        con.execute("ALTER MATERIALIZED VIEW v RESET (nope)")


def test_an_index_of_a_view_is_told_from_a_view(con: belvedere.Connection) -> None:
    con.execute("CREATE INDEX i ON v (n)")
    kinds = con.execute("SELECT name, kind FROM belvedere.views ORDER BY name").fetchall()
    assert kinds == [("i", "index"), ("v", "view")]
    tables = con.execute(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    )
    assert sorted(tables.fetchall()) == [("t",), ("v",)]
