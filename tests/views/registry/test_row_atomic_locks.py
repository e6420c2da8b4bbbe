"""Views on a row-atomic store that several nodes write to: what needs locks, and backfill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from belvedere.errors import InvalidInput, Retry, Unavailable, Unsupported
from belvedere.session.materialized import replace
from belvedere.session.session import CANCELED
from belvedere.txn.row_atomic.log import advance
from belvedere.views.backfill import row_atomic_backfill
from belvedere.views.registry.row_atomic_locks import LockingUniqueViewIndex, LockingViewParticipant
from tests.views.nodes import (
    GREATEST,
    IMPATIENT,
    PAIRS,
    TOTALS,
    Node,
    agrees,
    before_the_log_row,
    damage,
    nodes,
    racing,
)


@pytest.mark.parametrize("query", [PAIRS, GREATEST], ids=["join", "greatest"])
def test_who_reads_what_another_one_writes_waits_for_it(query: str) -> None:
    with nodes(2, IMPATIENT) as (first, second):
        first.run(
            f"CREATE MATERIALIZED VIEW v AS {query}",
            "INSERT INTO orders VALUES (1, 1, 5)",
        )
        other = {
            PAIRS: "INSERT INTO orders VALUES (2, 1, 7)",
            GREATEST: "DELETE FROM orders WHERE id = 1",
        }[query]
        mine = {
            PAIRS: "INSERT INTO product VALUES (1, 'p')",
            GREATEST: "INSERT INTO orders VALUES (3, 1, 3)",
        }[query]
        refused: list[Retry] = []

        def meanwhile() -> None:
            with pytest.raises(Retry) as caught:
                second.run(other)
            refused.append(caught.value)

        with before_the_log_row(first, meanwhile):
            first.run(mine)
        assert [each.message for each in refused] == ["lock wait timed out"]
        second.run(other)
        assert agrees(second, "v", query)
        assert second.run("VERIFY MATERIALIZED VIEW v")[0][-1] is True


def test_without_these_locks_a_pair_would_be_lost() -> None:
    with nodes(2, IMPATIENT) as (first, second):
        first.run(f"CREATE MATERIALIZED VIEW v AS {PAIRS}", "INSERT INTO orders VALUES (1, 1, 5)")
        with mock.patch.object(LockingViewParticipant, "locks", return_value=()):
            late = before_the_log_row(
                first, lambda: second.run("INSERT INTO orders VALUES (2, 1, 7)") and None
            )
            with late:
                first.run("INSERT INTO product VALUES (1, 'p')")
        assert not agrees(first, "v", PAIRS)


def test_orders_of_one_product_do_not_wait_for_each_other() -> None:
    """Both read the product and write orders: the same sides."""
    with nodes(2, IMPATIENT) as (first, second):
        first.run(f"CREATE MATERIALIZED VIEW v AS {PAIRS}", "INSERT INTO product VALUES (1, 'p')")
        late = before_the_log_row(
            first, lambda: second.run("INSERT INTO orders VALUES (2, 1, 7)") and None
        )
        with late:
            first.run("INSERT INTO orders VALUES (1, 1, 5)")
        assert first.run("SELECT * FROM v ORDER BY 1") == [(1, "p"), (2, "p")]
        assert agrees(second, "v", PAIRS)


def test_sums_are_never_locked() -> None:
    with nodes(2, IMPATIENT) as (first, second):
        first.run(f"CREATE MATERIALIZED VIEW v AS {TOTALS}")
        late = before_the_log_row(
            first, lambda: second.run("INSERT INTO orders VALUES (2, 1, 7)") and None
        )
        with late:
            first.run("INSERT INTO orders VALUES (1, 1, 5)")
        assert first.run("SELECT * FROM v") == second.run("SELECT * FROM v") == [(1, 2, 12)]


# -- backfill --------------------------------------------------------------------------------------


def while_filling(node: Node, action: Callable[[], None]) -> Any:
    """Run `action` when the snapshot is read, and before anything of it is written."""
    fill, done = node.commits.write_backfill, []

    def late(*arguments: Any) -> None:
        if not done:
            done.append(True)
            action()
        fill(*arguments)

    return mock.patch.object(node.commits, "write_backfill", late)


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
@pytest.mark.parametrize("query", [PAIRS, GREATEST, TOTALS], ids=["join", "greatest", "sums"])
def test_what_another_node_writes_during_a_backfill_is_in_the_view(
    maintenance: str, query: str
) -> None:
    with nodes(2) as (first, second):
        first.run(
            "INSERT INTO product VALUES (1, 'p'), (2, 'q')",
            "INSERT INTO orders VALUES (1, 1, 5), (2, 2, 6), (3, 3, 7)",
        )

        def meanwhile() -> None:
            second.run(
                "INSERT INTO orders VALUES (4, 1, 9)",
                "DELETE FROM orders WHERE id = 2",
                "UPDATE product SET name = 'r' WHERE id = 1",
                "INSERT INTO orders VALUES (5, 5, 1)",
                "DELETE FROM orders WHERE id = 5",
            )

        with while_filling(first, meanwhile):
            first.run(f"CREATE MATERIALIZED VIEW v WITH (maintenance = '{maintenance}') AS {query}")
        assert agrees(first, "v", query)
        second.run("DELETE FROM orders WHERE id = 1")
        assert agrees(second, "v", query)
        assert first.run("VERIFY MATERIALIZED VIEW v")[0][-1] is True


def test_an_index_holds_what_another_node_writes_while_it_is_filled() -> None:
    with nodes(2) as (first, second):
        first.run("INSERT INTO product VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        late = while_filling(
            first,
            lambda: (
                second.run(
                    "INSERT INTO product VALUES (4, 'd')",
                    "DELETE FROM product WHERE id = 1",
                    "UPDATE product SET name = 'z' WHERE id = 2",
                )
                and None
            ),
        )
        with late:
            first.run("CREATE INDEX by_name ON product (name)")
        for name, ids in (("a", []), ("b", []), ("z", [(2,)]), ("c", [(3,)]), ("d", [(4,)])):
            assert second.run(f"SELECT id FROM product WHERE name = '{name}'") == ids


def test_a_value_that_comes_twice_while_a_unique_index_is_filled_is_found() -> None:
    with nodes(2) as (first, second):
        first.run("INSERT INTO product VALUES (1, 'a')")
        late = while_filling(
            first, lambda: second.run("INSERT INTO product VALUES (2, 'a')") and None
        )
        with late, pytest.raises(InvalidInput) as caught:
            first.run("CREATE UNIQUE INDEX by_name ON product (name)")
        assert caught.value.sqlstate == "23505"
        assert second.run("SELECT id FROM product WHERE name = 'a' ORDER BY 1") == [(1,), (2,)]
        second.run("INSERT INTO product VALUES (3, 'a')")


# -- deferred --------------------------------------------------------------------------------------


def test_a_stretch_of_the_log_is_applied_once_whichever_node_tries() -> None:
    with nodes(2) as (first, second):
        first.run(f"CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred') AS {TOTALS}")
        first.run("INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6)")
        view = first.db.catalog.views[0]
        late = before_the_log_row(second, lambda: first.db.views.catch_up_view(view) and None)
        with late:
            first.run("SELECT 1")
            second.run("SELECT 1")
            before = second.db.views.read_view_watermark(view)
        late = racing(second, lambda: first.db.views.catch_up_view(view))
        with mock.patch.object(second.commits, "derive", late):
            second.db.views.catch_up_view(view)
        assert second.db.views.read_view_watermark(view) == first.db.position > before
        assert first.run("VERIFY MATERIALIZED VIEW v")[0][-1] is True
        assert second.run("SELECT * FROM v") == [(1, 2, 11)]


@pytest.mark.parametrize("again", [False, True])
def test_a_repair_stays_beside_a_batch_and_a_repair_of_another_node(again: bool) -> None:
    """Both were worked out from the state before it."""
    with nodes(2) as (first, second):
        first.run("INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6)")
        first.run(f"CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred') AS {TOTALS}")
        view = first.db.catalog.views[0]
        damage(first, view)
        first.run("INSERT INTO orders VALUES (3, 1, 7)")
        second.run("SELECT 1")
        assert second.run("VERIFY MATERIALIZED VIEW v")[0][-1] is False
        late = racing(second, lambda: first.db.views.repair_view(view))
        with mock.patch.object(second.commits, "derive", late):
            if again:
                assert second.db.views.repair_view(view) == 0
            else:
                second.db.views.catch_up_view(view)
        first.db.views.catch_up_view(view)
        assert first.run("VERIFY MATERIALIZED VIEW v")[0][-1] is True
        assert second.run("SELECT * FROM v") == [(1, 3, 18)]


def test_maintenance_takes_positions_that_are_no_changes() -> None:
    with nodes(1) as (node,):
        node.run(f"CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred') AS {TOTALS}")
        node.run("INSERT INTO orders VALUES (1, 1, 5)")
        view = node.db.catalog.views[0]
        changed = node.db.position
        assert node.db.views.catch_up_view(view) == changed == node.db.position
        taken = node.commits.run_step(advance.last_position_taken())
        assert taken > changed, "the batch is in the log"
        assert list(node.db.log.read(changed)) == [], "but not as a change"
        node.db.views.deferred.advance_groups([view.group])
        assert node.commits.run_step(advance.last_position_taken()) == taken, (
            "nothing new: nothing written"
        )


def test_trimming_folds_sums_and_forgets_what_is_folded() -> None:
    with nodes(2) as (first, second):
        first.run(f"CREATE MATERIALIZED VIEW v AS {TOTALS}")
        for number in range(6):
            second.run(f"INSERT INTO orders VALUES ({number}, 1, {number})")
        first.run("SELECT 1")
        trimmed = first.db.trim(first.db.position - 1)
        assert trimmed == first.db.position - 1
        assert second.run("SELECT * FROM v") == [(1, 6, 15)]
        second.run("DELETE FROM orders WHERE id = 5")
        assert first.run("SELECT * FROM v") == [(1, 5, 10)]
        assert first.run("VERIFY MATERIALIZED VIEW v")[0][-1] is True


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("ALTER TABLE orders ALTER COLUMN amount TYPE text", "writes every row"),
    ],
)
def test_what_is_not_there_is_refused_by_name(statement: str, message: str) -> None:
    with nodes(1) as (node,):
        node.run("INSERT INTO orders VALUES (1, 1, 5)")
        if "TABLE orders" not in statement:
            node.run(f"CREATE MATERIALIZED VIEW v AS {TOTALS}")
        with pytest.raises(Unsupported, match=message):
            node.run(statement)
        assert node.run("SELECT amount FROM orders") == [(5,)]


def test_what_another_node_writes_during_a_switch_is_in_the_view() -> None:
    """Immediate to deferred and back; a view over it and an index of it stay."""
    with nodes(2) as (first, second):
        first.run(
            "INSERT INTO orders VALUES (1, 1, 5), (2, 2, 7)",
            f"CREATE MATERIALIZED VIEW v AS {TOTALS}",
            "CREATE MATERIALIZED VIEW over AS SELECT product FROM v WHERE n > 1",
            "CREATE INDEX by_n ON v (n)",
        )
        swap, ids = replace._publish_replacement, iter(range(10, 100))

        def late(*arguments: Any) -> None:
            second.run(f"INSERT INTO orders VALUES ({next(ids)}, 1, 1)")
            swap(*arguments)

        for maintenance in ("deferred", "immediate"):
            with mock.patch.object(replace, "_publish_replacement", late):
                first.run(f"ALTER MATERIALIZED VIEW v SET (maintenance = '{maintenance}')")
            second.run(f"INSERT INTO orders VALUES ({next(ids)}, 2, 1)")
            assert agrees(first, "v", TOTALS)
            assert agrees(second, "v", TOTALS)
            assert agrees(first, "over", f"SELECT product FROM ({TOTALS}) q WHERE n > 1")
            for name in ("v", "over", "by_n"):
                assert first.run(f"VERIFY MATERIALIZED VIEW {name}")[0][-1] is True
        names = {view.name for view in first.db.catalog.views if not view.part}
        assert names == {"v", "over", "by_n"}
        assert {view.maintenance.value for view in second.db.catalog.views} == {"immediate"}


def test_a_switch_that_fails_leaves_the_view_as_it_was() -> None:
    with nodes(1) as (node,):
        node.run(f"CREATE MATERIALIZED VIEW v AS {TOTALS}", "CREATE INDEX by_n ON v (n)")
        before = {view.id for view in node.db.catalog.views}
        with mock.patch.object(replace, "_publish_replacement", side_effect=Unavailable("lost")):
            with pytest.raises(Unavailable, match="lost"):
                node.run("ALTER MATERIALIZED VIEW v SET (maintenance = 'deferred')")
        assert {view.id for view in node.db.catalog.views} == before
        node.run("INSERT INTO orders VALUES (1, 1, 5)")
        assert agrees(node, "v", TOTALS)


def test_of_two_nodes_that_make_one_key_of_a_unique_view_index_one_is_refused() -> None:
    names = "SELECT id, name FROM product WHERE id < 100"
    with nodes(2, IMPATIENT) as (first, second):
        first.run(f"CREATE MATERIALIZED VIEW v AS {names}", "CREATE UNIQUE INDEX ON v (name)")
        refused: list[Retry] = []

        def meanwhile() -> None:
            with pytest.raises(Retry) as caught:
                second.run("INSERT INTO product VALUES (2, 'p')")
            refused.append(caught.value)
            second.run("INSERT INTO product VALUES (3, 'q')")  # another key: nobody waits

        with before_the_log_row(first, meanwhile):
            first.run("INSERT INTO product VALUES (1, 'p')")
        assert [each.message for each in refused] == ["lock wait timed out"]
        with pytest.raises(InvalidInput, match="duplicate key"):
            second.run("INSERT INTO product VALUES (2, 'p')")
        assert agrees(second, "v", names)


def test_without_its_claims_a_unique_view_index_would_let_both_in() -> None:
    with nodes(2) as (first, second):
        first.run(
            "CREATE MATERIALIZED VIEW v AS SELECT id, name FROM product",
            "CREATE UNIQUE INDEX ON v (name)",
        )
        with mock.patch.object(LockingUniqueViewIndex, "locks", return_value=()):
            late = before_the_log_row(
                first, lambda: second.run("INSERT INTO product VALUES (2, 'p')") and None
            )
            with late:
                first.run("INSERT INTO product VALUES (1, 'p')")
        assert len(first.run("SELECT * FROM v WHERE name = 'p'")) == 2


def test_a_key_that_comes_twice_while_a_unique_view_index_is_filled_is_found() -> None:
    with nodes(2) as (first, second):
        first.run(
            "INSERT INTO product VALUES (1, 'p')",
            "CREATE MATERIALIZED VIEW v AS SELECT id, name FROM product",
        )
        before = {view.name for view in first.db.catalog.views}
        fill = row_atomic_backfill.backfill_view_in_one_step

        def late(*arguments: Any) -> None:
            second.run("INSERT INTO product VALUES (2, 'p')")
            fill(*arguments)

        with mock.patch.object(row_atomic_backfill, "backfill_view_in_one_step", late):
            with pytest.raises(InvalidInput, match="duplicate key"):
                first.run("CREATE UNIQUE INDEX ON v (name)")
        assert {view.name for view in first.db.catalog.views} == before
        assert agrees(second, "v", "SELECT id, name FROM product")


def test_a_fill_tells_how_far_it_is_and_leaves_nothing_when_it_is_canceled() -> None:
    with nodes(1) as (node,):
        node.run("INSERT INTO orders SELECT x, x % 5, x FROM generate_series(1, 50) AS g(x)")
        told: list[tuple[str, int]] = []
        session = node.session
        session.on_progress = lambda what, rows, _: told.append((what, rows))
        node.run(f"CREATE MATERIALIZED VIEW v AS {TOTALS}")
        assert told[-1] == ("filling v", 50)
        before = {view.name for view in node.db.catalog.views}
        session.on_progress = lambda *_: session.interrupt.stop(CANCELED)
        with pytest.raises(Unavailable, match="cancel"):
            node.run(f"CREATE MATERIALIZED VIEW w AS {TOTALS}")
        session.on_progress = None
        assert {view.name for view in node.db.catalog.views} == before
        node.run("INSERT INTO orders VALUES (100, 1, 1)")
        assert node.run("VERIFY MATERIALIZED VIEW v")[0][-1] is True
