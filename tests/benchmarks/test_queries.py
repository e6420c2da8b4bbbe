"""TPC-H answers as DuckDB does, its data has the promised shape, and a difference is seen."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from belvedere.benchmarks import queries
from belvedere.benchmarks.tpch import schema
from belvedere.benchmarks.tpch.generate import compute_sizes, generate_tables

LINES = 6000

CANNOT_RUN: dict[int, str] = {}
"""Queries that do not run yet, by number, with the reason. May only shrink."""


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> Iterator[queries.ComparedSystems]:
    with queries.open_systems(tmp_path_factory.mktemp("tpch"), LINES, seed=1) as opened:
        yield opened


@pytest.mark.parametrize("number", schema.QUERIES)
def test_query_gives_the_rows_that_duckdb_gives(
    systems: queries.ComparedSystems, number: int
) -> None:
    if number in CANNOT_RUN:
        with pytest.raises(queries.Error):
            systems.run_belvedere(number)
        return
    theirs = systems.run_duckdb(number)
    assert theirs
    assert any(value is not None for row in theirs for value in row)
    ordered = number in schema.TOTALLY_ORDERED
    assert queries.find_difference(systems.run_belvedere(number), theirs, ordered=ordered) is None


def test_answers_stay_the_same_while_another_connection_commits(
    systems: queries.ComparedSystems,
) -> None:
    with queries.commit_meanwhile(systems) as commits:
        for _ in range(100):
            for number in (1, 4, 13):
                found = queries.find_difference(
                    systems.run_belvedere(number), systems.run_duckdb(number), ordered=True
                )
                assert found is None
            if commits():
                break
        assert commits()


def test_every_query_is_measured_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "FILE_ROWS", 500)  # several files of a table
    report = queries.run(1200, seed=2)
    names = {figure.name for figure in report.figures}
    for number in schema.QUERIES:
        assert {f"Q{number}, first run", f"Q{number}, repeated"} <= names
    assert "scan to Arrow" in names
    (equal,) = [f for f in report.figures if f.name == "queries equal to DuckDB's"]
    assert equal.value == len(schema.QUERIES)
    assert equal.meets_goal


def test_the_same_seed_gives_the_same_data_and_another_gives_other() -> None:
    size = compute_sizes(400)
    first, again, other = (generate_tables(size, seed) for seed in (5, 5, 6))
    assert all(first[name].equals(again[name]) for name in schema.TABLES)
    assert not first["lineitem"].equals(other["lineitem"])


def test_tables_come_in_the_order_of_their_foreign_keys() -> None:
    assert list(generate_tables(compute_sizes(400), seed=1)) == list(schema.TABLES)


@pytest.mark.parametrize("lines", [4, 400, 30_000, 44_444])
def test_a_part_has_four_suppliers_and_lines_name_one_of_them(lines: int) -> None:
    made = generate_tables(compute_sizes(lines), seed=3)
    stocked = _pairs(made["partsupp"], "ps_partkey", "ps_suppkey")
    assert len(stocked) == len(set(stocked)) == 4 * made["part"].num_rows
    assert set(_pairs(made["lineitem"], "l_partkey", "l_suppkey")) <= set(stocked)


def _pairs(table: pa.Table, *columns: str) -> list[tuple[int, ...]]:
    return list(zip(*(table[column].to_pylist() for column in columns), strict=True))


def test_sizes_are_the_specifications_at_scale_one() -> None:
    size = compute_sizes(6_000_000)
    found = (size.orders, size.customers, size.parts, size.suppliers)
    assert found == (1_500_000, 150_000, 200_000, 10_000)
    assert Decimal(size.fraction) == Decimal("0.0001")


@pytest.mark.parametrize(
    ("ours", "theirs", "ordered"),
    [
        ([(1,)], [], False),
        ([(1,), (1,)], [(1,), (2,)], False),
        ([(1,), (2,)], [(2,), (1,)], True),
        ([(Decimal("1.00"),)], [(Decimal("1.01"),)], False),
        ([(Decimal("1.0000001"),)], [(1.0,)], False),
        ([("a",)], [("b",)], False),
        ([(None,)], [(0,)], False),
        ([(date(1995, 1, 1),)], [(date(1995, 1, 2),)], False),
    ],
)
def test_a_difference_is_seen(ours: queries.Rows, theirs: queries.Rows, ordered: bool) -> None:
    assert queries.find_difference(ours, theirs, ordered=ordered) is not None


@pytest.mark.parametrize(
    ("ours", "theirs", "ordered"),
    [
        ([], [], True),
        ([(2, None), (1, 3)], [(1, 3), (2, None)], False),
        ([(Decimal("1.50"),)], [(Decimal("1.5"),)], True),
        ([(Decimal("0.3333333333333333"),)], [(1 / 3,)], True),
        ([("FRANCE    ",)], [("FRANCE",)], True),
    ],
)
def test_equal_answers_are_equal(ours: queries.Rows, theirs: queries.Rows, ordered: bool) -> None:
    assert queries.find_difference(ours, theirs, ordered=ordered) is None
