"""A column in few numbers tells about how many rows a condition or a join keeps."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal

import pytest

import belvedere
from belvedere.sql.rules.column_summary import ColumnSummary, summarize_column

RNG = random.Random(7)


def made(values: list[object], rows: float | None = None) -> ColumnSummary:
    found = summarize_column(values, len(values) if rows is None else rows)
    assert found is not None
    return found


def test_few_values_are_known_exactly() -> None:
    found = made(["a"] * 70 + ["b"] * 20 + [None] * 10)
    assert (found.distinct, found.nulls) == (2.0, 0.1)
    assert found.equal_share("a") == 0.7
    assert found.equal_share("b") == 0.2
    assert found.equal_share(None) == 0.0


def test_a_frequent_value_among_many_is_known() -> None:
    found = made([0] * 500 + list(range(1, 501)))
    assert found.equal_share(0) == 0.5
    assert found.equal_share(77) == pytest.approx(0.001)
    assert found.distinct == 501


def test_distinct_values_of_the_whole_are_told_from_a_sample() -> None:
    few = [RNG.randrange(200) for _ in range(3_000)]
    assert made(few, 1_000_000).distinct == pytest.approx(200, rel=0.05)
    many = [RNG.randrange(20_000) for _ in range(3_000)]
    assert 8_000 < made(many, 1_000_000).distinct < 60_000
    key = RNG.sample(range(1_000_000), 3_000)
    assert made(list(key), 1_000_000).distinct == 1_000_000


@pytest.mark.parametrize("value", [0, 13, 250, 499, 950, 999])
def test_how_much_is_below_follows_the_spread(value: int) -> None:
    # Nine tenths of the rows are in the lowest tenth of the values.
    values = [RNG.randrange(100) for _ in range(9_000)] + [RNG.randrange(1000) for _ in range(1000)]
    share = sum(one < value for one in values) / len(values)
    found = made(list(values)).share_below(value, inclusive=False)
    assert found == pytest.approx(share, abs=0.05)


def test_below_of_what_is_outside() -> None:
    found = made([datetime.date(2024, 1, 1) + datetime.timedelta(i) for i in range(100)])
    assert found.share_below(datetime.date(2020, 1, 1), inclusive=True) == 0.0
    assert found.share_below(datetime.date(2030, 1, 1), inclusive=True) == pytest.approx(1.0)
    assert found.share_below("text", inclusive=True) is None


def test_below_what_has_no_order_is_not_told() -> None:
    numbers = made([Decimal("NaN")] * 5 + [Decimal(i) for i in range(5)])
    assert numbers.share_below(Decimal(3), inclusive=True) is None
    assert made([Decimal(1), Decimal(2)]).share_below(Decimal("NaN"), inclusive=True) is None
    assert made([Decimal("NaN"), *map(Decimal, range(500))]).bounds == ()


@pytest.mark.parametrize("skewed", [False, True])
def test_a_join_keeps_about_so_many_pairs(skewed: bool) -> None:
    def column(size: int) -> list[int]:
        hot = size // 2 if skewed else 0
        return [7] * hot + [RNG.randrange(300) for _ in range(size - hot)]

    left, right = column(3_000), column(2_000)
    pairs = sum(right.count(value) for value in left)
    found = made(list(left)).join_share(made(list(right)))
    assert found * len(left) * len(right) == pytest.approx(pairs, rel=0.2)


@pytest.mark.parametrize("values", [[], [[1], [2]]])
def test_nothing_is_said_where_nothing_can_be(values: list[object]) -> None:
    assert summarize_column(values, 100.0) is None


def test_nulls_alone() -> None:
    found = made([None] * 5)
    assert (found.distinct, found.nulls, found.equal_share(1)) == (0.0, 1.0, 0.0)
    assert found.share_below(3, inclusive=True) == 0.0


def test_char_columns_are_estimated_by_their_values() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE c (id int PRIMARY KEY, kind char(5) NOT NULL)")
        con.execute(
            "INSERT INTO c SELECT g, CASE WHEN g % 7 < 3 THEN 'a' ELSE 'b' END "
            "FROM generate_series(1, 4000) AS g"
        )
        line = con.execute("EXPLAIN SELECT id FROM c WHERE kind = 'b'").fetchall()[0][0]
        rows = int(line.partition("rows=")[2].partition(")")[0])
        assert 1_000 < rows < 3_900
