"""Batches of deferred views by size: Python, sums in DuckDB, the whole view anew in DuckDB."""

from __future__ import annotations

import math
import random
import threading

import pytest

from belvedere.database import Database
from belvedere.errors import InvalidInput
from belvedere.session.materialized.subscription import open_view_subscription
from belvedere.views.cost import cost_model, measured_costs, row_counts, tier_selector
from belvedere.views.cost.maintenance_tier import MaintenanceTier
from belvedere.views.cost.tier_selector import CHANGES_MIN
from belvedere.views.deferred.batch import (
    compute_batch_per_unit,
    find_maintenance_unit,
    write_batch_if_valid,
)
from belvedere.views.maintain.maintainer import ViewMaintainer
from belvedere.views.state.additions import AdditionRecorder, build_state_row_writes
from tests.properties.views.law import open_manual, stored_state
from tests.views.sql import Store, opened

TABLES = (
    "CREATE TABLE p (id int PRIMARY KEY, kind text, rate numeric(6,2))",
    "CREATE TABLE t (id int PRIMARY KEY, g int, v bigint, price numeric(10,2), at date,"
    " w double precision)",
)
SUMMED = {
    "sums": "SELECT g, count(*) AS n, sum(v) AS s, avg(price) AS a FROM t GROUP BY g",
    "filtered": "SELECT g, count(v) FILTER (WHERE v > 3) AS n, sum(price) AS s FROM t"
    " WHERE v % 3 <> 1 GROUP BY g HAVING count(*) > 1",
    "grand": "SELECT count(*) AS n, sum(v + 1) AS s FROM t",
    "days": "SELECT at, sum(price * 2) AS s FROM t GROUP BY at",
    "joined": "SELECT p.kind, count(*) AS n, sum(t.v) AS s, sum(p.rate) AS r"
    " FROM t JOIN p ON p.id = t.g GROUP BY p.kind",
    "united": "SELECT g, count(*) AS n FROM (SELECT g FROM t UNION ALL SELECT id FROM p) u"
    " GROUP BY g",
    "distinct_": "SELECT DISTINCT g, at FROM t",
}
"""Views whose batches DuckDB adds up."""

ANEW = {
    "ends": "SELECT g, min(v) AS a, max(at) AS b FROM t GROUP BY g",
    "rows": "SELECT t.id, p.kind FROM t LEFT JOIN p ON p.id = t.g",
    "ranked": "SELECT id, row_number() OVER (PARTITION BY g ORDER BY v) AS r FROM t",
    "first_": "SELECT id, v FROM t ORDER BY v LIMIT 3",
    "one_each": "SELECT DISTINCT ON (g) g, v, at FROM t ORDER BY g, v",
    "counted": "SELECT g, count(DISTINCT v) AS n FROM t GROUP BY g",
    "rest": "SELECT g FROM t EXCEPT SELECT id FROM p",
    "never": "SELECT id FROM t WHERE g NOT IN (SELECT id FROM p WHERE kind <> 'a')",
}
"""Views that DuckDB computes anew."""

PYTHON = {
    "floats": "SELECT g, sum(w) AS s FROM t GROUP BY g",
    "spread": "SELECT g, variance(v) AS s FROM t GROUP BY g",
    "joint": "SELECT g, string_agg(price::text, ',' ORDER BY v) AS s FROM t GROUP BY g",
    "firsts": "SELECT id, first_value(id) OVER (PARTITION BY g ORDER BY v) AS r FROM t",
}
"""Views whose batches stay in Python."""

ALL = SUMMED | ANEW | PYTHON


def made(store: Store, views: dict[str, str]) -> None:
    store.run(*TABLES)
    for name, query in views.items():
        store.run(
            f"CREATE MATERIALIZED VIEW {name} WITH (maintenance = 'deferred',"
            f" refresh_every = '1 d') AS {query}"
        )


def change(store: Store, rng: random.Random) -> None:
    id_, g = rng.randrange(40), rng.choice(["NULL", "0", "1", "2", "3"])
    v, price = (
        rng.choice(["NULL", "1", "7", "-3", "9007199254740993"]),
        rng.choice(["1.50", "NULL"]),
    )
    day = rng.choice(["NULL", "'2026-01-01'", "'2026-01-02'"])
    store.run(
        rng.choice(
            [
                f"INSERT INTO t VALUES ({id_}, {g}, {v}, {price}, {day}, 0.1)"
                f" ON CONFLICT (id) DO UPDATE SET g = {g}, v = {v}, price = {price}, at = {day}",
                f"DELETE FROM t WHERE id = {id_}",
                f"UPDATE t SET g = {g}, w = w * 3 WHERE id > {id_}",
                f"INSERT INTO p VALUES ({id_ % 4}, 'a', 2.5) ON CONFLICT (id) DO UPDATE"
                " SET kind = 'b', rate = NULL",
                f"DELETE FROM p WHERE id = {id_ % 4}",
            ]
        )
    )


def last_batch(store: Store, name: str) -> str:
    ((found,),) = store.run(f"SELECT last_batch FROM belvedere.views WHERE name = '{name}'")
    return str(found)


@pytest.mark.parametrize("tier", ["python", "duckdb", "refill"])
def test_every_tier_keeps_the_same_state(tier: str, seed: int) -> None:
    rng = random.Random(seed)
    with opened() as store:
        made(store, ALL)
        store.run(f"SET maintenance_tier = {tier}")
        for _ in range(6):
            for _ in range(rng.randrange(1, 8)):
                change(store, rng)
            for name in ALL:
                if rng.random() < 0.6:
                    store.run(f"REFRESH MATERIALIZED VIEW {name}")
        for name in ALL:
            store.run(f"REFRESH MATERIALIZED VIEW {name}")
        wrong = [name for name, right in store.verified().items() if not right]
        assert not wrong, f"seed {seed}"
        with store.db.begin() as reader:
            for name in ALL:
                view = store.view(name)
                maintainer = store.db.views.registry.get_view_maintainer(reader.catalog, view)
                recorded = _filled(store, name)
                assert stored_state(reader, view) == recorded, f"seed {seed}: {name}"
                if tier != "python" and name not in PYTHON:
                    assert maintainer.duckdb_evaluator.refusal is None, name


def _filled(store: Store, name: str) -> dict[bytes, tuple[int, ...]]:
    """The state that Python makes of the tables."""
    with store.db.begin() as reader:
        recorder = AdditionRecorder()
        store.db.views.registry.get_view_maintainer(
            reader.catalog, store.view(name)
        ).backfill_state(reader, recorder)
        return {key: amounts for key, _, amounts in recorder.additions}


@pytest.mark.parametrize(
    ("tier", "names", "way"),
    [
        ("duckdb", SUMMED, "duckdb"),
        ("duckdb", ANEW, "refill"),
        ("duckdb", PYTHON, "python"),
        ("refill", SUMMED | ANEW, "refill"),
        ("refill", PYTHON, "python"),
        ("python", SUMMED, "python"),
    ],
)
def test_a_tier_is_taken_where_it_is_exact(tier: str, names: dict[str, str], way: str) -> None:
    with opened() as store:
        made(store, names)
        store.run("INSERT INTO p VALUES (1, 'a', 1)")
        for name in names:
            store.run(f"REFRESH MATERIALIZED VIEW {name}")
        store.run(f"SET maintenance_tier = {tier}")
        store.run("INSERT INTO t VALUES (1, 1, 1, 1.5, NULL, 0.5), (2, 1, 2, NULL, NULL, 0.25)")
        for name in names:
            store.run(f"REFRESH MATERIALIZED VIEW {name}")
            assert last_batch(store, name).startswith(f"{way}: "), (name, last_batch(store, name))
        assert all(store.verified().values())


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is large is smaller here by a hundred times, and what a statement costs by more; a
    change costs more in Python than DuckDB takes for it. What a batch really takes is not looked
    at, and states are counted each time: both depend on the machine."""
    monkeypatch.setattr(measured_costs, "CHANGES_MIN", math.inf)
    monkeypatch.setattr(row_counts, "SHARE", math.inf)
    monkeypatch.setattr(tier_selector, "CHANGES_MIN", CHANGES_MIN // 100)
    monkeypatch.setattr(tier_selector, "COLUMN_CHANGES_MIN", CHANGES_MIN // 100)
    monkeypatch.setattr(cost_model, "STATEMENT_S", cost_model.STATEMENT_S / 1000)
    monkeypatch.setattr(cost_model, "CHANGE_S", 4 * cost_model.ADDED_CHANGE_S)


FEW = CHANGES_MIN // 100


def large(store: Store, rows: int) -> None:
    store.run(
        f"INSERT INTO t SELECT i, i % 10, i, 1.5, NULL, 0 FROM generate_series(1, {rows}) s(i)"
    )


def test_the_size_of_a_batch_decides(small: None) -> None:
    rows = 4 * FEW
    with opened() as store:
        made(store, {name: ALL[name] for name in ("sums", "ends", "floats")})
        large(store, rows)
        for name in ("sums", "ends", "floats"):
            store.run(f"REFRESH MATERIALIZED VIEW {name}")
        assert last_batch(store, "sums") == f"duckdb: {rows} changes, by columns"
        assert last_batch(store, "ends").startswith("refill: at least")
        assert "exact in Python only" in last_batch(store, "floats")
        store.run("UPDATE t SET v = v + 1 WHERE id <= 10")
        for name in ("sums", "ends"):
            store.run(f"REFRESH MATERIALIZED VIEW {name}")
            assert last_batch(store, name) == "python: 10 changes"
        assert all(store.verified().values())


@pytest.fixture
def without_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """No batch is added up by columns, as where one of its views cannot be."""
    monkeypatch.setattr(ViewMaintainer, "can_sum_by_columns", lambda *_: False)


def test_a_batch_that_is_large_and_yet_small_beside_its_table_is_added_up_by_duckdb(
    small: None, without_columns: None
) -> None:
    with opened() as store:
        made(store, {"sums": ALL["sums"]})
        large(store, 4 * FEW)
        store.run("REFRESH MATERIALIZED VIEW sums")
        of_store = store.db.views.registry.tiers.row_counts
        known = of_store.count_rows
        assert known(store.db.get_compiled_table("t").table.id) == 4 * FEW
        of_store.count_rows = lambda relation: 1000 * known(relation)
        of_store.clear_counts()
        store.run(f"UPDATE t SET v = v + 1, g = g + 1 WHERE id <= {3 * FEW}")
        store.run("REFRESH MATERIALIZED VIEW sums")
        assert last_batch(store, "sums").startswith(f"duckdb: {3 * FEW} changes: ")
        assert all(store.verified().values())


def test_a_table_of_too_many_rows_is_not_read_for_a_batch(small: None) -> None:
    with opened() as store:
        made(store, {name: ALL[name] for name in ("sums", "ends")})
        large(store, 4 * FEW)
        store.db.views.registry.tiers.row_counts.count_rows = lambda relation: (
            tier_selector.ROWS_MAX + 1
        )
        for name, way in (("sums", "duckdb"), ("ends", "python")):
            store.run(f"REFRESH MATERIALIZED VIEW {name}")
            assert last_batch(store, name).startswith(f"{way}: ")
            told = [row[0] for row in store.run(f"EXPLAIN MATERIALIZED VIEW {name}")]
            assert not any("computed anew" in line for line in told)
        assert all(store.verified().values())


def test_a_view_with_many_rows_is_not_compared_as_a_whole_for_some(
    small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "SELECT t.id, p.kind FROM t LEFT JOIN p ON p.id = t.g"
    with opened() as store:
        made(store, {"rows": rows, "ends": ALL["ends"]})
        large(store, 20 * FEW)
        store.run("REFRESH MATERIALIZED VIEW rows", "REFRESH MATERIALIZED VIEW ends")
        monkeypatch.setattr(tier_selector, "STATE_COUNTED_MAX", FEW)
        monkeypatch.setattr(cost_model, "COMPARED_S", 1e-4)
        store.run(f"UPDATE t SET v = v + 1, g = g + 1 WHERE id <= {2 * FEW}")
        store.run("REFRESH MATERIALIZED VIEW rows", "REFRESH MATERIALIZED VIEW ends")
        assert last_batch(store, "rows").startswith("python: ")
        assert last_batch(store, "ends").startswith("refill: ")
        assert all(store.verified().values())


def test_explain_says_who_works_out_batches_and_why() -> None:
    with opened() as store:
        made(store, {name: ALL[name] for name in ("sums", "floats")})
        large(store, 100)

        def lines(name: str) -> list[str]:
            return [row[0] for row in store.run(f"EXPLAIN MATERIALIZED VIEW {name}")]

        (told,) = [line for line in lines("sums") if line.startswith("batches: ")]
        assert told.startswith("batches: Python; added up by columns from about ")
        assert "computed anew by DuckDB from about " in told
        assert "batches: Python: sums of floats and of squares are exact in Python only" in lines(
            "floats"
        )
        store.run("REFRESH MATERIALIZED VIEW sums")
        assert "last batch: python: 100 changes" in lines("sums")
        store.run("SET maintenance_tier = refill")
        assert "batches: refill where it can be, set maintenance_tier" in lines("sums")


def test_a_way_that_was_slower_than_expected_is_left_for_another(
    small: None, without_columns: None
) -> None:
    with opened() as store:
        made(store, {"sums": ALL["sums"]})
        large(store, 4 * FEW)
        store.run("REFRESH MATERIALIZED VIEW sums")
        assert last_batch(store, "sums").startswith("refill: at least")
        known = store.db.views.registry.tiers.costs
        known._factors[store.view("sums").id, MaintenanceTier.REFILL] = 1e6
        store.run(f"UPDATE t SET v = v + 1 WHERE id <= {4 * FEW}")
        store.run("REFRESH MATERIALIZED VIEW sums")
        assert last_batch(store, "sums").startswith(f"duckdb: {4 * FEW} changes: ")
        known._factors[store.view("sums").id, MaintenanceTier.DUCKDB] = 1e6
        store.run(f"UPDATE t SET v = v + 1 WHERE id <= {4 * FEW}")
        store.run("REFRESH MATERIALIZED VIEW sums")
        assert last_batch(store, "sums").startswith(f"python: {4 * FEW} changes: ")
        assert all(store.verified().values())


def test_every_way_that_a_batch_goes_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured_costs, "CHANGES_MIN", 1)
    with opened() as store:
        made(store, {"sums": ALL["sums"]})
        large(store, 3)
        known = store.db.views.registry.tiers.costs
        for way in MaintenanceTier:
            store.run(f"SET maintenance_tier = {way}", "UPDATE t SET v = v + 1")
            store.run("REFRESH MATERIALIZED VIEW sums")
            measured = {key[1] for key in known._factors if isinstance(key, tuple)}
            assert measured == set(list(MaintenanceTier)[: list(MaintenanceTier).index(way) + 1])
        told = [row[0] for row in store.run("EXPLAIN MATERIALIZED VIEW sums")]
        assert any(line.startswith("last batch: refill: ") for line in told)


@pytest.mark.parametrize("tier", ["duckdb", "refill"])
def test_a_value_that_fails_is_the_views_error_until_it_is_gone(tier: str) -> None:
    with opened() as store:
        made(store, {"shares": "SELECT g, sum(100 / v) AS s FROM t GROUP BY g"})
        store.run(f"SET maintenance_tier = {tier}")
        store.run("INSERT INTO t VALUES (1, 1, 5, 1, NULL, 0), (2, 1, 0, 1, NULL, 0)")
        with pytest.raises(InvalidInput) as found:
            store.run("REFRESH MATERIALIZED VIEW shares")
        assert found.value.sqlstate == "22012"
        store.run("DELETE FROM t WHERE id = 2", "REFRESH MATERIALIZED VIEW shares")
        assert last_batch(store, "shares").startswith(f"{tier}: ")
        assert store.run("SET freshness = 'any'", "SELECT * FROM shares") == [(1, 20)]


@pytest.mark.parametrize("way", [MaintenanceTier.DUCKDB, MaintenanceTier.REFILL])
def test_a_batch_that_was_worked_out_twice_is_written_once(way: MaintenanceTier) -> None:
    with open_manual() as db:
        store = Store.__new__(Store)
        _attach(store, db)
        try:
            made(store, {"sums": ALL["sums"]})
            store.run("INSERT INTO t VALUES (1, 1, 5, 1, NULL, 0)")
            db.views.registry.tiers.requested_tier = way
            with db.begin() as reader:
                unit = find_maintenance_unit(reader, store.view("sums"))
                assert unit is not None
                batches = [*compute_batch_per_unit(db.views.registry, db.log, reader, [unit])]
                again = [*compute_batch_per_unit(db.views.registry, db.log, reader, [unit])]
                db.views.registry.tiers.requested_tier = MaintenanceTier.PYTHON
                (rows,) = compute_batch_per_unit(db.views.registry, db.log, reader, [unit])
                assert batches[0].rows == rows.rows
                assert rows.rows == build_state_row_writes(reader, rows.additions)
            assert [one.choices[store.view("sums").id].tier for one in batches] == [way]
            assert [write_batch_if_valid(db.commits, one) for one in batches + again] == [
                True,
                False,
            ]
            assert store.run("SELECT g, n FROM sums") == [(1, 1)]
        finally:
            store.db.close_shared_state()


def _attach(store: Store, db: Database) -> None:
    store.db = db
    store.shared = store.db.open_shared_state()
    store._first = store.session()


def test_subscribers_see_the_difference_that_a_refill_makes() -> None:
    with opened() as store:
        made(store, {"sums": "SELECT g, count(*) AS n FROM t GROUP BY g"})
        store.run("ALTER MATERIALIZED VIEW sums SET (keep_changes = '1000')")
        store.run("INSERT INTO t VALUES (1, 1, 5, 1, NULL, 0), (2, 2, 0, 1, NULL, 0)")
        store.run("REFRESH MATERIALIZED VIEW sums", "SET maintenance_tier = refill")
        at = store.db.views.read_view_watermark(store.view("sums"))
        store.run("DELETE FROM t WHERE id = 1", "UPDATE t SET v = 9 WHERE id = 2")
        store.run("REFRESH MATERIALIZED VIEW sums")
        changes = open_view_subscription(store.session(), "sums", at, timeout_s=0.0)
        assert [(row, weight) for _, row, weight in changes] == [((1, 1), -1)]


def test_closing_waits_for_a_batch_that_duckdb_works_out() -> None:
    with opened() as store:
        known, order = store.db.views.registry.tiers, []
        begun, ended = threading.Event(), threading.Event()

        def use() -> None:
            with known.borrow_duckdb_engine() as engine:
                assert engine is not None
                begun.set()
                assert ended.wait(60)
                order.append("used")

        def close() -> None:
            store.db.close_shared_state()
            order.append("closed")

        threads = [threading.Thread(target=one) for one in (use, close)]
        threads[0].start()
        assert begun.wait(60)
        threads[1].start()
        ended.set()
        for thread in threads:
            thread.join(60)
        assert order == ["used", "closed"]
        with known.borrow_duckdb_engine() as engine:
            assert engine is None


def test_closing_the_database_closes_what_its_sessions_share() -> None:
    with opened() as store:
        store.run("SET tier = duckdb", "SELECT count(*) FROM generate_series(1, 5)")
        engine, selector = store.shared.engine, store.db.views.registry.tiers
        assert selector.engine is engine
        assert engine._connection is not None
        store.db.close()
        assert selector.engine is None
        assert engine._connection is None


@pytest.mark.parametrize(
    ("query", "chosen"),
    [
        ("SELECT g, max(f) AS m FROM t GROUP BY g", False),
        ("SELECT DISTINCT f FROM t", False),
        ("SELECT x.f, t.id FROM (SELECT DISTINCT f FROM t) x JOIN t ON t.f = x.f", True),
        ("SELECT g, count(*) AS n FROM (SELECT DISTINCT g, f FROM t) x GROUP BY g", True),
        ("SELECT x.g, t.id FROM (SELECT DISTINCT g FROM t) x JOIN t ON t.g = x.g", False),
    ],
)
def test_which_of_equal_values_is_shown_inside_is_not_left_to_duckdb(
    query: str, chosen: bool
) -> None:
    with opened() as store:
        store.run("CREATE TABLE t (id int PRIMARY KEY, g int, f double precision)")
        store.run(f"CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred') AS {query}")
        told = str(store.run("EXPLAIN MATERIALIZED VIEW v"))
        assert ("which of equal values is shown" in told) is chosen
