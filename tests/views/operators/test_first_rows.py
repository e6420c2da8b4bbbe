"""DISTINCT ON over a table: the first row of a group by a seek, whatever changes."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import belvedere
from belvedere.txn.history.readers import OverlayReader

DEFINITIONS = (
    "SELECT DISTINCT ON (g) g, v, id FROM t ORDER BY g, v, id",
    "SELECT DISTINCT ON (g) g, v, s FROM t ORDER BY g, v DESC, id DESC",
    "SELECT DISTINCT ON (g) g, v, id FROM t ORDER BY g, v DESC, id",
    "SELECT DISTINCT ON (g, s) g, s, v FROM t ORDER BY g, s DESC, v DESC",
    "SELECT DISTINCT ON (g) g, x FROM t ORDER BY g, x",
    "SELECT DISTINCT ON (g) g, v FROM t ORDER BY g, v NULLS FIRST",
    "SELECT DISTINCT ON (g) g, v, s FROM t ORDER BY g, v DESC NULLS LAST",
    "SELECT DISTINCT ON (g) g, s FROM t",
    "SELECT DISTINCT ON (g) g, v + 1 AS w FROM t ORDER BY g, v",
)


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute("CREATE TABLE t (id int PRIMARY KEY, g int, v int, s text, x numeric)")
        yield opened


def change_randomly(con: belvedere.Connection, chosen: random.Random) -> None:
    g = chosen.choice([None, 1, 2, 3])
    v = chosen.choice([None, 1, 2, 3, 4])
    x = chosen.choice(["1.0", "1.00", "1", "2", None])
    key = chosen.randrange(25)
    match chosen.randrange(3):
        case 0:
            row = (key, g, v, chosen.choice("ab"), x)
            con.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", row)
        case 1:
            con.execute("UPDATE t SET g = ?, v = ?, x = ? WHERE id = ?", (g, v, x, key))
        case _:
            con.execute("DELETE FROM t WHERE id = ?", (key,))


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_the_view_is_its_query_after_every_change(
    con: belvedere.Connection, definition: str
) -> None:
    con.execute(f"CREATE MATERIALIZED VIEW w AS {definition}")
    chosen = random.Random(11)
    for _ in range(25):
        for _ in range(4):
            change_randomly(con, chosen)
        (report,) = con.execute("VERIFY MATERIALIZED VIEW w").fetchall()
        assert report[-1] is True, report


def test_a_change_reads_one_place_of_its_group(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    con.execute(
        "CREATE MATERIALIZED VIEW w AS SELECT DISTINCT ON (g) g, v, id FROM t ORDER BY g, v DESC"
    )
    rows = [(i, 1, i, "s", None) for i in range(2_000)]
    con.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
    read: list[int] = []
    scan = OverlayReader.scan

    def counting_scan(self, *more, **options):  # type: ignore[no-untyped-def]
        for batch in scan(self, *more, **options):
            read.append(len(batch))
            yield batch

    monkeypatch.setattr(OverlayReader, "scan", counting_scan)
    con.execute("UPDATE t SET v = 5000 WHERE id = 17")
    assert con.execute("SELECT * FROM w").fetchall() == [(1, 5000, 17)]
    assert sum(read) < 20
