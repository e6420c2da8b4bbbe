"""Statement statistics survive a restart, are bounded, and never stand in the way of a store."""

from __future__ import annotations

from pathlib import Path

from belvedere.interfaces.dbapi import connect
from belvedere.session.context.statement_file import FILE, STORED_MAX, StatementFile
from belvedere.session.context.statement_statistics import StatementRecord, StatementStatistics

SEEN = "SELECT calls FROM belvedere.statements WHERE text LIKE '%from t where id%'"


def test_counts_go_on_after_a_restart(tmp_path: Path) -> None:
    for runs in (3, 8):
        with connect(str(tmp_path / "db"), durability="off", autocommit=True) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS t (id int PRIMARY KEY)")
            for number in range(3 if runs == 3 else 5):
                connection.execute("SELECT * FROM t WHERE id = ?", (number,)).fetchall()
            assert connection.execute(SEEN).fetchall() == [(runs,)]


def test_a_file_that_cannot_be_read_is_no_reason_to_refuse_the_store(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with connect(str(path), durability="off") as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        connection.commit()
    (path / FILE).write_bytes(b"\xff\x00 no msgpack")
    with connect(str(path), durability="off", autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchall() == [(0,)]


def test_the_statements_that_took_most_time_are_kept(tmp_path: Path) -> None:
    statistics = StatementStatistics()
    records = [StatementRecord(f"s{n}", calls=1, total_us=float(n)) for n in range(STORED_MAX + 50)]
    statistics.add_records(records)
    StatementFile(tmp_path, statistics).save()
    found = StatementStatistics()
    StatementFile(tmp_path, found).load()
    assert {one.text for one in found.list_records()} == {one.text for one in records[50:]}
