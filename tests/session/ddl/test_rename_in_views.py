"""Tables and columns renamed under views: the views go on, and say so."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import belvedere
from belvedere.errors import InvalidInput
from tests.views.sql import Store, opened

TEXTS = {
    "totals": "SELECT t.g, count(*) AS c, sum(v) AS s FROM t WHERE t.v > 0 GROUP BY t.g",
    "pairs": "SELECT a.id AS x, b.v FROM t a JOIN public.t AS b ON a.g = b.g",
    "nested": "SELECT id, (SELECT max(v) FROM t) AS m FROM (SELECT * FROM t) AS q",
    "odd": 'SELECT "T two"."v ""x""" AS y FROM "T two"',
    "listed": "SELECT one, two FROM t AS x(one, two) WHERE EXISTS (SELECT 1 FROM t WHERE v = one)",
}


def made(store: Store, maintenance: str = "immediate") -> None:
    store.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
    store.run('CREATE TABLE "T two" (id int PRIMARY KEY, "v ""x""" int)')
    store.run("INSERT INTO t VALUES (1, 1, 1), (2, 1, 2)", 'INSERT INTO "T two" VALUES (1, 1)')
    for name, text in TEXTS.items():
        store.run(f"CREATE MATERIALIZED VIEW {name} WITH (maintenance = '{maintenance}') AS {text}")


def shown(store: Store) -> dict[str, Counter[object]]:
    return {name: Counter(store.run(f"SELECT * FROM {name}")) for name in TEXTS}


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_views_go_on_under_renamed_tables_and_columns(maintenance: str) -> None:
    with opened() as store:
        made(store, maintenance)
        before = shown(store)
        store.run("ALTER TABLE t RENAME COLUMN v TO amount")
        store.run('ALTER TABLE t RENAME TO "sales ""of"" t"')
        store.run(
            'ALTER TABLE "T two" RENAME TO plain', 'ALTER TABLE plain RENAME COLUMN "v ""x""" TO v'
        )
        store.run('ALTER TABLE "sales ""of"" t" RENAME COLUMN g TO grouped')
        assert shown(store) == before
        store.run('INSERT INTO "sales ""of"" t" VALUES (3, 2, 7)', "DELETE FROM plain")
        after = shown(store)
        assert after["totals"] == Counter([(1, 2, 3), (2, 1, 7)])
        assert after["odd"] == Counter()
        assert set(store.verified().values()) == {True}


def test_the_definition_says_the_new_name() -> None:
    with opened() as store:
        made(store)
        store.run("ALTER TABLE t RENAME TO sales")
        definition = store.view("totals").definition
        assert "public.sales AS t" in definition
        assert store.run(
            "SELECT count(*) FROM belvedere.views WHERE definition LIKE '%sales%'"
        ) == [(4,)]


def test_renamed_tables_are_found_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path / "shop.db") as store:
        made(store)
        store.run("ALTER TABLE t RENAME COLUMN g TO h", "ALTER TABLE t RENAME TO u")
        before = shown(store)
    with opened(tmp_path / "shop.db") as store:
        assert shown(store) == before
        store.run("CREATE TABLE t (x text)", "INSERT INTO t VALUES ('no')")
        store.run("INSERT INTO u VALUES (9, 9, 9)")
        assert (9, 1, 9) in shown(store)["totals"]
        assert set(store.verified().values()) == {True}


def test_a_name_that_means_two_things_is_refused() -> None:
    with opened() as store:
        store.run("CREATE TABLE t (id int PRIMARY KEY, v int)")
        store.run(
            "CREATE MATERIALIZED VIEW x AS WITH q AS (SELECT id FROM t),"
            " t AS (SELECT id FROM q) SELECT id FROM t"
        )
        with pytest.raises(InvalidInput) as found:
            store.run("ALTER TABLE t RENAME TO u")
        assert found.value.sqlstate == "2BP01"
        assert store.run("SELECT count(*) FROM t") == [(0,)]


def test_a_used_column_is_not_dropped_and_all_its_users_are_named() -> None:
    with opened() as store:
        made(store)
        with pytest.raises(InvalidInput) as found:
            store.run("ALTER TABLE t DROP COLUMN g")
        assert found.value.sqlstate == "2BP01"
        detail = found.value.detail or ""
        assert "totals" in detail
        assert "pairs" in detail


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_columns_of_materialized_views_are_renamed(tmp_path: Path, maintenance: str) -> None:
    with opened(tmp_path) as store:
        made(store, maintenance)
        store.run(
            "CREATE INDEX totals_by_sum ON totals (s)",
            "CREATE VIEW seen AS SELECT g, s FROM totals",
            f"CREATE MATERIALIZED VIEW above WITH (maintenance = '{maintenance}')"
            " AS SELECT x.s, count(*) AS n FROM totals AS x GROUP BY x.s",
        )
        store.run("ALTER MATERIALIZED VIEW totals RENAME COLUMN s TO total")
        store.run('ALTER MATERIALIZED VIEW totals RENAME c TO "how many"')
        store.run("INSERT INTO t VALUES (3, 2, 7)")
        assert store.run('SELECT total, "how many" FROM totals WHERE total = 7') == [(7, 1)]
        assert sorted(store.run("SELECT s FROM seen")) == [(3,), (7,)]
        assert sorted(store.run("SELECT s, n FROM above")) == [(3, 1), (7, 1)]
        assert set(store.verified().values()) == {True}
        for bad, state in (("total TO g", "42701"), ("s TO x", "42703")):
            with pytest.raises(InvalidInput) as raised:
                store.run(f"ALTER MATERIALIZED VIEW totals RENAME COLUMN {bad}")
            assert raised.value.sqlstate == state
    with opened(tmp_path) as store:
        store.run("INSERT INTO t VALUES (4, 2, 1)")
        assert store.run("SELECT total FROM totals WHERE g = 2") == [(8,)]
        assert set(store.verified().values()) == {True}


def test_columns_that_no_view_reads_are_dropped_after_a_rename() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE r (id int PRIMARY KEY, a int, b int, c int, d text, e int)")
        con.execute("INSERT INTO r VALUES (1, 2, 3, 4, 'x', 5)")
        con.execute("CREATE MATERIALIZED VIEW v AS SELECT id, a FROM r WHERE b > 0")
        con.execute("CREATE MATERIALIZED VIEW w AS SELECT x.a, count(*) AS n FROM r x GROUP BY x.a")
        con.execute("CREATE VIEW p AS SELECT id, c, d FROM public.r AS q")
        con.execute("ALTER TABLE r RENAME COLUMN a TO aa")
        con.execute("ALTER TABLE r RENAME COLUMN c TO cc")
        con.execute("ALTER TABLE r DROP COLUMN e")
        for column, view in (("d", "p"), ("cc", "p"), ("b", "v"), ("aa", "v")):
            with pytest.raises(belvedere.Error, match=f"view {view}") as refused:
                con.execute(f"ALTER TABLE r DROP COLUMN {column}")
            assert refused.value.sqlstate == "2BP01"
        con.execute("DROP VIEW p")
        con.execute("ALTER TABLE r DROP COLUMN cc, DROP COLUMN d")
        con.execute("INSERT INTO r VALUES (2, 2, 3)")
        assert sorted(con.execute("SELECT * FROM v").fetchall()) == [(1, 2), (2, 2)]
        assert con.execute("SELECT * FROM w").fetchall() == [(2, 2)]
        for view in "vw":
            assert con.execute(f"VERIFY MATERIALIZED VIEW {view}").fetchall()
