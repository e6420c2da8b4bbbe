"""TPC-W at 1,000 customers: views change no answer, and writes take one root lock."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import belvedere
from belvedere.benchmarks.tpcw import suite, timing
from belvedere.benchmarks.tpcw.generate import TpcwRandom, choose_size
from belvedere.benchmarks.tpcw.mixes import MIXES, count_statements, write_workload
from belvedere.benchmarks.tpcw.statements import (
    CLEAR_CART,
    QUERIES,
    SEARCHES,
    STATEMENTS,
    WRITES,
    KeySource,
)
from belvedere.benchmarks.tpcw.systems import (
    ADVISED,
    PLAIN,
    ROW_LOCKS,
    RowLockSystem,
    TpcwStore,
    open_systems,
)

SIZE = choose_size(1_000)


@pytest.fixture(scope="module")
def stores() -> Iterator[dict[str, TpcwStore]]:
    """The same rows without views and with the advised ones."""
    with open_systems(SIZE, 1, (ADVISED, PLAIN)) as systems:
        made = {name: system for name, system in systems.items() if isinstance(system, TpcwStore)}
        advice = made[ADVISED].advise_views(write_workload("once"))
        assert {"Q4", "Q5", "Q10"} <= {q.name for q in advice.forecast.queries if q.views}
        yield made


def test_the_specification_s_cardinalities(stores: dict[str, TpcwStore]) -> None:
    expected = {"country": 92, "customer": 1_000, "address": 2_000, "orders": 900, "cc_xacts": 900}
    expected |= {"item": 1_000, "author": 250}
    for table, count in expected.items():
        assert stores[PLAIN].run(f"SELECT count(*) FROM {table}", ()) == [(count,)]
    ((lines,),) = stores[PLAIN].run("SELECT count(*) FROM order_line", ())
    assert 2.7 < lines / 900 < 3.3


def test_views_change_no_answer_before_and_after_writes(stores: dict[str, TpcwStore]) -> None:
    sources = {name: KeySource(TpcwRandom(5), SIZE) for name in stores}
    for _ in range(2):
        for statement in (*QUERIES, *SEARCHES):
            found = {}
            for name, store in stores.items():
                found[name] = store.run(statement.sql, statement.draw(sources[name]))
            assert sorted(map(repr, found[ADVISED])) == sorted(map(repr, found[PLAIN])), statement
        for write in (*WRITES, CLEAR_CART):
            for name, store in stores.items():
                for needed in write.needs:
                    store.run(STATEMENTS[needed].sql, STATEMENTS[needed].draw(sources[name]))
                store.run_write(write.name, write.sql, write.draw(sources[name]))


def test_the_views_equal_their_queries_after_all_writes(stores: dict[str, TpcwStore]) -> None:
    names = [row[0] for row in stores[ADVISED].run("SELECT name FROM belvedere.views", ())]
    assert {"cart_totals", "order_totals"} < set(names)
    for name in names:
        ((*_, equal),) = stores[ADVISED].run(f'VERIFY MATERIALIZED VIEW "{name}"', ())
        assert equal, name


def test_every_write_takes_one_root_lock(stores: dict[str, TpcwStore]) -> None:
    source = KeySource(TpcwRandom(9), SIZE, base=5_000_000)
    for write in WRITES:
        for needed in write.needs:
            stores[ADVISED].run(STATEMENTS[needed].sql, STATEMENTS[needed].draw(source))
        counts = stores[ADVISED].count_locks(write.sql, write.draw(source))
        assert counts == {"root": 1}, write.name


def test_mixes_add_up() -> None:
    for mix, shares in MIXES.items():
        assert sum(shares) == pytest.approx(100, abs=0.1), mix
        assert count_statements(mix)["Q9"] > 0


def test_the_report_has_every_statement_and_goal() -> None:
    report = suite.run(100, 1, items=1_000, variants=(ADVISED, PLAIN), runs=1)
    names = " ".join(figure.name for figure in report.figures)
    assert all(f"{name}, {ADVISED}" in names for name in STATEMENTS)
    assert any(figure.goal == ">= 3 value" for figure in report.figures)
    expected = {"TPC-W locks", "TPC-W scans of joins", "TPC-W joins", "TPC-W writes"}
    assert {plot.title for plot in report.plots} == expected


def test_entry_locks_are_those_of_the_entries_that_a_write_changes() -> None:
    size = choose_size(50, 20)
    with open_systems(size, 1, (ROW_LOCKS,)) as systems:
        system = systems[ROW_LOCKS]
        assert isinstance(system, RowLockSystem)
        joined = "SELECT * FROM order_line, item WHERE ol_i_id = i_id"
        system.run(f"CREATE MATERIALIZED VIEW v AS {joined}", ())
        system.run("CREATE MATERIALIZED VIEW w AS SELECT * FROM item WHERE i_stock > 0", ())
        system.prepare_locks()
        ((lines, orders),) = system.run(
            "SELECT count(*), count(DISTINCT ol_o_id) FROM order_line WHERE ol_i_id = 7", ()
        )
        sql = "UPDATE item SET {} WHERE i_id = ?"
        system.count_entries("stock", sql.format("i_stock = i_stock + 1"), [(7,), (7,)])
        assert system.entries["stock"] == 2 * lines + 2
        system.count_entries("cost", sql.format("i_cost = i_cost + 1"), [(7,)])
        assert system.entries["cost"] == 2 * lines + 2 + orders
        system.run_write("stock", sql.format("i_stock = 5"), (7,))
        assert system.run("SELECT i_stock FROM item WHERE i_id = 7", ()) == [(5,)]


def test_all_variants_run_one_after_the_other_on_a_store_that_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "RUN_S", 1e-9)
    monkeypatch.setattr(timing, "EXECUTIONS_MAX", 1)
    variants = (PLAIN, ROW_LOCKS)
    report = suite.run(50, 1, items=20, database=str(tmp_path / "store"), variants=variants, runs=2)
    names = {figure.name.partition(" (")[0] for figure in report.figures}
    assert {"Q4, row locks", "W13, row locks", "Q1 to Q11, row locks: faster by"} <= names
    assert "customers and orders, one customer, by a view: faster by" in names
    assert all(figure.baseline for figure in report.figures if figure.name.startswith("Q4,"))
    with belvedere.connect(tmp_path / "store") as left:
        views = left.execute("SELECT name FROM belvedere.views ORDER BY name").fetchall()
        assert views == [("cart_totals",), ("order_totals",)]


def test_queries_that_no_view_answers_do_the_same_work_beside_views(
    stores: dict[str, TpcwStore],
) -> None:
    """By the calls of a run whose plan is kept: none may be for the views that are there."""
    sources = {name: KeySource(TpcwRandom(9), SIZE) for name in stores}
    compared = []
    for query in QUERIES:
        drawn = {name: query.draw(source) for name, source in sources.items()}
        plans = [_explain_query(store, query.sql, drawn[name]) for name, store in stores.items()]
        if plans[0] != plans[1]:
            continue
        calls = {
            name: min(_count_calls(store, query.sql, drawn[name]) for _ in range(8))
            for name, store in stores.items()
        }
        assert abs(calls[ADVISED] - calls[PLAIN]) <= 2, (query.name, calls)
        compared.append(query.name)
    assert compared == ["Q1", "Q3", "Q6", "Q7", "Q8", "Q9", "Q11"]


def _explain_query(store: TpcwStore, sql: str, parameters: Sequence[Any]) -> list[str]:
    lines = [line for (line,) in store.run(f"EXPLAIN {sql}", parameters)]
    return [line for line in lines if not line.startswith("view ")]


def _count_calls(store: TpcwStore, sql: str, parameters: Sequence[Any]) -> int:
    """Calls of functions in a run, those in C too."""
    found = 0

    def count_call(frame: FrameType, event: str, argument: object) -> None:
        nonlocal found
        found += event in ("call", "c_call")

    store.run(sql, parameters)
    sys.setprofile(count_call)
    try:
        store.run(sql, parameters)
    finally:
        sys.setprofile(None)
    return found
