"""The changes of an immediate view on a row-atomic store, whichever node makes them."""

from __future__ import annotations

import pytest

from belvedere.errors import InvalidInput, Unavailable
from belvedere.session.materialized.change_stream import Subscription
from belvedere.session.materialized.subscription import open_view_subscription
from tests.views.nodes import TOTALS, Node, damage, nodes


def changes_of(node: Node, position: int | None = None) -> Subscription:
    return open_view_subscription(node.session, "v", position, timeout_s=0)


def test_what_every_node_adds_to_a_view_is_in_its_changes() -> None:
    with nodes(3) as (first, second, third):
        first.run("INSERT INTO orders VALUES (1, 1, 5)")
        first.run(f"CREATE MATERIALIZED VIEW v WITH (keep_changes = '100') AS {TOTALS}")
        changes = changes_of(first)
        start = changes.position
        second.run("INSERT INTO orders VALUES (2, 1, 6)")
        one = second.db.position
        third.run("UPDATE orders SET product = 2 WHERE id = 1", "SELECT 1")
        two = third.db.position
        first.run("SELECT 1")
        expected = [
            (one, (1, 1, 5), -1),
            (one, (1, 2, 11), 1),
            (two, (1, 2, 11), -1),
            (two, (1, 1, 6), 1),
            (two, (2, 1, 5), 1),
        ]
        assert sorted(changes.poll()) == sorted(expected)
        assert sorted(changes_of(third, start).poll()) == sorted(expected)
        assert sorted(changes_of(second, one).poll()) == sorted(expected[2:])


def test_a_repair_by_another_node_is_in_the_changes() -> None:
    with nodes(2) as (first, second):
        first.run("INSERT INTO orders VALUES (1, 1, 5)")
        first.run(f"CREATE MATERIALIZED VIEW v WITH (keep_changes = '100') AS {TOTALS}")
        changes = changes_of(first)
        damage(second, second.db.catalog.views[0])
        assert [(row, weight) for _, row, weight in changes.poll()] == [
            ((1, 1, 5), -1),
            ((1, 2, 6), 1),
        ]
        assert second.db.views.repair_view(second.db.catalog.views[0]) == 1
        first.run("SELECT 1")
        assert [(row, weight) for _, row, weight in changes.poll()] == [
            ((1, 2, 6), -1),
            ((1, 1, 5), 1),
        ]
        assert changes.poll() == []


def test_the_log_stays_for_as_long_as_changes_are_kept() -> None:
    with nodes(2) as (first, second):
        first.run(f"CREATE MATERIALIZED VIEW v WITH (keep_changes = '4') AS {TOTALS}")
        changes = changes_of(first)
        for number in range(4):
            second.run(f"INSERT INTO orders VALUES ({number}, {number}, 1)")
        first.run("SELECT 1")
        first.db.trim(first.db.position)
        assert len(changes.poll()) == 4
        second.run("INSERT INTO orders VALUES (9, 9, 9)")
        first.run("SELECT 1")
        first.db.trim(first.db.position)
        with pytest.raises(InvalidInput, match="no longer kept"):
            changes_of(first, changes.position - 4)
        assert len(changes.poll()) == 1


def test_a_view_keeps_its_changes_from_the_first_subscription_on() -> None:
    with nodes(2) as (first, second):
        first.run(f"CREATE MATERIALIZED VIEW v AS {TOTALS}")
        second.run("INSERT INTO orders VALUES (1, 1, 5)")
        changes = changes_of(first)
        second.run("INSERT INTO orders VALUES (2, 2, 6)")
        first.run("SELECT 1")
        assert [(row, weight) for _, row, weight in changes.poll()] == [((2, 1, 6), 1)]
        second.run("ALTER MATERIALIZED VIEW v SET (keep_changes = 'off')")
        first.run("SELECT 1")
        with pytest.raises(Unavailable):
            changes.poll()


def test_a_view_that_is_switched_keeps_its_changes_anew() -> None:
    """It is another view then, so that a subscriber reads it again."""
    with nodes(2) as (first, second):
        first.run(f"CREATE MATERIALIZED VIEW v WITH (keep_changes = '100') AS {TOTALS}")
        for maintenance in ("deferred", "immediate"):
            before = changes_of(first)
            first.run(f"ALTER MATERIALIZED VIEW v SET (maintenance = '{maintenance}')")
            with pytest.raises(Unavailable, match="no longer kept"):
                before.poll()
            changes = changes_of(first)
            with pytest.raises(InvalidInput, match="no longer kept"):
                changes_of(first, before.position - 1)
            second.run(f"INSERT INTO orders VALUES ({before.position}, {before.position}, 1)")
            first.run("REFRESH MATERIALIZED VIEW v")
            assert [(row, weight) for _, row, weight in changes.poll()] == [
                ((before.position, 1, 1), 1)
            ]
