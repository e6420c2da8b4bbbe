"""The session's zone is the session's alone: values at its door, not what is stored or kept.

What statements mean under a zone is in tests/slt/files/time_zones.slt.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

import belvedere

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.UTC)


@pytest.fixture
def con(tmp_path: Path) -> Iterator[belvedere.Connection]:
    with belvedere.connect(str(tmp_path / "store"), autocommit=True, durability="off") as made:
        made.execute("CREATE TABLE t (id int PRIMARY KEY, at timestamptz)")
        made.execute("INSERT INTO t VALUES (1, ?)", (NOON,))
        yield made


def test_instants_come_out_in_the_zone(con: belvedere.Connection) -> None:
    con.execute("SET TIME ZONE 'Europe/Berlin'")
    for text in ("SELECT at FROM t WHERE id = 1", "SELECT max(at) FROM t"):
        for _ in range(2):  # planned, then from the plans that are kept
            [(found,)] = con.execute(text).fetchall()
            assert found == NOON
            assert found.tzinfo is BERLIN
    con.execute("RESET timezone")
    [(found,)] = con.execute("SELECT at FROM t WHERE id = 1").fetchall()
    assert found.tzinfo is datetime.UTC


def test_parameters_without_an_offset_are_of_the_zone(con: belvedere.Connection) -> None:
    con.execute("SET TIME ZONE 'Europe/Berlin'")
    for given in (datetime.datetime(2024, 7, 1, 14), "2024-07-01 14:00", NOON):
        assert con.execute("SELECT id FROM t WHERE at = ?", (given,)).fetchall() == [(1,)]


def test_a_plan_of_one_zone_is_not_used_in_another(con: belvedere.Connection) -> None:
    text = "SELECT at::time FROM t WHERE at >= '2024-07-01 13:00'"
    assert con.execute(text).fetchall() == []
    con.execute("SET TIME ZONE 'Europe/Berlin'")
    assert con.execute(text).fetchall() == [(datetime.time(14),)]
    con.execute("SET TIME ZONE 'Asia/Tokyo'")
    assert con.execute(text).fetchall() == [(datetime.time(21),)]
    con.execute("SET TIME ZONE 'UTC'")
    assert con.execute(text).fetchall() == []


@pytest.mark.parametrize("explicit", [False, True])
def test_what_is_kept_is_kept_in_utc(con: belvedere.Connection, explicit: bool) -> None:
    con.execute(
        "CREATE MATERIALIZED VIEW days AS "
        "SELECT (at AT TIME ZONE 'UTC')::date AS day, count(*) AS n FROM t GROUP BY 1"
    )
    con.execute("SET TIME ZONE 'Asia/Tokyo'")
    if explicit:
        con.execute("BEGIN")
    con.execute("INSERT INTO t VALUES (2, '2024-07-02 05:00')")
    days = "SELECT day, n FROM days ORDER BY day"
    assert con.execute(days).fetchall() == [(datetime.date(2024, 7, 1), 2)]
    if explicit:
        con.execute("COMMIT")
    assert con.execute(days).fetchall() == [(datetime.date(2024, 7, 1), 2)]


def test_copy_writes_in_the_zone(con: belvedere.Connection, tmp_path: Path) -> None:
    con.execute("SET TIME ZONE 'Europe/Berlin'")
    path = tmp_path / "t.csv"
    con.execute(f"COPY t TO '{path}' (FORMAT csv)")
    assert path.read_text() == "1,2024-07-01 14:00:00+02\n"
    with pytest.raises(belvedere.NotSupportedError):
        con.execute(f"COPY t FROM '{path}' (FORMAT csv)")


@pytest.mark.parametrize("zone", ["a" * 300, "<" + "a" * 300 + ">3", "Europe/" + "a" * 300])
def test_a_name_longer_than_any_zone_is_none(con: belvedere.Connection, zone: str) -> None:
    """PostgreSQL's limit. A valid one would be kept among the zones that were used."""
    for statement in ("SELECT at AT TIME ZONE ? FROM t", "SELECT set_config('TimeZone', ?, false)"):
        with pytest.raises(belvedere.DataError) as caught:
            con.execute(statement, (zone,))
        assert caught.value.sqlstate == "22023"
        assert len(str(caught.value)) < 400
