"""Linear state on the row-atomic commit: delta cells, folded and forgotten, never locked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from belvedere.catalog.catalog import Catalog
from belvedere.codec import accumulator, keyspace
from belvedere.database import Database
from belvedere.errors import Corruption
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.txn.contracts import LockRequest, Participant, Reader, RowChange, Writer
from belvedere.txn.row_atomic.cells import data_cells
from belvedere.txn.row_atomic.housekeeping import sweep
from belvedere.txn.row_atomic.housekeeping.fold import fold_row
from belvedere.txn.row_atomic.housekeeping.vacuum import vacuum_and_trim
from belvedere.txn.row_atomic.node import NodeSettings
from tests.txn.row_atomic.nodes import commits, memory, open_as
from tests.txn.shop import create_shop, delete, insert, table

GROUP = keyspace.row_prefix(5000) + b"all"
SETTINGS = NodeSettings(grace_seconds=0.0, close_seconds_min=0.01)


class CountProducts:
    """SELECT count(*), sum(id) FROM product, kept by adding."""

    checks = True

    def __init__(self, relation: int) -> None:
        self._relation = relation

    def locks(self, changes: Sequence[RowChange], reader: Reader) -> Iterable[LockRequest]:
        return ()

    def check(self, changes: Sequence[RowChange], reader: Reader) -> None:
        stored = reader.get(GROUP)
        assert stored is None or accumulator.decode(stored)[1][0] > 0

    def writes(self, changes: Sequence[RowChange], reader: Reader, writer: Writer) -> None:
        decode = table(reader, "product").decode
        for change in changes:
            if change.relation == self._relation:
                for value, sign in ((change.old, -1), (change.new, 1)):
                    if value is not None:
                        writer.add(GROUP, b"all", (sign, sign * decode(value)[0]))


class CountingDatabase(Database):
    def participants_for(
        self, catalog: Catalog, relations: frozenset[int]
    ) -> tuple[Participant, ...]:
        own = super().participants_for(catalog, relations)
        ids = [t.id for t in catalog.tables if t.name == "product" and t.id in relations]
        return (*own, *(CountProducts(id_) for id_ in ids))


def opened(nodes: int) -> list[CountingDatabase]:
    store = MemoryCells()
    made = [open_as(CountingDatabase, store, SETTINGS) for _ in range(nodes)]
    create_shop(made[0])
    return made


def counted(node: Database) -> tuple[int, ...] | None:
    with node.begin(at_least=node.position) as reader:
        stored = reader.get(GROUP)
    return None if stored is None else accumulator.decode(stored)[1]


def test_adds_of_several_rows_of_one_transaction_count_each() -> None:
    (node,) = opened(1)
    node.run_transaction(lambda txn: insert(txn, "product", (1, "a"), (2, "b"), (3, "c")))
    assert counted(node) == (3, 6)
    node.run_transaction(lambda txn: delete(txn, "product", 2))
    assert counted(node) == (2, 4)
    for id_ in (1, 3):
        node.run_transaction(lambda txn, id_=id_: delete(txn, "product", id_))
    assert counted(node) is None, "no rows: no state"
    node.run_transaction(lambda txn: insert(txn, "product", (9, "z")))
    assert counted(node) == (1, 9)


def test_two_nodes_add_to_one_group_without_waiting_or_conflict() -> None:
    first, second = opened(2)
    one, two = first.begin(), second.begin(at_least=first.position)
    insert(one, "product", (1, "a"))
    insert(two, "product", (2, "b"))
    one.commit()
    two.commit()
    assert counted(first) == counted(second) == (2, 3)
    waits = memory(first).counts["lock waits"] + memory(second).counts["lock waits"]
    assert waits == 0


@pytest.mark.parametrize("forgotten", [False, True])
def test_folds_and_vacuum_change_nothing_that_is_read(forgotten: bool) -> None:
    (node,) = opened(1)
    past = {}
    for id_ in range(1, 7):
        node.run_transaction(lambda txn, id_=id_: insert(txn, "product", (id_, "p")))
        past[node.position] = counted(node)
        if id_ % 2:
            assert commits(node).run_step(fold_row(GROUP)) == node.position
            assert commits(node).run_step(fold_row(GROUP)) == 0, "nothing new to fold"
    at = node.position
    if forgotten:
        commits(node).run_step(vacuum_and_trim(memory(node), b"\x10", b"\x11", at, at))
    assert counted(node) == (6, 21)
    if not forgotten:
        for position, expected in past.items():
            snapshot = node.commits.open_snapshot()._replace(batch=position)
            stored = node.commits.reader(snapshot).get(GROUP)
            assert stored is not None
            assert accumulator.decode(stored)[1] == expected
    node.run_transaction(lambda txn: insert(txn, "product", (7, "p")))
    assert counted(node) == (7, 28)
    assert commits(node).run_step(sweep.held_locks()) == []


def test_a_sum_that_counts_fewer_than_zero_rows_is_never_shown() -> None:
    (node,) = opened(1)
    node.run_transaction(lambda txn: insert(txn, "product", (1, "a")))
    commits(node).write_backfill(node.position, [data_cells.add_to_sum(GROUP, b"all", (-1, 0))])
    with pytest.raises(Corruption, match="fewer than zero"):
        counted(node)
