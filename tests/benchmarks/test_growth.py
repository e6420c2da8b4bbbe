"""A change costs what it changes, whatever the size of tables and groups: by counted keys."""

from __future__ import annotations

import pytest

from belvedere.benchmarks.views import growth
from belvedere.benchmarks.views.growth import TableSize, measure_shapes
from belvedere.benchmarks.views.shapes import SHAPES

BY_GROUP = {"join + aggregate, parent changes"}
"""Shapes that still read their whole group for a change, though their answer does not need it. The
list only gets shorter."""


def find_growing_shapes(small: TableSize, large: TableSize) -> set[str]:
    of_small, of_large = measure_shapes(small, SHAPES), measure_shapes(large, SHAPES)
    return {
        shape.name
        for shape in SHAPES
        if of_large[shape.name].key_count > growth.GOAL * of_small[shape.name].key_count
    }


def test_a_change_touches_as_many_keys_in_a_large_group() -> None:
    answers = {shape.name for shape in SHAPES if shape.answer}
    found = find_growing_shapes(TableSize(2_000, 200), TableSize(2_000, 1_000))
    assert found == BY_GROUP | answers


def test_a_change_touches_as_many_keys_in_a_large_table() -> None:
    assert find_growing_shapes(TableSize(1_000, 100), TableSize(4_000, 100)) == set()


def test_every_shape_is_reported_by_keys_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "SHAPES", SHAPES[:5])
    monkeypatch.setattr(growth, "GROUP_ROWS", (10, 100))
    report = growth.run(0.01, 1, ["g"])
    assert [figure.name for figure in report.figures][:2] == [
        "(g) filter, keys",
        "(g) filter, time",
    ]
    assert len(report.figures) == 2 * 4 + 1, "a changed parent is judged by its rows"
    assert all(figure.value > 0 for figure in report.figures)
