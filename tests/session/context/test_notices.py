"""What a session says beside results and errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere
from belvedere.session.context.notices import NOTICES_MAX

UP_TO_DATE = 'view "v" is immediate, it is always up to date'


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute("CREATE TABLE t (a int)")
        opened.execute("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
        yield opened


def test_refresh_of_an_immediate_view_says_that_there_is_nothing_to_do(
    con: belvedere.Connection,
) -> None:
    assert con.notices == []
    con.execute("REFRESH MATERIALIZED VIEW v")
    assert con.notices == [UP_TO_DATE]


def test_refresh_of_a_deferred_view_says_nothing(con: belvedere.Connection) -> None:
    con.execute("CREATE MATERIALIZED VIEW w WITH (maintenance = 'deferred') AS SELECT a FROM t")
    con.execute("REFRESH MATERIALIZED VIEW w")
    assert con.notices == []


@pytest.mark.parametrize(
    ("statement", "notice"),
    [
        ("CREATE TABLE IF NOT EXISTS t (a int)", 'relation "t" already exists, skipping'),
        (
            "CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1 AS a",
            'relation "v" already exists, skipping',
        ),
        ("CREATE SCHEMA IF NOT EXISTS public", 'schema "public" already exists, skipping'),
        ("CREATE SEQUENCE IF NOT EXISTS t", 'relation "t" already exists, skipping'),
        ("CREATE INDEX IF NOT EXISTS t ON t (a)", 'relation "t" already exists, skipping'),
        ("DROP TABLE IF EXISTS nosuch", 'table "nosuch" does not exist, skipping'),
        (
            "DROP MATERIALIZED VIEW IF EXISTS nosuch",
            'materialized view "nosuch" does not exist, skipping',
        ),
        ("DROP SCHEMA IF EXISTS nosuch", 'schema "nosuch" does not exist, skipping'),
        ("CREATE TABLE IF NOT EXISTS fresh (a int)", None),
        ("CREATE INDEX IF NOT EXISTS fresh ON t (a)", None),
        ("DROP TABLE IF EXISTS t CASCADE", 'drop cascades to materialized view "v"'),
        ("DROP MATERIALIZED VIEW v", None),
    ],
)
def test_what_is_left_undone_is_said(
    con: belvedere.Connection, statement: str, notice: str | None
) -> None:
    con.execute(statement)
    assert con.notices == ([] if notice is None else [notice])


def test_only_the_newest_are_kept(con: belvedere.Connection) -> None:
    for _ in range(NOTICES_MAX + 1):
        con.execute("REFRESH MATERIALIZED VIEW v")
    con.execute("DROP TABLE IF EXISTS nosuch")
    assert len(con.notices) == NOTICES_MAX
    assert con.notices[-1] == 'table "nosuch" does not exist, skipping'


def test_a_session_may_want_none(con: belvedere.Connection) -> None:
    con.execute("SET client_min_messages = 'warning'")
    con.execute("REFRESH MATERIALIZED VIEW v")
    assert con.notices == []
    con.execute("RESET client_min_messages")
    con.execute("REFRESH MATERIALIZED VIEW v")
    assert con.notices == [UP_TO_DATE]
