"""Views and indexes over texts that are longer than a key of the store."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import belvedere
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import AnyObject, Index, View

VIEWS = {
    "rows": "SELECT id, v FROM t",
    "groups": "SELECT v, count(*) AS n FROM t GROUP BY v",
    "extrema": "SELECT g, min(v) AS least, max(v) AS most FROM t GROUP BY g",
    "firsts": "SELECT DISTINCT ON (g) g, v, id FROM t ORDER BY g, v, id",
    "ranks": "SELECT id, v, rank() OVER (PARTITION BY g ORDER BY v) AS n FROM t",
    "near": "SELECT id, lag(v) OVER (PARTITION BY g ORDER BY v, id) AS before FROM t",
    "top": "SELECT v, id FROM t ORDER BY v DESC, id LIMIT 3",
    "counts": "SELECT g, count(DISTINCT v) AS n FROM t GROUP BY g",
    "pairs": "SELECT a.id AS one, b.id AS other FROM t a JOIN t b ON a.v = b.v",
    "doubles": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t o WHERE o.v = t.v AND o.id <> t.id)",
    "texts": "SELECT v, w FROM t",
}
SHARED = "s" * 34_000
"""The beginning of values that only digests tell apart in a key."""


def _choose_value(source: random.Random) -> str | None:
    return source.choice(
        [
            None,
            "short",
            SHARED,
            SHARED + source.choice("abcdef"),
            SHARED * 2 + source.choice("abcdef"),
            "\x01" * 70_000 + source.choice("ab"),
            "é" * 40_000 + source.choice("ab"),
        ]
    )


@pytest.fixture
def con(tmp_path: Path) -> Iterator[belvedere.Connection]:
    with belvedere.connect(tmp_path / "store", autocommit=True, durability="off") as found:
        found.execute("CREATE TABLE t (id int PRIMARY KEY, g int, v text, w text)")
        yield found


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_views_over_long_texts_equal_their_queries(
    con: belvedere.Connection, maintenance: str
) -> None:
    for name, query in VIEWS.items():
        options = f"maintenance = '{maintenance}'"
        con.execute(f"CREATE MATERIALIZED VIEW {name} WITH ({options}) AS {query}")
    source = random.Random(5)
    for _ in range(15):
        row = (source.randint(1, 9), source.randint(1, 2), *(_choose_value(source) for _ in "vw"))
        if source.random() < 0.25:
            con.execute("DELETE FROM t WHERE id = ?", row[:1])
        con.execute(
            "INSERT INTO t VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE"
            " SET g = excluded.g, v = excluded.v, w = excluded.w",
            row,
        )
    for name in VIEWS:
        con.execute(f"REFRESH MATERIALIZED VIEW {name}")
        (found,) = con.execute(f"VERIFY MATERIALIZED VIEW {name}").fetchall()
        assert found[-1] is True, found


def _fill(con: belvedere.Connection) -> list[tuple[str, int]]:
    """Rows with long texts; the pairs (v, id) in order."""
    values = [f"{SHARED}{n % 10}{SHARED}{n}" for n in range(30)] + ["a", "z", SHARED, SHARED + "!"]
    random.Random(3).shuffle(values)
    pairs = list(zip(values, range(len(values)), strict=True))
    con.executemany("INSERT INTO t (v, id) VALUES (?, ?)", pairs)
    return sorted(pairs)


ORDERED = {
    "index": ("CREATE INDEX t_v ON t (v, id)", "t"),
    "descending index": ("CREATE INDEX t_v ON t (v DESC, id DESC)", "t"),
    "covering index": ("CREATE INDEX t_v ON t (v, id) INCLUDE (g)", "t"),
    "view": ("CREATE MATERIALIZED VIEW w AS SELECT v, id FROM t", "w"),
    "index of a view": (
        "CREATE MATERIALIZED VIEW w AS SELECT id, v FROM t; CREATE INDEX w_v ON w (v, id)",
        "w",
    ),
}


@pytest.mark.parametrize("name", ORDERED)
def test_reads_in_the_order_of_long_texts(con: belvedere.Connection, name: str) -> None:
    statements, relation = ORDERED[name]
    for statement in statements.split("; "):
        con.execute(statement)
    pairs = _fill(con)
    con.execute(f"ANALYZE {relation}" if relation == "t" else "ANALYZE t")
    select = f"SELECT v, id FROM {relation}"
    for order, expected in (("v, id", pairs), ("v DESC, id DESC", pairs[::-1])):
        assert con.execute(f"{select} ORDER BY {order}").fetchall() == expected
        assert con.execute(f"{select} ORDER BY {order} LIMIT 7").fetchall() == expected[:7]
        shown = con.execute(f"{select} ORDER BY {order} LIMIT 5 OFFSET 15").fetchall()
        assert shown == expected[15:20]
    least, most = con.execute(f"SELECT min(v), max(v) FROM {relation}").fetchone() or (None, None)
    assert (least, most) == (pairs[0][0], pairs[-1][0])


@pytest.mark.parametrize("name", ORDERED)
def test_ranges_with_long_bounds(con: belvedere.Connection, name: str) -> None:
    statements, relation = ORDERED[name]
    for statement in statements.split("; "):
        con.execute(statement)
    pairs = _fill(con)
    select = f"SELECT v, id FROM {relation}"
    for low, high in ((10, 20), (0, 33), (16, 17)):
        bounds = (pairs[low][0], pairs[high][0])
        for compare, inside in (
            ("v > ? AND v < ?", [p for p in pairs if bounds[0] < p[0] < bounds[1]]),
            ("v >= ? AND v <= ?", [p for p in pairs if bounds[0] <= p[0] <= bounds[1]]),
        ):
            asked = f"{select} WHERE {compare} ORDER BY v, id"
            assert con.execute(asked, bounds).fetchall() == inside
            assert con.execute(f"{asked} LIMIT 3", bounds).fetchall() == inside[:3]
            back = f"{select} WHERE {compare} ORDER BY v DESC, id DESC LIMIT 3"
            assert con.execute(back, bounds).fetchall() == inside[::-1][:3]
        equal = con.execute(f"{select} WHERE v = ?", bounds[:1]).fetchall()
        assert equal == [p for p in pairs if p[0] == bounds[0]]


def test_long_texts_are_unique_by_all_of_them(con: belvedere.Connection) -> None:
    con.execute("CREATE UNIQUE INDEX t_v ON t (v)")
    con.execute("INSERT INTO t (id, v) VALUES (1, ?), (2, ?)", (SHARED * 2 + "a", SHARED * 2 + "b"))
    with pytest.raises(belvedere.IntegrityError) as caught:
        con.execute("INSERT INTO t (id, v) VALUES (3, ?)", (SHARED * 2 + "b",))
    assert caught.value.sqlstate == "23505"
    con.execute(
        "INSERT INTO t (id, v, g) VALUES (3, ?, 5) ON CONFLICT (v) DO UPDATE SET g = excluded.g",
        (SHARED * 2 + "b",),
    )
    assert con.execute("SELECT id, g FROM t ORDER BY id").fetchall() == [(1, None), (2, 5)]


def test_fills_keep_long_texts_as_commits_do(con: belvedere.Connection) -> None:
    _fill(con)
    for name, query in VIEWS.items():
        con.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    con.execute("CREATE INDEX t_v ON t (v)")
    con.execute("UPDATE t SET v = v || 'more', g = 1 WHERE id % 2 = 0")
    con.execute("DELETE FROM t WHERE id % 3 = 0")
    for name in VIEWS:
        (found,) = con.execute(f"VERIFY MATERIALIZED VIEW {name}").fetchall()
        assert found[-1] is True, found


def test_a_number_or_primary_key_that_is_too_long_is_refused_by_name(
    con: belvedere.Connection,
) -> None:
    con.execute("CREATE TABLE named (k text PRIMARY KEY, n numeric)")
    with pytest.raises(
        belvedere.ProgrammingError, match=r"key is too long \(table=named"
    ) as caught:
        con.execute("INSERT INTO named VALUES (?, 1)", ("k" * 70_000,))
    assert caught.value.sqlstate == "54000"
    con.execute("CREATE MATERIALIZED VIEW numbers AS SELECT n, count(*) FROM named GROUP BY n")
    with pytest.raises(belvedere.ProgrammingError, match=r"key is too long \(view=numbers"):
        con.execute(
            "INSERT INTO named VALUES ('k', ?::numeric)", ("1" * 131_072 + "." + "3" * 9000,)
        )
    con.execute("INSERT INTO named VALUES ('k', 5)")
    assert con.execute("SELECT n FROM numbers").fetchall() == [(5,)]


def _keep_whole_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make views and indexes as they were before keys had digests."""
    put = CatalogEdit.put

    def put_as_before(self: CatalogEdit, item: AnyObject) -> None:
        if isinstance(item, View | Index):
            item = msgspec.structs.replace(item, digests=False)
        put(self, item)

    monkeypatch.setattr(CatalogEdit, "put", put_as_before)


def test_views_of_stores_made_before_keep_their_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "x" * 60_000
    with monkeypatch.context() as patched:
        _keep_whole_values(patched)
        with belvedere.connect(tmp_path / "store", autocommit=True) as con:
            con.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
            con.execute("CREATE INDEX t_v ON t (v)")
            con.execute("CREATE MATERIALIZED VIEW old AS SELECT v, count(*) AS n FROM t GROUP BY v")
            con.execute("INSERT INTO t VALUES (1, ?), (2, 'y')", (long,))
    with belvedere.connect(tmp_path / "store", autocommit=True) as con:
        con.execute("INSERT INTO t VALUES (3, ?)", (long,))
        con.execute("DELETE FROM t WHERE id = 2")
        assert con.execute("SELECT v, n FROM old").fetchall() == [(long, 2)]
        with pytest.raises(belvedere.ProgrammingError, match="key is too long") as caught:
            con.execute("INSERT INTO t VALUES (4, ?)", (long * 2,))
        assert caught.value.sqlstate == "54000"
        con.execute("DROP INDEX t_v")
        con.execute(
            "CREATE OR REPLACE MATERIALIZED VIEW old AS SELECT v, count(*) AS n FROM t GROUP BY v"
        )
        con.execute("INSERT INTO t VALUES (4, ?)", (long * 2,))
        assert con.execute("SELECT n FROM old ORDER BY v").fetchall() == [(2,), (1,)]
