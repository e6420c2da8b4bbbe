"""What participants of a commit are shown: changes of what they read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import belvedere
from belvedere.txn.transaction.foreign_keys import ForeignKeyParticipant
from belvedere.views.indexes.entries import IndexParticipant
from belvedere.views.maintain.maintainer import ViewMaintainer


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute("CREATE TABLE p (id int PRIMARY KEY, x int)")
        opened.execute(
            "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p, name text, x int, y numeric)"
        )
        opened.execute("CREATE INDEX by_name ON c (name)")
        opened.execute("CREATE INDEX by_y ON c (y)")
        opened.execute("INSERT INTO p VALUES (1, 0), (2, 0)")
        opened.execute("INSERT INTO c VALUES (1, 1, 'a', 0, 1.0), (2, 1, 'b', 0, 2.0)")
        yield opened


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """How many changes each participant was shown, in each call."""
    counts: dict[str, list[int]] = {}
    derive, check = IndexParticipant.writes, ForeignKeyParticipant.check

    def count_writes(self: IndexParticipant, changes: Any, reader: Any, writer: Any) -> None:
        counts.setdefault(self._index.index.name, []).append(len(changes))
        derive(self, changes, reader, writer)

    def count_checks(self: ForeignKeyParticipant, changes: Any, reader: Any) -> None:
        counts.setdefault(self.name, []).append(len(changes))
        check(self, changes, reader)

    monkeypatch.setattr(IndexParticipant, "writes", count_writes)
    monkeypatch.setattr(ForeignKeyParticipant, "check", count_checks)
    return counts


def run(con: belvedere.Connection, *statements: str) -> None:
    con.execute("BEGIN")
    for statement in statements:
        con.execute(statement)
    con.execute("COMMIT")


def test_columns_that_nobody_reads_are_shown_to_nobody(
    con: belvedere.Connection, shown: dict[str, list[int]]
) -> None:
    con.execute("DROP INDEX by_y")  # equal numbers may have different representations
    for _ in range(2):  # planned, then from the cache, where a statement knows what it can break
        shown.clear()
        run(con, "UPDATE c SET x = x + 5 WHERE id = 1", "UPDATE p SET x = x + 3 WHERE id = 1")
    assert shown == {}


def test_indexes_and_keys_see_what_touches_their_tables(
    con: belvedere.Connection, shown: dict[str, list[int]]
) -> None:
    con.execute("DROP INDEX by_y")
    insert = "INSERT INTO c VALUES (3, 2, 'c', 0, 0)"
    run(con, "UPDATE c SET name = 'z' WHERE id = 1", "UPDATE p SET x = 1 WHERE id = 2", insert)
    assert shown["by_name"] == [2]
    assert shown["c_p_fkey"][-1] == 2, "the renamed row is of the same table"
    assert [n for (n,) in con.execute("SELECT id FROM c WHERE name = 'z'")] == [1]


def test_a_number_with_another_scale_is_another_entry(con: belvedere.Connection) -> None:
    run(con, "UPDATE c SET y = 1.00 WHERE id = 1", "UPDATE p SET x = 1 WHERE id = 2")
    found = con.execute("SELECT y FROM c WHERE y = 1 ORDER BY y").fetchall()
    assert [str(y) for (y,) in found] == ["1.00"]


def test_a_broken_reference_among_many_changes_is_refused(con: belvedere.Connection) -> None:
    con.execute("BEGIN")
    con.execute("UPDATE c SET x = 9 WHERE id = 1")
    with pytest.raises(belvedere.DatabaseError) as failed:
        con.execute("UPDATE c SET p = 9 WHERE id = 2")
    assert failed.value.sqlstate == "23503"


@pytest.fixture
def generic(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The views that took a commit in by the generic way, in order."""
    taken: list[str] = []
    write = ViewMaintainer.writes

    def note_view(self: ViewMaintainer, *given: Any) -> None:
        taken.append(self._view.name)
        write(self, *given)

    monkeypatch.setattr(ViewMaintainer, "writes", note_view)
    return taken


MIXED = (
    "CREATE INDEX by_p ON c (p)",
    "CREATE MATERIALIZED VIEW own_rows AS SELECT c.id, c.x, p.x AS px FROM c JOIN p ON p.id = c.p",
    "CREATE MATERIALIZED VIEW pairs AS SELECT a.id, b.id AS other FROM c a JOIN c b ON a.p = b.p",
)
"""Of `own_rows` a change of `c` has a single-row path, of `pairs` it has none."""


def test_one_row_takes_the_short_way_beside_a_view_that_has_none(
    con: belvedere.Connection, generic: list[str]
) -> None:
    for statement in MIXED:
        con.execute(statement)
    generic.clear()
    for write in (
        "UPDATE c SET x = x + 1, p = 2 WHERE id = 1",
        "INSERT INTO c VALUES (3, 2, 'c', 5, 0)",
        "DELETE FROM c WHERE id = 2",
    ):
        con.execute(write)
    assert generic == ["pairs"] * 3
    for name in ("own_rows", "pairs"):
        assert con.execute(f"VERIFY MATERIALIZED VIEW {name}").fetchall()[0][-1], name
    assert sorted(con.execute("SELECT * FROM own_rows")) == [(1, 1, 0), (3, 5, 0)]


def test_a_failure_on_the_short_way_beside_others_names_its_view(
    con: belvedere.Connection,
) -> None:
    for statement in MIXED:
        con.execute(statement)
    con.execute("CREATE MATERIALIZED VIEW shares AS SELECT id, 10 / (x - 7) AS share FROM c")
    with pytest.raises(belvedere.DatabaseError) as failed:
        con.execute("UPDATE c SET x = 7 WHERE id = 1")
    assert failed.value.sqlstate == "22012"
    assert "shares" in str(failed.value)
    assert con.execute("SELECT x FROM c WHERE id = 1").fetchall() == [(0,)]
