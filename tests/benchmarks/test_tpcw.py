"""TPC-W at 1,000 customers: views change no answer, and writes take one root lock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.benchmarks.tpcw import suite
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
from belvedere.benchmarks.tpcw.systems import ADVISED, PLAIN, TpcwStore, open_systems

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
    assert [plot.title for plot in report.plots] == ["TPC-W joins", "TPC-W writes"]
