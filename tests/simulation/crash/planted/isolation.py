"""The schedules that catch planted bugs of snapshots, conflicts, constraints and locks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from belvedere import failpoints
from belvedere.catalog.definitions import (
    ColumnDefinition,
    ForeignKeyDefinition,
    TableDefinition,
    UniqueDefinition,
)
from belvedere.config import Config
from belvedere.database import Database
from belvedere.errors import Error, InvalidInput, Retry, Unavailable
from belvedere.txn.contracts import SERIALIZABLE, SNAPSHOT, Isolation
from belvedere.txn.transaction import table_rows
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import BIGINT, TEXT

PARENT = TableDefinition(
    "parent",
    (ColumnDefinition("id", BIGINT), ColumnDefinition("name", TEXT)),
    ("id",),
    uniques=(UniqueDefinition(("name",)),),
)
CHILD = TableDefinition(
    "child",
    (ColumnDefinition("id", BIGINT), ColumnDefinition("parent", BIGINT)),
    ("id",),
    foreign_keys=(ForeignKeyDefinition(("parent",), "parent"),),
)


def _database() -> Database:
    database = Database.open(":memory:", Config(lock_wait_ms_max=300))
    database.change_schema(lambda edit: (edit.create_table(PARENT), edit.create_table(CHILD)))
    for id_ in (1, 2):
        database.run_transaction(lambda txn, id_=id_: _put(database, txn, id_, f"name {id_}"))
    return database


def _put(database: Database, transaction: Transaction, id_: int, name: str) -> None:
    table = database.get_compiled_table("parent")
    value = transaction.get(table.key.encode_first(id_))
    if value is None:
        table_rows.insert_row(transaction, table, (id_, name))
    else:
        table_rows.update_row(transaction, table, table.decode(value), (id_, name))


def _name(database: Database, transaction: Transaction, id_: int) -> str | None:
    table = database.get_compiled_table("parent")
    value = transaction.get(table.key.encode_first(id_))
    return None if value is None else table.decode(value)[1]


def _both(
    first: Callable[[Database, Transaction], object],
    second: Callable[[Database, Transaction], object],
    isolation: Isolation = SNAPSHOT,
) -> list[str]:
    """Two transactions of one snapshot, the second after the first: one of them must give way."""
    database = _database()
    one, other = database.begin(isolation), database.begin(isolation)
    try:
        first(database, one)
        one.commit()
        second(database, other)
        other.commit()
    except (Retry, InvalidInput):
        return []
    return ["both committed"]


def snapshot_stands_still(home: Path) -> list[str]:
    database = _database()
    with database.begin() as reader:
        database.run_transaction(lambda txn: _put(database, txn, 1, "changed"))
        found = _name(database, reader, 1)
    return [] if found == "name 1" else [f"a snapshot moved: {found}"]


def old_snapshot_outlives_younger(home: Path) -> list[str]:
    database = _database()
    with database.begin() as reader:
        database.run_transaction(lambda txn: _put(database, txn, 1, "changed"))
        database.begin().rollback()
        database.run_transaction(lambda txn: _put(database, txn, 1, "again"))
        database.begin().rollback()
        found = _name(database, reader, 1)
    return [] if found == "name 1" else [f"a snapshot moved: {found}"]


def snapshot_in_mid_write(home: Path) -> list[str]:
    """A reader between the write and what follows it."""
    database, seen = _database(), []
    with database.begin() as reader:
        look = lambda: seen.append(_name(database, reader, 1))  # noqa: E731
        failpoints.arm("commit.after_write", "call", call=look)
        database.run_transaction(lambda txn: _put(database, txn, 1, "changed"))
    return [] if seen == ["name 1"] else [f"a snapshot moved: {seen}"]


def lost_update(home: Path) -> list[str]:
    return _both(lambda db, txn: _put(db, txn, 1, "a"), lambda db, txn: _put(db, txn, 1, "b"))


def write_skew(home: Path) -> list[str]:
    def swap(mine: int, theirs: int) -> Callable[[Database, Transaction], None]:
        def change(database: Database, transaction: Transaction) -> None:
            _name(database, transaction, theirs)
            _put(database, transaction, mine, f"saw {theirs}")

        return change

    # Both read before either writes.
    database = _database()
    one, other = database.begin(SERIALIZABLE), database.begin(SERIALIZABLE)
    _name(database, other, 1)
    try:
        swap(1, 2)(database, one)
        one.commit()
        _put(database, other, 2, "saw 1")
        other.commit()
    except Retry:
        return []
    return ["write skew"]


def phantom(home: Path) -> list[str]:
    """Each counts the rows and adds one."""

    def count_and_add(id_: int) -> Callable[[Database, Transaction], None]:
        def change(database: Database, transaction: Transaction) -> None:
            table = database.get_compiled_table("parent")
            count = sum(len(batch) for batch in transaction.scan(table.start, table.end))
            _put(database, transaction, id_, f"{id_} is number {count}")

        return change

    return _both(count_and_add(10), count_and_add(11), SERIALIZABLE)


def same_unique_value(home: Path) -> list[str]:
    return _both(
        lambda db, txn: _put(db, txn, 10, "same"), lambda db, txn: _put(db, txn, 11, "same")
    )


def deleted_parent(home: Path) -> list[str]:
    def delete(database: Database, transaction: Transaction) -> None:
        table_rows.delete_row(transaction, database.get_compiled_table("parent"), (1, "name 1"))

    def add_child(database: Database, transaction: Transaction) -> None:
        table_rows.insert_row(transaction, database.get_compiled_table("child"), (1, 1))

    return _both(delete, add_child)


def deadlock(home: Path) -> list[str]:
    """Two transactions lock two rows in two orders: one is the victim at once."""
    database, states = _database(), []
    barrier = threading.Barrier(2)

    def work(first: int, second: int) -> None:
        transaction = database.begin()
        try:
            _put(database, transaction, first, f"x{first}{second}")
            barrier.wait()
            _put(database, transaction, second, f"y{first}{second}")
        except Error as error:
            states.append(error.sqlstate)
        finally:
            transaction.rollback()

    threads = [threading.Thread(target=work, args=order) for order in ((1, 2), (2, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [] if "40P01" in states else [f"no victim: {states}"]


def ended_locks(home: Path) -> list[str]:
    try:
        database = _database()
        with database.begin() as transaction:
            _put(database, transaction, 1, "changed")
    except Unavailable as error:
        return [str(error)]
    held = database.locks.list_locks()
    return [] if not held else [f"still held: {held}"]


def rolled_back(home: Path) -> list[str]:
    database = _database()
    with database.begin() as transaction:
        savepoint = transaction.set_savepoint()
        _put(database, transaction, 1, "changed")
        transaction.rollback_to(savepoint)
    with database.begin() as transaction:
        found = _name(database, transaction, 1)
    return [] if found == "name 1" else [f"{found} stayed"]


SCHEDULES: dict[str, Callable[[Path], list[str]]] = {
    "undo_skipped": snapshot_stands_still,
    "undo_after_write": snapshot_in_mid_write,
    "undo_purged_early": old_snapshot_outlives_younger,
    "conflict_unchecked": lost_update,
    "reads_unvalidated": write_skew,
    "ranges_unvalidated": phantom,
    "unique_at_snapshot": same_unique_value,
    "foreign_key_at_snapshot": deleted_parent,
    "lock_order_inverted": deadlock,
    "lock_kept": ended_locks,
    "savepoint_keeps_changes": rolled_back,
}
