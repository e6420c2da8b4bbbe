"""What a transaction sees and what becomes of it: snapshots, own writes, isolation, savepoints."""

from __future__ import annotations

import pytest

from belvedere.database import Database
from belvedere.errors import InvalidInput, Retry
from belvedere.txn.contracts import READ_COMMITTED, SERIALIZABLE, Isolation, LockRequest
from belvedere.txn.transaction import table_rows
from belvedere.txn.transaction.transaction import Transaction
from tests.txn.shop import (
    delete,
    entries,
    get,
    insert,
    key_space,
    move,
    pairs,
    put,
    scan,
    table,
    undo_entries,
    update,
)

ANN = (1, "ann@x", "Rome")
BOB = (2, "bob@x", "Oslo")
EVE = (3, "eve@x", "Rome")


# -- snapshot isolation -----------------------------------------------------------------------


def test_reads_stay_while_others_insert_update_and_delete(shop: Database) -> None:
    put(shop, "customer", ANN, BOB)
    with shop.begin() as reader:
        shop.run_transaction(lambda txn: update(txn, "customer", (1, "new@x", "Pisa")))
        shop.run_transaction(lambda txn: delete(txn, "customer", 2))
        put(shop, "customer", EVE)
        assert get(reader, "customer", 1) == ANN
        assert get(reader, "customer", 2) == BOB
        assert get(reader, "customer", 3) is None
        into = table(reader, "customer")
        keys = [into.key.encode((id_,)) for id_ in (3, 1, 2)]
        values = reader.multi_get(keys)
        assert [value and into.decode(value) for value in values] == [None, ANN, BOB]
    with shop.begin() as later:
        assert scan(later, "customer") == [(1, "new@x", "Pisa"), EVE]


@pytest.mark.parametrize("batch_rows", [1, 2, 4096])
def test_scans_of_a_snapshot_see_deleted_rows_and_no_inserted_ones(
    shop: Database, batch_rows: int
) -> None:
    put(shop, "product", *[(id_, "old") for id_ in range(0, 20, 2)])
    with shop.begin() as reader:
        for id_ in range(0, 20, 4):
            shop.run_transaction(lambda txn, id_=id_: delete(txn, "product", id_))
        put(shop, "product", *[(id_, "new") for id_ in range(-3, 25, 2)])
        expected = [(id_, "old") for id_ in range(0, 20, 2)]
        assert scan(reader, "product", batch_rows=batch_rows) == expected
        assert scan(reader, "product", reverse=True, batch_rows=batch_rows) == expected[::-1]
        into = table(reader, "product")
        values = list(reader.scan_values(into.start, into.end, batch_rows=batch_rows))
        assert [into.decode(value) for batch in values for value in batch] == expected


@pytest.mark.parametrize("reverse", [False, True])
def test_a_limit_counts_the_rows_of_the_snapshot(shop: Database, reverse: bool) -> None:
    put(shop, "product", *[(id_, "old") for id_ in range(10)])
    with shop.begin() as reader:
        shop.run_transaction(lambda txn: [delete(txn, "product", id_) for id_ in (0, 1, 8, 9)])
        put(shop, "product", (-1, "new"), (20, "new"))
        every = [(id_, "old") for id_ in range(10)]
        _require_limited(reader, every, reverse)
        insert(reader, "product", (-5, "own"), (30, "own"))
        delete(reader, "product", 4)
        every = [(-5, "own"), *(row for row in every if row[0] != 4), (30, "own")]
        _require_limited(reader, every, reverse)
        reader.rollback()


def _require_limited(reader: Transaction, every: list[tuple[int, str]], reverse: bool) -> None:
    for limit in (0, 1, 2, 5, 9, 10, 11, 12, 13):
        expected = (every[::-1] if reverse else every)[:limit]
        assert scan(reader, "product", reverse=reverse, limit=limit) == expected


def test_a_scan_that_is_under_way_does_not_move(shop: Database) -> None:
    put(shop, "product", *[(id_, "old") for id_ in range(6)])
    with shop.begin() as reader:
        into = table(reader, "product")
        batches = reader.scan(into.start, into.end, batch_rows=2)
        seen = next(batches)
        shop.run_transaction(lambda txn: [delete(txn, "product", id_) for id_ in range(6)])
        seen = seen + pairs(batches)
        assert [into.decode(value)[0] for _, value in seen] == list(range(6))


def test_indexes_are_of_the_snapshot_too(shop: Database) -> None:
    put(shop, "customer", ANN, BOB)
    with shop.begin() as reader:
        shop.run_transaction(lambda txn: update(txn, "customer", (1, "ann@x", "Zug")))
        shop.run_transaction(lambda txn: delete(txn, "customer", 2))
        assert entries(reader, "customer_city_idx") == [("Oslo", 2), ("Rome", 1)]
    with shop.begin() as later:
        assert entries(later, "customer_city_idx") == [("Zug", 1)]


def test_several_snapshots_each_see_their_own_past(shop: Database) -> None:
    put(shop, "product", (1, "v0"))
    readers = []
    for version in range(1, 6):
        readers.append(shop.begin())
        shop.run_transaction(
            lambda txn, version=version: update(txn, "product", (1, f"v{version}"))
        )
    for order in ([3, 0, 4], [1, 2]):
        for number in order:
            assert get(readers[number], "product", 1) == (1, f"v{number}")
            readers[number].rollback()
    assert shop.visibility.open_count == 0
    assert undo_entries(shop) == 0


# -- own writes -------------------------------------------------------------------------------


def test_own_writes_are_seen_by_gets_scans_and_indexes_and_by_nobody_else(shop: Database) -> None:
    put(shop, "customer", ANN, BOB)
    with shop.begin() as other, shop.begin() as txn:
        insert(txn, "customer", EVE)
        update(txn, "customer", (1, "ann@x", "Bern"))
        delete(txn, "customer", 2)
        assert scan(txn, "customer") == [(1, "ann@x", "Bern"), EVE]
        assert scan(txn, "customer", reverse=True) == [EVE, (1, "ann@x", "Bern")]
        assert entries(txn, "customer_city_idx") == [("Bern", 1), ("Rome", 3)]
        assert entries(txn, "customer_email_key") == [("ann@x", 1), ("eve@x", 3)]
        insert(txn, "customer", (0, None, "Aix"))
        assert entries(txn, "customer_city_idx") == [("Aix", 0), ("Bern", 1), ("Rome", 3)]
        assert scan(other, "customer") == [ANN, BOB]
        assert entries(other, "customer_city_idx") == [("Oslo", 2), ("Rome", 1)]
    with shop.begin() as later:
        assert entries(later, "customer_city_idx") == [("Aix", 0), ("Bern", 1), ("Rome", 3)]


def test_a_row_written_back_to_what_it_was_is_no_change(memory_shop: Database) -> None:
    put(memory_shop, "customer", ANN)
    before = memory_shop.position
    with memory_shop.begin() as txn:
        update(txn, "customer", (1, "ann@x", "Bern"))
        assert entries(txn, "customer_city_idx") == [("Bern", 1)]
        update(txn, "customer", ANN)
        assert txn.changes == ()
        assert entries(txn, "customer_city_idx") == [("Rome", 1)]
        insert(txn, "customer", BOB)
        assert entries(txn, "customer_city_idx") == [("Oslo", 2), ("Rome", 1)]
        delete(txn, "customer", 2)
        assert entries(txn, "customer_city_idx") == [("Rome", 1)]
        assert scan(txn, "customer") == [ANN]
    assert memory_shop.position == before


def test_a_failed_preview_is_made_again(memory_shop: Database) -> None:
    """A read of an index that fails must not make the next one forget own rows."""
    put(memory_shop, "customer", ANN)
    with memory_shop.begin() as txn:
        insert(txn, "customer", (5, "ann@x", "Rome"))
        for _ in range(2):
            with pytest.raises(InvalidInput, match="duplicate key"):
                entries(txn, "customer_email_key")
        update(txn, "customer", (5, "free@x", "Rome"))
        assert entries(txn, "customer_email_key") == [("ann@x", 1), ("free@x", 5)]


def test_changed_keys_move_the_row(shop: Database) -> None:
    put(shop, "customer", ANN, BOB)
    with shop.begin() as txn:
        move(txn, "customer", (1,), (7, "ann@x", "Rome"))
        assert scan(txn, "customer") == [BOB, (7, "ann@x", "Rome")]
        with pytest.raises(InvalidInput) as caught:
            move(txn, "customer", (7,), (2, "x@x", "Rome"))
        assert caught.value.sqlstate == "23505"
        assert scan(txn, "customer") == [BOB, (7, "ann@x", "Rome")], "a refusal changes nothing"
    with shop.begin() as later:
        assert entries(later, "customer_email_key") == [("ann@x", 7), ("bob@x", 2)]


def test_null_where_none_may_be_and_taken_keys_are_refused(memory_shop: Database) -> None:
    put(memory_shop, "customer", ANN)
    with memory_shop.begin() as txn:
        with pytest.raises(InvalidInput) as taken:
            insert(txn, "customer", ANN)
        with pytest.raises(InvalidInput) as missing:
            insert(txn, "orders", (1, None, "x"))
        assert txn.changes == ()
    assert taken.value.sqlstate == "23505"
    assert taken.value.facts == {"constraint": "customer_pkey"}
    assert missing.value.sqlstate == "23502"
    assert missing.value.facts == {"table": "orders", "column": "customer"}


# -- conflicts --------------------------------------------------------------------------------


def test_the_first_committer_wins_and_the_loser_learns_to_whom(shop: Database) -> None:
    put(shop, "product", (1, "v0"))
    first, second = shop.begin(), shop.begin()
    key = table(shop, "product").key.encode((1,))
    old = first.get(key)
    encode = table(shop, "product").encode
    first.write(key, old, encode((1, "first")))
    second.write(key, old, encode((1, "second")))
    committed = first.commit()
    with pytest.raises(Retry) as lost:
        second.commit()
    assert lost.value.lost_to == committed.position
    assert lost.value.sqlstate == "40001"
    with shop.begin(at_least=lost.value.lost_to) as later:
        assert get(later, "product", 1) == (1, "first")


def test_a_write_of_a_row_that_moved_on_fails_at_once(shop: Database) -> None:
    put(shop, "product", (1, "v0"))
    with shop.begin() as late:
        assert get(late, "product", 1) == (1, "v0")
        shop.run_transaction(lambda txn: update(txn, "product", (1, "v1")))
        with pytest.raises(Retry):
            update(late, "product", (1, "lost"))
        late.rollback()


def test_two_inserts_of_one_key_conflict(shop: Database) -> None:
    first, second = shop.begin(), shop.begin()
    into = table(shop, "product")
    key = into.key.encode((1,))
    for txn in (first, second):
        assert txn.get(key) is None
        txn.write(key, None, into.encode((1, "x")))
    first.commit()
    with pytest.raises(Retry):
        second.commit()


def test_delete_and_reinsert_by_another_is_a_conflict(shop: Database) -> None:
    """Same bytes again, but another row: a version, not a value, is what counts."""
    put(shop, "product", (1, "v"))
    with shop.begin() as late:
        get(late, "product", 1)
        shop.run_transaction(lambda txn: delete(txn, "product", 1))
        put(shop, "product", (1, "v"))
        with pytest.raises(Retry):
            update(late, "product", (1, "w"))
        late.rollback()


# -- READ COMMITTED ---------------------------------------------------------------------------


def test_read_committed_moves_on_with_each_statement_only(shop: Database) -> None:
    put(shop, "product", (1, "v0"))
    with shop.begin(READ_COMMITTED) as txn:
        assert get(txn, "product", 1) == (1, "v0")
        shop.run_transaction(lambda other: update(other, "product", (1, "v1")))
        assert get(txn, "product", 1) == (1, "v0"), "inside one statement nothing moves"
        txn.begin_statement()
        assert get(txn, "product", 1) == (1, "v1")
        update(txn, "product", (1, "mine"))
        put(shop, "product", (2, "theirs"))
        txn.begin_statement()
        assert scan(txn, "product") == [(1, "mine"), (2, "theirs")]
    assert shop.visibility.open_count == 0


def test_read_committed_still_refuses_a_lost_update(shop: Database) -> None:
    put(shop, "product", (1, "v0"))
    into = table(shop, "product")
    key = into.key.encode((1,))
    txn = shop.begin(READ_COMMITTED)
    txn.write(key, txn.get(key), into.encode((1, "mine")))
    with shop.begin() as other:
        other.write(key, other.get(key), into.encode((1, "theirs")))
    txn.begin_statement()
    assert get(txn, "product", 1) == (1, "mine")
    with pytest.raises(Retry):
        txn.commit()


def test_read_committed_keeps_the_snapshot_of_a_change_that_a_rollback_brings_back(
    memory_shop: Database,
) -> None:
    """The change is undone by hand, a statement later brought back: its conflict must still be
    found."""
    shop = memory_shop
    put(shop, "product", (1, "v0"))
    into = table(shop, "product")
    key = into.key.encode((1,))
    txn = shop.begin(READ_COMMITTED)
    old = txn.get(key)
    txn.write(key, old, into.encode((1, "mine")))
    savepoint = txn.set_savepoint()
    txn.write(key, into.encode((1, "mine")), old)
    txn.begin_statement()
    with shop.begin() as other:
        other.write(key, other.get(key), into.encode((1, "theirs")))
    txn.begin_statement()
    txn.rollback_to(savepoint)
    with pytest.raises(Retry):
        txn.commit()


def test_read_committed_sees_derived_rows_of_both(shop: Database) -> None:
    with shop.begin(READ_COMMITTED) as txn:
        insert(txn, "customer", ANN)
        assert entries(txn, "customer_city_idx") == [("Rome", 1)]
        put(shop, "customer", BOB)
        assert entries(txn, "customer_city_idx") == [("Rome", 1)]
        txn.begin_statement()
        assert entries(txn, "customer_city_idx") == [("Oslo", 2), ("Rome", 1)]


# -- SERIALIZABLE -----------------------------------------------------------------------------


def test_write_skew_is_refused_when_serializable_and_allowed_otherwise(shop: Database) -> None:
    put(shop, "product", (1, "on"), (2, "on"))

    def skew(isolation: Isolation) -> None:
        first, second = shop.begin(isolation), shop.begin(isolation)
        for txn in (first, second):
            assert [get(txn, "product", id_)[1] for id_ in (1, 2)] == ["on", "on"]
        update(first, "product", (1, "off"))
        update(second, "product", (2, "off"))
        first.commit()
        second.commit()

    with pytest.raises(Retry) as refused:
        skew(SERIALIZABLE)
    assert refused.value.detail == "a row it read was changed by another transaction"
    shop.run_transaction(lambda txn: update(txn, "product", (1, "on")))
    skew(READ_COMMITTED)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_range_that_was_read_must_not_change(shop: Database, reverse: bool) -> None:
    """Phantoms: each counts the rows and inserts one of its own."""
    put(shop, "product", (1, "x"), (9, "x"))
    first, second = shop.begin(SERIALIZABLE), shop.begin(SERIALIZABLE)
    for id_, txn in ((4, first), (5, second)):
        assert len(scan(txn, "product", reverse=reverse)) == 2
        insert(txn, "product", (id_, "new"))
    first.commit()
    with pytest.raises(Retry) as refused:
        second.commit()
    assert refused.value.detail == "a range it read was changed by another transaction"


def test_an_empty_range_and_an_absent_row_are_reads_too(shop: Database) -> None:
    first, second = shop.begin(SERIALIZABLE), shop.begin(SERIALIZABLE)
    assert get(first, "product", 1) is None
    into = table(second, "product")
    assert pairs(second.scan(into.key.encode((1,)), into.key.encode((3,)))) == []
    insert(first, "product", (2, "x"))
    insert(second, "product", (1, "x"))
    second.commit()
    with pytest.raises(Retry):
        first.commit()


def test_changes_outside_what_was_read_do_no_harm(shop: Database) -> None:
    put(shop, "product", *[(id_, "x") for id_ in range(10)])
    with shop.begin(SERIALIZABLE) as txn:
        into = table(txn, "product")
        assert len(pairs(txn.scan(into.key.encode((2,)), into.key.encode((5,))))) == 3
        get(txn, "product", 7)
        shop.run_transaction(
            lambda other: [update(other, "product", (id_, "y")) for id_ in (0, 1, 5, 6, 8)]
        )
        insert(txn, "product", (20, "mine"))


def test_reads_through_an_index_are_validated(shop: Database) -> None:
    put(shop, "customer", ANN)
    txn = shop.begin(SERIALIZABLE)
    assert entries(txn, "customer_city_idx") == [("Rome", 1)]
    insert(txn, "product", (1, "x"))
    put(shop, "customer", EVE)
    with pytest.raises(Retry):
        txn.commit()


def test_a_serializable_reader_that_writes_nothing_never_fails(shop: Database) -> None:
    put(shop, "product", (1, "x"))
    with shop.begin(SERIALIZABLE) as txn:
        assert scan(txn, "product") == [(1, "x")]
        shop.run_transaction(lambda other: update(other, "product", (1, "y")))
        assert scan(txn, "product") == [(1, "x")]


# -- savepoints -------------------------------------------------------------------------------


def test_rollback_to_takes_back_rows_and_what_is_derived_from_them(shop: Database) -> None:
    put(shop, "customer", ANN, BOB)
    with shop.begin() as txn:
        insert(txn, "customer", EVE)
        outer = txn.set_savepoint()
        update(txn, "customer", (3, "eve@x", "Bern"))
        delete(txn, "customer", 1)
        assert entries(txn, "customer_city_idx") == [("Bern", 3), ("Oslo", 2)]
        inner = txn.set_savepoint()
        delete(txn, "customer", 3)
        insert(txn, "customer", (4, "x", "Ulm"))
        txn.rollback_to(inner)
        assert scan(txn, "customer") == [BOB, (3, "eve@x", "Bern")]
        assert entries(txn, "customer_city_idx") == [("Bern", 3), ("Oslo", 2)]
        delete(txn, "customer", 2)
        txn.rollback_to(outer)
        assert scan(txn, "customer") == [ANN, BOB, EVE]
        assert entries(txn, "customer_city_idx") == [("Oslo", 2), ("Rome", 1), ("Rome", 3)]
        txn.rollback_to(outer)
        assert scan(txn, "customer", reverse=True) == [EVE, BOB, ANN]
    with shop.begin() as later:
        assert scan(later, "customer") == [ANN, BOB, EVE]
        assert entries(later, "customer_email_key") == [("ann@x", 1), ("bob@x", 2), ("eve@x", 3)]


def test_rollback_to_brings_back_a_change_that_was_undone_by_hand(memory_shop: Database) -> None:
    put(memory_shop, "customer", ANN)
    with memory_shop.begin() as txn:
        update(txn, "customer", (1, "ann@x", "Bern"))
        savepoint = txn.set_savepoint()
        update(txn, "customer", ANN)
        assert txn.changes == ()
        txn.rollback_to(savepoint)
        assert scan(txn, "customer") == [(1, "ann@x", "Bern")]
    with memory_shop.begin() as later:
        assert scan(later, "customer") == [(1, "ann@x", "Bern")]


def test_rollback_to_keeps_locks_and_the_read_set(memory_shop: Database) -> None:
    shop = memory_shop
    put(shop, "product", (1, "x"))
    txn = shop.begin(SERIALIZABLE)
    savepoint = txn.set_savepoint()
    assert get(txn, "product", 1) == (1, "x")
    insert(txn, "product", (2, "y"))
    txn.rollback_to(savepoint)
    assert [lock.kind for lock in txn.held_locks] == ["root"]
    insert(txn, "product", (3, "z"))
    shop.run_transaction(lambda other: update(other, "product", (1, "moved")))
    with pytest.raises(Retry):
        txn.commit()


# -- the end ----------------------------------------------------------------------------------


def test_a_rolled_back_transaction_leaves_nothing(shop: Database) -> None:
    put(shop, "customer", ANN)
    before, position = key_space(shop), shop.position

    def fail(txn: Transaction) -> None:
        insert(txn, "customer", BOB)
        update(txn, "customer", (1, "a", "b"))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        shop.run_transaction(fail)
    assert (key_space(shop), shop.position) == (before, position)
    assert shop.visibility.open_count == 0
    assert shop.locks.list_locks() == []


def test_an_ended_transaction_does_nothing_any_more(memory_shop: Database) -> None:
    shop = memory_shop
    put(shop, "product", (1, "x"))
    txn = shop.begin()
    txn.commit()
    into = table(shop, "product")
    key = into.key.encode((1,))
    for use in (
        lambda: txn.commit(),
        lambda: txn.write(key, None, b""),
        lambda: txn.acquire_lock(LockRequest("root", key)),
        lambda: txn.get(key),
        lambda: txn.multi_get([key]),
        lambda: txn.scan(into.start, into.end),
        lambda: txn.scan_values(into.start, into.end),
        lambda: txn.begin_statement(),
        lambda: txn.set_savepoint(),
        lambda: table_rows.insert_row(txn, into, (2, "y")),
    ):
        with pytest.raises(InvalidInput) as refused:
            use()
        assert refused.value.sqlstate == "25P01"
    txn.rollback()
    assert shop.locks.list_locks() == []
    assert shop.visibility.open_count == 0


def test_a_change_from_nothing_to_nothing_is_none(memory_shop: Database) -> None:
    before = memory_shop.position
    with memory_shop.begin() as txn:
        table_rows.delete_row(txn, table(txn, "product"), (1, "never there"))
        assert txn.changes == ()
    assert memory_shop.position == before


def test_a_transaction_without_changes_takes_no_position(memory_shop: Database) -> None:
    before = memory_shop.position
    assert memory_shop.begin().commit() == (before, 0)
    assert memory_shop.position == before


def test_locks_are_given_back_even_when_the_snapshot_cannot_be(
    memory_shop: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    transaction = memory_shop.begin()
    transaction.lock_root(b"root")
    monkeypatch.setattr(memory_shop.commits, "release", interrupted)
    with pytest.raises(KeyboardInterrupt):
        transaction.rollback()
    monkeypatch.undo()
    assert memory_shop.locks.list_locks() == []
    memory_shop.commits.release(transaction.snapshot)
