"""Several nodes on one store, in threads, over a network that loses, delays and repeats."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from random import Random

import pytest

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.definitions import IndexDefinition, KeyPartDefinition
from belvedere.config import Config
from belvedere.database import Database
from belvedere.errors import Error, InvalidInput, Retry, Unavailable
from belvedere.kv.cell import CellScan, Step
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.kv.doubles.cells_faults import FaultyCells
from belvedere.txn.contracts import LockRequest, Participant, Reader, RowChange, Writer
from belvedere.txn.row_atomic import locks, node_lists
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.engine import CellStoreSetup, HeartbeatThread
from belvedere.txn.row_atomic.housekeeping import sweep
from belvedere.txn.row_atomic.locks import AttemptLocks, RowLock
from belvedere.txn.row_atomic.log import advance
from belvedere.txn.row_atomic.node import Node, NodeSettings, join_store, send_heartbeat
from belvedere.txn.transaction.transaction import Transaction
from tests.txn.row_atomic.nodes import cells, commits, open_as, open_node
from tests.txn.row_atomic.steps import Bench, root
from tests.txn.shop import create_shop, delete, entries, get, insert, scan, update

SETTINGS = NodeSettings(lease_seconds=3.0, lock_poll_seconds=0.002, close_seconds_min=0.01)
ACCOUNTS, BALANCE = 5, 100


def test_a_node_sees_what_another_one_committed() -> None:
    store = MemoryCells()
    first = open_node(store)
    create_shop(first)
    second = open_node(store)
    committed = first.run_and_get_commit(lambda txn: insert(txn, "product", (1, "a")))[1]
    with second.begin(at_least=committed.position) as reader:
        assert get(reader, "product", 1) == (1, "a")
        assert reader.position == committed.position
    assert second.outcome(bytes(16)) is None
    assert second.position == committed.position


def test_two_nodes_that_write_one_row_lose_no_update() -> None:
    store = MemoryCells()
    first, second = open_node(store), open_node(store)
    create_shop(first)
    first.run_transaction(lambda txn: insert(txn, "product", (1, "0")))
    with second.begin(at_least=first.position) as late:
        assert get(late, "product", 1) == (1, "0")
        first.run_transaction(lambda txn: update(txn, "product", (1, "1")))
        update(late, "product", (1, "lost"))
        with pytest.raises(Retry):
            late.commit()
    assert get(second.begin(at_least=first.position), "product", 1) == (1, "1")


def test_nodes_insert_one_key_under_different_roots_and_one_wins() -> None:
    """An order's root is its customer, so only the claim of the key keeps two of them apart."""
    store = MemoryCells()
    first, second = open_node(store), open_node(store)
    create_shop(first)
    first.run_transaction(lambda txn: insert(txn, "customer", (1, "a", "x"), (2, "b", "y")))
    one, two = first.begin(), second.begin(at_least=first.position)
    insert(one, "orders", (7, 1, "one"))
    insert(two, "orders", (7, 2, "two"))
    one.commit()
    with pytest.raises(Retry):
        two.commit()
    with second.begin(at_least=first.position) as reader:
        assert scan(reader, "orders") == [(7, 1, "one")]


def test_a_parent_deleted_by_another_node_is_missed_by_its_child() -> None:
    store = MemoryCells()
    first, second = open_node(store), open_node(store)
    create_shop(first)
    setup = [("customer", (1, "a", "x")), ("orders", (1, 1, None)), ("product", (5, "p"))]
    for name, row in setup:
        first.run_transaction(lambda txn, name=name, row=row: insert(txn, name, row))
    child = second.begin(at_least=first.position)
    insert(child, "line", (1, 1, 5))
    first.run_transaction(lambda txn: delete(txn, "product", 5))
    with pytest.raises(InvalidInput) as caught:
        child.commit()
    assert caught.value.sqlstate == "23503"
    other = first.begin()
    delete(other, "orders", 1)
    second.run_transaction(lambda txn: insert(txn, "product", (5, "again")))
    second.run_transaction(lambda txn: insert(txn, "line", (1, 1, 5)))
    with pytest.raises(Error):
        other.commit()


class Watching(Database):
    """Notes the kinds of the locks held while a commit is checked, as a participant of its own."""

    held: tuple[str, ...] = ()

    def participants_for(
        self, catalog: Catalog, relations: frozenset[int]
    ) -> tuple[Participant, ...]:
        return (*super().participants_for(catalog, relations), Watcher(self))


class Watcher:
    checks = True

    def __init__(self, database: Watching) -> None:
        self._database = database

    def locks(self, changes: Sequence[RowChange], reader: Reader) -> Sequence[LockRequest]:
        return ()

    def check(self, changes: Sequence[RowChange], reader: Reader) -> None:
        rows = [row for row, _ in commits(self._database).run_step(sweep.held_locks())]
        self._database.held = tuple(layout.split_lock_row(row)[0] for row in rows)

    def writes(self, changes: Sequence[RowChange], reader: Reader, writer: Writer) -> None:
        """Nothing is derived."""


@pytest.mark.parametrize(
    ("name", "row", "expected"),
    [
        ("product", (9, "p"), ("root",)),
        ("customer", (9, "e", "c"), ("root", "claim")),
        ("orders", (9, 1, None), ("root", "claim")),
        ("line", (9, 1, 5), ("root", "claim", "parent")),
        ("customer", (9, None, "c"), ("root",)),
    ],
)
def test_a_commit_takes_the_locks_it_needs_and_no_more(
    name: str, row: tuple[object, ...], expected: tuple[str, ...]
) -> None:
    """Root of the row, claims of keys the root does not imply and of unique values that are there,
    guards of parents that are not on the way to the root."""
    node = open_as(Watching)
    setup = [("customer", (1, "a", "x")), ("orders", (1, 1, None)), ("product", (5, "p"))]
    create_shop(node)
    for table_name, each in setup:
        node.run_transaction(lambda txn, t=table_name, each=each: insert(txn, t, each))
    node.run_transaction(lambda txn: insert(txn, name, row))
    assert node.held == expected


def transfer(txn: Transaction, random: Random) -> None:
    left, right = random.sample(range(ACCOUNTS), 2)
    one, two = get(txn, "product", left), get(txn, "product", right)
    assert one is not None
    assert two is not None
    update(txn, "product", (left, str(int(one[1]) - 1)))
    update(txn, "product", (right, str(int(two[1]) + 1)))


@pytest.mark.parametrize("seed", [1, 2])
def test_threads_of_three_nodes_keep_the_total_and_lose_no_order(seed: int) -> None:
    store = FaultyCells(MemoryCells(), seed, share=0.0)
    setup = open_node(store, SETTINGS)
    create_shop(setup)
    setup.run_transaction(
        lambda txn: insert(txn, "product", *[(n, str(BALANCE)) for n in range(ACCOUNTS)])
    )
    setup.run_transaction(lambda txn: insert(txn, "customer", *[(n, None, "c") for n in range(3)]))
    store.share = 0.04
    done: list[int] = []
    unknown: list[int] = []
    failures: list[BaseException] = []

    def client(node: Database, number: int) -> None:
        random = Random(seed * 100 + number)
        for n in range(8):
            order = number * 100 + n
            try:
                commits(node).send_heartbeat()
                node.run_transaction(lambda txn: transfer(txn, random))
                node.run_transaction(
                    lambda txn, order=order: insert(txn, "orders", (order, order % 3, None))
                )
                done.append(order)
            except Unavailable:
                unknown.append(order)
            except BaseException as error:
                failures.append(error)
                raise

    nodes = [join_until_answered(store) for _ in range(3)]
    threads = [
        threading.Thread(target=client, args=(nodes[number % 3], number)) for number in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.share = 0.0
    assert failures == []
    judge = open_node(store, SETTINGS)
    with judge.begin(at_least=judge.position) as reader:
        assert sum(int(value) for _, value in scan(reader, "product")) == ACCOUNTS * BALANCE
        orders = {row[0] for row in scan(reader, "orders")}
        indexed = {entry[1] for entry in entries(reader, "orders_customer_children")}
    assert set(done) <= orders <= set(done) | set(unknown)
    assert indexed == orders
    assert sum(store.counts.values()) > 0


@pytest.mark.parametrize("share", [0.0, 0.02])
def test_an_index_made_while_other_nodes_write_holds_every_row(share: float) -> None:
    store = FaultyCells(MemoryCells(), 5, share=0.0)
    first = open_node(store, SETTINGS)
    create_shop(first)
    first.run_transaction(lambda txn: insert(txn, "product", *[(n, f"old {n}") for n in range(5)]))
    nodes = [open_node(store, SETTINGS) for _ in range(2)]
    store.share = share
    started = threading.Barrier(3)
    failures: list[BaseException] = []

    def write(node: Database, number: int) -> None:
        started.wait()
        for n in range(12):
            row = (100 * number + n, f"new {n}")
            try:
                commits(node).send_heartbeat()
                node.run_transaction(lambda txn, row=row: insert(txn, "product", row))
            except Unavailable:
                continue
            except BaseException as error:
                failures.append(error)
                raise

    threads = [threading.Thread(target=write, args=(node, n)) for n, node in enumerate(nodes, 1)]
    for thread in threads:
        thread.start()
    started.wait()
    wanted = IndexDefinition("product", (KeyPartDefinition("name"),), name="by_name")
    first.change_schema(lambda edit: edit.create_index(wanted))
    for thread in threads:
        thread.join()
    store.share = 0.0
    assert failures == []
    with nodes[0].begin(at_least=nodes[0].position) as reader:
        rows = sorted((name, id_) for id_, name in scan(reader, "product"))
        assert entries(reader, "by_name") == rows
        assert len(rows) > 5


def join_until_answered(store: FaultyCells) -> Database:
    while True:
        try:
            return open_node(store, SETTINGS)
        except Unavailable:
            continue


def outcome_rows(store: MemoryCells) -> int:
    """How many outcomes the store holds."""
    return len(store.scan(CellScan(layout.OUTCOMES, layout.HEARTBEATS)))


def test_outcomes_are_forgotten_one_trim_after_their_records() -> None:
    store = MemoryCells()
    node = open_node(store, NodeSettings(grace_seconds=0.0))
    create_shop(node)
    known: list[bytes] = []
    for number in range(200):  # more than are read in one trip
        with node.begin() as txn:
            insert(txn, "product", (number, "a"))
            known.append(txn.id)
            txn.commit()
    made, first = outcome_rows(store), node.trim(node.position - 5)
    assert outcome_rows(store) == made, "whoever is in doubt can still ask"
    assert node.outcome(known[0]) is not None
    node.run_and_get_commit(lambda txn: insert(txn, "product", (1000, "a")))
    second = node.trim(node.position - 1)
    assert second > first
    assert node.outcome(known[0]) is None
    assert node.outcome(known[-1]) is not None
    assert outcome_rows(store) == node.position - first


def test_a_node_keeps_what_its_heart_failed_with_until_it_beats_again() -> None:
    faulty = Unavailable("the store does not answer", sqlstate="08006")
    commits_ = commits(open_node())
    beats: list[Error | None] = [faulty, None]
    seen: list[Error | None] = []
    assigned, over = threading.Event(), threading.Event()

    def beat() -> None:
        assigned.wait()  # the thread begins before its name is bound
        seen.append(heart.failure)
        if len(seen) > 2:
            over.set()
        error = beats.pop(0) if beats else None
        if error is not None:
            raise error

    commits_.send_heartbeat = beat  # type: ignore[method-assign]
    heart = HeartbeatThread(commits_, NodeSettings(lease_seconds=0.01), lambda: None)
    assigned.set()
    try:
        assert over.wait(10)
    finally:
        heart.stop()
    assert seen[:3] == [None, faulty, None]


def test_a_parent_is_not_removed_while_a_child_is_committed_and_not_settled() -> None:
    """The child is in the log, its cells are not written yet: only its guard says so."""
    store = MemoryCells()
    node = Database.on_cells(CellStoreSetup(store, SETTINGS))
    create_shop(node)
    for table, row in (("customer", (1, None, None)), ("product", (1, None))):
        node.run_transaction(lambda txn, t=table, r=row: insert(txn, t, r))  # type: ignore[misc]
    node.run_transaction(lambda txn: insert(txn, "orders", (1, 1, None)))
    commits(node).wait_settled()
    parent, child = node.begin(), node.begin()
    delete(parent, "product", 1)
    insert(child, "line", (1, 1, 1))
    go, settle = threading.Event(), commits(node)._group._run_settling

    def settle_later(step: Step[None]) -> None:
        go.wait(30)
        settle(step)

    commits(node)._group._run_settling = settle_later
    child.commit()
    refused: list[InvalidInput] = []

    def remove_parent() -> None:
        try:
            parent.commit()
        except InvalidInput as error:
            refused.append(error)

    removing = threading.Thread(target=remove_parent)
    removing.start()
    removing.join(0.2)
    go.set()
    removing.join()
    assert [error.sqlstate for error in refused] == ["23503"]
    node.close()


def test_a_node_that_is_closed_is_gone_and_one_that_was_killed_stays_listed_for_the_lease() -> None:
    store = MemoryCells()
    first = Database.on_cells(CellStoreSetup(store, SETTINGS))
    closed = Database.on_cells(CellStoreSetup(store, SETTINGS))
    killed = open_node(store)
    listed = {node.node for node in first.engine.list_nodes()}
    closed_id, killed_id = commits(closed).node.id, commits(killed).node.id
    assert {closed_id, killed_id} < listed
    closed.close()
    assert {node.node for node in first.engine.list_nodes()} == listed - {closed_id}
    first.close()


def test_a_node_that_is_silent_for_the_lease_is_gone_for_all_until_it_is_heard_again() -> None:
    bench = Bench(lease_seconds=10.0)
    one, two, slow = (bench.run(join_store(bench.settings)) for _ in range(3))

    def listed(by: Node) -> set[int]:
        return {each.node for each in bench.run(node_lists.list_nodes(by))}

    bench.run(sweep.sweep_locks(one))
    bench.now += 9.0
    for node in (one, two):
        bench.run(send_heartbeat(node))
    bench.run(sweep.sweep_locks(one))
    assert listed(one) == {one.id, two.id, slow.id}, "not yet for the lease"
    bench.now += 2.0
    bench.run(sweep.sweep_locks(one))
    newcomer = bench.run(join_store(bench.settings))
    assert listed(newcomer) == {one.id, two.id, newcomer.id}, "it need not wait for the lease"
    late = AttemptLocks(slow.start_attempt(), 0)
    bench.run(locks.take_locks(slow, late, [RowLock(root("x"))], advance.finish_attempt))
    [(row, holder)] = bench.run(sweep.held_locks())
    assert bench.run(locks.is_expired(newcomer, row, holder))
    bench.run(send_heartbeat(slow))
    assert not bench.run(locks.is_expired(newcomer, row, holder)), "it was only slow"
    bench.run(sweep.sweep_locks(newcomer))
    assert listed(newcomer) == {one.id, two.id, slow.id, newcomer.id}


def test_a_clock_set_back_an_hour_dates_records_and_changes_nothing_else() -> None:
    store, hour = MemoryCells(), 3_600_000_000
    first = Database(cells(store), Config(), clock_us=lambda: 2 * hour)
    create_shop(first)
    second = Database(cells(store), Config(), clock_us=lambda: hour)
    before = first.run_and_get_commit(lambda txn: insert(txn, "product", (1, "a")))[1]
    second.begin(at_least=before.position).rollback()
    after = second.run_and_get_commit(lambda txn: update(txn, "product", (1, "b")))[1]
    assert after.position > before.position
    assert after.time < before.time
    for node in (first, second):
        with node.begin(at_least=after.position) as reader:
            assert get(reader, "product", 1) == (1, "b")
