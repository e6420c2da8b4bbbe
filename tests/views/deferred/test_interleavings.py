"""Transactions that meet in one view: named interleavings, and how the log is cut."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from unittest import mock

import pytest

from belvedere.codec import keyspace
from belvedere.errors import Retry
from belvedere.session.session import Session
from belvedere.txn.transaction.locks import RowLockTable
from belvedere.views.service import ViewService
from tests.views.sql import Store, opened, rows_of

TABLES = (
    "CREATE TABLE parents (id int PRIMARY KEY, name text)",
    "CREATE TABLE children (id int PRIMARY KEY, parent int, n int)",
    "INSERT INTO parents VALUES (1, 'old'), (2, 'two')",
)


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        made.run(*TABLES)
        yield made


def begun(store: Store, *statements: str) -> Session:
    session = store.session()
    for statement in ("BEGIN", *statements):
        session.execute(statement)
    return session


def test_a_parent_renamed_during_an_insert_under_it(store: Store) -> None:
    """Each delta is right by itself; only deltas made in the commit section add up."""
    store.run(
        "CREATE MATERIALIZED VIEW v AS"
        " SELECT p.name, c.id FROM parents p JOIN children c ON c.parent = p.id"
    )
    child = begun(store, "INSERT INTO children VALUES (1, 1, 0)")
    parent = begun(store, "UPDATE parents SET name = 'new' WHERE id = 1")
    parent.execute("COMMIT")
    child.execute("COMMIT")
    assert store.run("SELECT * FROM v") == [("new", 1)]


def test_two_transactions_cross_a_having_bound_together(store: Store) -> None:
    """Neither sees two rows by itself; both together are two."""
    store.run(
        "CREATE MATERIALIZED VIEW v AS"
        " SELECT parent, count(*) AS c FROM children GROUP BY parent HAVING count(*) > 1"
    )
    one = begun(store, "INSERT INTO children VALUES (1, 1, 0)")
    two = begun(store, "INSERT INTO children VALUES (2, 1, 0)")
    assert rows_of(one, "SELECT * FROM v") == rows_of(two, "SELECT * FROM v") == []
    one.execute("COMMIT")
    two.execute("COMMIT")
    assert store.run("SELECT * FROM v") == [(1, 2)]


def test_a_minimum_is_deleted_beside_an_inserted_one(store: Store) -> None:
    store.run("INSERT INTO children VALUES (1, 1, 5), (2, 1, 9)")
    store.run(
        "CREATE MATERIALIZED VIEW v AS SELECT parent, min(n) AS m FROM children GROUP BY parent"
    )
    gone = begun(store, "DELETE FROM children WHERE id = 1")
    come = begun(store, "INSERT INTO children VALUES (3, 1, 7)")
    come.execute("COMMIT")
    gone.execute("COMMIT")
    assert store.run("SELECT * FROM v") == [(1, 7)]


def test_the_last_match_goes_while_another_comes(store: Store) -> None:
    store.run("INSERT INTO children VALUES (1, 1, 0)")
    store.run(
        "CREATE MATERIALIZED VIEW v AS"
        " SELECT p.id, c.id AS child FROM parents p LEFT JOIN children c ON c.parent = p.id"
    )
    gone = begun(store, "DELETE FROM children WHERE id = 1")
    come = begun(store, "INSERT INTO children VALUES (2, 1, 0)")
    gone.execute("COMMIT")
    come.execute("COMMIT")
    assert Counter(store.run("SELECT * FROM v")) == Counter([(1, 2), (2, None)])


def test_a_transaction_that_loses_leaves_the_view_alone(store: Store) -> None:
    store.run("CREATE MATERIALIZED VIEW v AS SELECT name, count(*) AS c FROM parents GROUP BY name")
    loser = begun(store, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    rows_of(loser, "SELECT * FROM parents")
    store.run("UPDATE parents SET name = 'first' WHERE id = 1")
    with pytest.raises(Retry):
        loser.execute("UPDATE parents SET name = 'second' WHERE id = 1; COMMIT")
    loser.rollback()
    assert Counter(store.run("SELECT * FROM v")) == Counter([("first", 1), ("two", 1)])


def test_writers_of_one_hot_group_do_not_wait_for_each_other(store: Store) -> None:
    """All hold their transaction open over the same group before any commits."""
    store.run(
        "CREATE MATERIALIZED VIEW v AS"
        " SELECT parent, count(*) AS c, sum(n) AS s FROM children GROUP BY parent"
    )
    threads, gate = 8, threading.Barrier(8)

    def write(number: int) -> None:
        session = begun(store, f"INSERT INTO children VALUES ({number}, 1, {number})")
        gate.wait(timeout=60)
        session.execute("COMMIT")

    waits: list[object] = []
    wait = RowLockTable._wait_for_grant

    def counted(self: RowLockTable, *arguments: object) -> object:
        waits.append(arguments)
        return wait(self, *arguments)  # type: ignore[arg-type]

    with mock.patch.object(RowLockTable, "_wait_for_grant", counted):
        crowd = [threading.Thread(target=write, args=(number,)) for number in range(threads)]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()
    assert store.run("SELECT * FROM v") == [(1, 8, 28)]
    assert not waits


DEFINITIONS = (
    "SELECT parent, count(*) AS c, sum(n) AS s FROM children GROUP BY parent",
    "SELECT parent, min(n) AS m FROM children GROUP BY parent",
    "SELECT p.name, c.n FROM parents p LEFT JOIN children c ON c.parent = p.id",
    "SELECT a.id AS x, b.id AS y FROM children a JOIN children b ON a.parent = b.parent",
    "SELECT id FROM parents EXCEPT SELECT parent FROM children",
)


@pytest.mark.slow
def test_the_state_is_the_same_however_the_log_is_cut(rng: random.Random) -> None:
    """By every transaction, by seven, all at once, and immediate: the same bytes."""
    with (
        mock.patch.object(ViewService, "start_or_wake_worker", return_value=None),
        opened() as store,
    ):
        store.run(*TABLES)
        for number, text in enumerate(DEFINITIONS):
            store.run(f"CREATE MATERIALIZED VIEW now{number} AS {text}")
            for size in (1, 7, 1000):
                store.run(
                    f"CREATE MATERIALIZED VIEW by{size}_{number}"
                    f" WITH (maintenance = 'deferred') AS {text}"
                )
        for step in range(1, 60):
            store.run(change(rng))
            for size in (1, 7):
                if step % size == 0:
                    catch_up(store, size)
        for size in (1, 7, 1000):
            catch_up(store, size)
        for number in range(len(DEFINITIONS)):
            expected = state(store, f"now{number}")
            for size in (1, 7, 1000):
                assert state(store, f"by{size}_{number}") == expected, (size, number)


def change(rng: random.Random) -> str:
    parent, n = rng.randrange(3), rng.randrange(4)
    return rng.choice(
        (
            f"INSERT INTO children SELECT coalesce(max(id), 0) + 1, {parent}, {n} FROM children",
            f"INSERT INTO children SELECT coalesce(max(id), 0) + 1, {parent}, {n} FROM children",
            f"UPDATE children SET parent = {parent} WHERE n = {n}",
            f"DELETE FROM children WHERE id % 5 = {n}",
            f"UPDATE parents SET name = 'n{n}' WHERE id = {parent}",
        )
    )


def catch_up(store: Store, size: int) -> None:
    for number in range(len(DEFINITIONS)):
        store.db.views.catch_up_view(store.view(f"by{size}_{number}"))


def state(store: Store, name: str) -> list[tuple[bytes, bytes]]:
    """Keys without the view's own prefix, and values."""
    low, high = keyspace.relation_range(store.view(name).id)
    with store.db.begin() as reader:
        return [(k[len(low) :], v) for batch in reader.scan(low, high) for k, v in batch]
