"""Bulk statements: every system ends with the same rows, and every task is measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from belvedere.benchmarks.bulk import suite
from belvedere.benchmarks.bulk.tasks import TASKS, VARIANTS, Place, Task, Variant

ROWS = 600
ON_TARGET = [task for task in TASKS if task.name != "CREATE INDEX"]


@pytest.fixture(scope="module")
def places() -> Iterator[list[Place]]:
    with suite.open_places(ROWS) as opened:
        yield opened


def run_task(place: Place, task: Task, variant: Variant) -> list[Any]:
    place.create_target(variant)
    task.prepare(place, variant)
    task.work(place)
    return place.peer.execute("SELECT * FROM target ORDER BY id").fetchall()  # type: ignore[no-any-return]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
@pytest.mark.parametrize("task", ON_TARGET, ids=lambda task: task.name)
def test_every_system_ends_with_the_same_rows(
    places: list[Place], task: Task, variant: Variant
) -> None:
    ours, *others = [run_task(place, task, variant) for place in places]
    assert ours
    assert all(found == ours for found in others)
    if variant.view:
        view = places[0].peer.execute("SELECT * FROM target_regions ORDER BY region").fetchall()
        query = "SELECT region, count(*), sum(amount) FROM target GROUP BY region ORDER BY region"
        assert view == places[1].peer.execute(query).fetchall()


def test_all_tasks_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "ROUNDS", 1)
    report = suite.run(200, seed=1)
    ours = [figure for figure in report.figures if ", to " not in figure.name]
    assert len(ours) == sum(len(task.variants) for task in TASKS)
    assert sum(bool(figure.goal) for figure in ours) >= 4 * len(VARIANTS)
