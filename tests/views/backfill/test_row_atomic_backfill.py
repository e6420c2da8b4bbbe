"""Builds on a row-atomic store whose node died: another one finishes them, or takes them away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

from belvedere import failpoints
from belvedere.catalog.model import ObjectState, View
from belvedere.errors import Unavailable
from belvedere.txn.row_atomic.engine import RowAtomicEngine
from belvedere.views.backfill import backfill_views, row_atomic_backfill
from belvedere.views.backfill.backfill_plan import ViewBackfill
from belvedere.views.state.build_state import list_unfinished_builds
from tests.views.nodes import GREATEST, PAIRS, SETTINGS, TOTALS, Node, agrees, nodes

WITHOUT = (
    "SELECT p.id, o.amount FROM product p LEFT JOIN orders o ON o.product = p.id AND o.amount > 2"
)
QUERIES = {"groups": TOTALS, "join": PAIRS, "greatest": GREATEST, "outer join": WITHOUT}


class Died(BaseException):
    """A node does nothing any more."""


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is added up is written after every two rows."""
    monkeypatch.setattr(backfill_views, "ROWS_MAX", 2)
    monkeypatch.setattr(backfill_views, "BATCH_ROWS", 2)


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows of tables, and keys of partitions, fills have added up so far."""
    rows, add = [0], ViewBackfill.sum_walked_rows

    def counted(fill: ViewBackfill, number: int, some: Any) -> None:
        rows[0] += len(some)
        add(fill, number, some)

    monkeypatch.setattr(ViewBackfill, "sum_walked_rows", counted)
    return rows


@contextmanager
def shop(count: int) -> Iterator[tuple[list[Node], Clock]]:
    clock = Clock()
    with nodes(count, clock=clock) as made:
        made[0].run(
            "INSERT INTO product SELECT i, 'p' || i FROM generate_series(1, 9) AS s(i)",
            "INSERT INTO orders SELECT i, i % 4, i % 5 FROM generate_series(1, 20) AS s(i)",
        )
        yield made, clock


def dies(node: Node, statement: str, step: int) -> None:
    """Run a statement on a node that dies when a fill has written some steps."""

    def die() -> None:
        raise Died

    failpoints.arm("backfill.chunk", "call", at=step, call=die)
    try:
        with (
            mock.patch.object(
                node.db.views.backfills, "_drop_unfinished_builds", return_value=None
            ),
            pytest.raises(Died),
        ):
            node.run(statement)
    finally:
        failpoints.disarm_all()


def write(node: Node) -> None:
    node.run(
        "DELETE FROM orders WHERE id IN (0, 1, 8, 20, 50)",
        "UPDATE orders SET product = 3, amount = 9 WHERE id IN (2, 11)",
        "INSERT INTO orders VALUES (50, 1, 50), (0, 7, 1)",
        "UPDATE product SET name = 'new' WHERE id < 3",
    )


def adopt(node: Node, clock: Clock) -> int:
    """A node is silent when nothing was heard of it for the lease."""
    assert node.db.views.backfills.adopt_orphaned_builds() == 0
    clock.now += SETTINGS.lease_seconds
    return node.db.views.backfills.adopt_orphaned_builds()


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("step", [1, 4])
def test_another_node_goes_on_with_a_fill(
    query: str, maintenance: str, step: int, walked: list[int]
) -> None:
    """At the snapshot it was begun at, whatever was written since; and nothing is walked twice."""
    options = f"maintenance = '{maintenance}', backfill = 'resumable'"
    with shop(3) as ((first, second, third), clock):
        first.run(f"CREATE MATERIALIZED VIEW whole WITH ({options}) AS {QUERIES[query]}")
        total, walked[0] = walked[0], 0
        dies(first, f"CREATE MATERIALIZED VIEW v WITH ({options}) AS {QUERIES[query]}", step)
        write(third)
        assert adopt(second, clock) > 0
        assert walked[0] == total
        write(third)
        third.run("REFRESH MATERIALIZED VIEW v")
        assert agrees(third, "v", QUERIES[query])
        assert {row[-1] for row in [third.run("VERIFY MATERIALIZED VIEW v")[0]]} == {True}
        assert not list_unfinished_builds(third.db.catalog)


@pytest.mark.parametrize(
    "statement",
    [
        f"CREATE MATERIALIZED VIEW v AS {GREATEST}",
        f"CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred') AS {TOTALS}",
        "CREATE INDEX v ON orders (amount)",
    ],
)
def test_another_node_takes_away_what_was_not_made_to_go_on(statement: str) -> None:
    with shop(2) as ((first, second), clock):
        before = {o.id for o in second.db.catalog.objects.values()}

        def die(*_: Any) -> None:
            raise Died

        with (
            mock.patch.object(
                first.db.views.backfills, "_drop_unfinished_builds", return_value=None
            ),
            mock.patch.object(first.commits, "write_backfill", die),
            pytest.raises(Died),
        ):
            first.run(statement)
        assert adopt(second, clock) > 0
        catalog = second.db.catalog
        assert [o.id for o in catalog.objects.values() if o.id not in before and _lives(o)] == []
        write(second)
        second.run(statement)
        assert not list_unfinished_builds(second.db.catalog)


def _lives(item: Any) -> bool:
    return (
        not getattr(item, "dropped_at", 0)
        and getattr(item, "state", None) is not ObjectState.DROPPED
    )


@pytest.mark.parametrize("finished", [False, True])
def test_a_node_that_was_only_slow_is_refused(finished: bool) -> None:
    """Whatever it still tries, what the other one made of it stays."""
    with shop(2) as ((first, second), clock):

        def take_over() -> None:
            assert adopt(second, clock) == 1
            write(second)

        create = f"CREATE MATERIALIZED VIEW v AS {TOTALS}"
        fill = first.commits.write_backfill
        late = mock.patch.object(
            first.commits, "write_backfill", lambda *a: (fill(*a), take_over())
        )
        if finished:
            create = create.replace(" AS ", " WITH (backfill = 'resumable') AS ", 1)
            late = mock.patch.object(first.commits, "write_backfill", fill)
            failpoints.arm("backfill.chunk", "call", at=3, call=take_over)
        try:
            with late, pytest.raises(Unavailable) as refused:
                first.run(create)
        finally:
            failpoints.disarm_all()
        assert refused.value.sqlstate == "55006"
        second.run("SELECT 1")
        found = second.db.catalog.find_relation("v")
        if finished:
            assert agrees(second, "v", TOTALS)
            assert second.run("VERIFY MATERIALIZED VIEW v")[0][-1] is True
        else:
            assert found is None


def test_a_node_adopts_builds_by_itself() -> None:
    with shop(2) as ((first, second), clock):
        options = "WITH (backfill = 'resumable')"
        dies(first, f"CREATE MATERIALIZED VIEW v {options} AS {TOTALS}", 2)
        for _ in range(2):
            engine = second.db.engine
            assert isinstance(engine, RowAtomicEngine)
            engine.chores.start_run()
            thread = engine.chores.thread
            assert thread is not None
            thread.join(60)
            clock.now += SETTINGS.lease_seconds
        assert agrees(second, "v", TOTALS)
        assert not second.commits.node.counts["adoptions failed"]


def test_what_another_node_builds_is_left_alone_while_it_lives() -> None:
    with shop(2) as ((first, second), clock):

        def look() -> None:
            assert second.db.views.backfills.adopt_orphaned_builds() == 0
            first.commits.send_heartbeat()
            clock.now += SETTINGS.lease_seconds * 0.9

        failpoints.arm("backfill.chunk", "call", call=look)
        try:
            first.run(f"CREATE MATERIALIZED VIEW v WITH (backfill = 'resumable') AS {TOTALS}")
        finally:
            failpoints.disarm_all()
        assert agrees(second, "v", TOTALS)


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_what_is_written_before_and_during_a_fill_in_steps_is_in_the_view(maintenance: str) -> None:
    """Also what writers add to a view that is in the catalog, and not begun."""
    with shop(2) as ((first, second), _):
        fill = row_atomic_backfill.try_backfill_view_in_steps

        def late(*arguments: Any) -> bool:
            write(second)
            return fill(*arguments)

        numbers = iter(range(100, 200))
        failpoints.arm(
            "backfill.chunk",
            "call",
            call=lambda: second.run(f"INSERT INTO orders VALUES ({next(numbers)}, 2, 1)") and None,
        )
        options = f"maintenance = '{maintenance}', backfill = 'resumable'"
        try:
            with mock.patch.object(row_atomic_backfill, "try_backfill_view_in_steps", late):
                for name, query in (("v", TOTALS), ("w", GREATEST)):
                    first.run(f"CREATE MATERIALIZED VIEW {name} WITH ({options}) AS {query}")
        finally:
            failpoints.disarm_all()
        assert agrees(second, "v", TOTALS)
        assert agrees(second, "w", GREATEST)
        assert first.run("VERIFY MATERIALIZED VIEW v")[0][-1] is True


def test_a_node_drops_no_build_that_another_has_taken_over() -> None:
    with shop(2) as ((first, second), clock):
        dies(first, f"CREATE MATERIALIZED VIEW v WITH (backfill = 'resumable') AS {TOTALS}", 1)
        ids = [first.db.catalog.require_relation(View, "v").id]
        former, other = first.db.views.backfills, second.db.views.backfills
        other._drop_unfinished_builds(ids)
        assert list(other.store.take_over_orphaned_builds()) == []
        clock.now += SETTINGS.lease_seconds
        assert [item.id for item in other.store.take_over_orphaned_builds()] == ids
        former._drop_unfinished_builds(ids)
        other.backfill_and_mark_ready(ids)
        assert agrees(second, "v", TOTALS)
