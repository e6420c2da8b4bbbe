"""Unique values and foreign keys, checked at commit against the newest state."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from belvedere.catalog.definitions import IndexDefinition, KeyPartDefinition, UniqueDefinition
from belvedere.database import Database
from belvedere.errors import InvalidInput
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import BIGINT, DOUBLE, INTEGER, REAL, SMALLINT, TEXT, SqlType
from tests.txn.shop import (
    column,
    delete,
    entries,
    foreign_key,
    get,
    insert,
    key_space,
    move,
    put,
    scan,
    table_of,
    update,
)


def refused(
    database: Database, work: Callable[[Transaction], object], sqlstate: str
) -> InvalidInput:
    """The error of a commit that must fail and change nothing."""
    before = key_space(database)
    with pytest.raises(InvalidInput) as caught:
        database.run_transaction(work)
    assert caught.value.sqlstate == sqlstate
    assert key_space(database) == before
    return caught.value


# -- unique -----------------------------------------------------------------------------------


def test_a_unique_value_is_taken_once(shop: Database) -> None:
    put(shop, "customer", (1, "ann@x", None))
    error = refused(shop, lambda txn: insert(txn, "customer", (2, "ann@x", None)), "23505")
    assert error.facts == {"constraint": "customer_email_key"}
    assert error.detail == "key (email) = (ann@x) already exists"
    refused(shop, lambda txn: insert(txn, "customer", (2, "b", None), (3, "b", None)), "23505")


def test_nulls_are_distinct_unless_said_otherwise(memory_shop: Database) -> None:
    put(memory_shop, "customer", (1, None, None), (2, None, None))
    wanted = table_of(
        "t", column("id"), column("a"), uniques=(UniqueDefinition(("a",), nulls_distinct=False),)
    )
    memory_shop.change_schema(lambda edit: edit.create_table(wanted))
    put(memory_shop, "t", (1, None))
    refused(memory_shop, lambda txn: insert(txn, "t", (2, None)), "23505")


def test_partly_null_values_are_distinct(memory_shop: Database) -> None:
    wanted = table_of(
        "t", column("id"), column("a"), column("b"), uniques=(UniqueDefinition(("a", "b")),)
    )
    memory_shop.change_schema(lambda edit: edit.create_table(wanted))
    put(memory_shop, "t", (1, 5, None), (2, 5, None), (3, None, 5), (4, 5, 5), (5, 5, 6))
    refused(memory_shop, lambda txn: insert(txn, "t", (6, 5, 5)), "23505")
    memory_shop.run_transaction(lambda txn: update(txn, "t", (1, 7, 7)))
    refused(memory_shop, lambda txn: update(txn, "t", (2, 7, 7)), "23505")


def test_two_rows_may_swap_unique_values_in_one_transaction(shop: Database) -> None:
    put(shop, "customer", (1, "a", None), (2, "b", None), (3, "c", None))

    def rotate(txn: Transaction) -> None:
        for id_, email in ((1, "b"), (2, "c"), (3, "a")):
            update(txn, "customer", (id_, email, None))

    shop.run_transaction(rotate)
    with shop.begin() as reader:
        assert entries(reader, "customer_email_key") == [("a", 3), ("b", 1), ("c", 2)]


@pytest.mark.parametrize("delete_first", [False, True])
def test_a_value_freed_by_the_same_transaction_is_free(shop: Database, delete_first: bool) -> None:
    put(shop, "customer", (1, "a", None))
    steps = [
        lambda txn: delete(txn, "customer", 1),
        lambda txn: insert(txn, "customer", (2, "a", None)),
    ]
    shop.run_transaction(
        lambda txn: [step(txn) for step in (steps if delete_first else steps[::-1])]
    )
    with shop.begin() as reader:
        assert entries(reader, "customer_email_key") == [("a", 2)]


def test_uniqueness_is_checked_against_the_newest_state(shop: Database) -> None:
    """Under different roots, at one snapshot: no row in common, one value in common."""
    first, second = shop.begin(), shop.begin()
    insert(first, "customer", (1, "same", None))
    insert(second, "customer", (2, "same", None))
    first.commit()
    with pytest.raises(InvalidInput) as caught:
        second.commit()
    assert caught.value.sqlstate == "23505"
    third = shop.begin()
    insert(third, "customer", (3, "freed", None))
    put(shop, "customer", (4, "freed", None))
    shop.run_transaction(lambda txn: update(txn, "customer", (4, "other", None)))
    third.commit()


def test_a_unique_index_made_later_is_enforced_on_transactions_under_way(shop: Database) -> None:
    put(shop, "product", (1, "a"))
    txn = shop.begin()
    insert(txn, "product", (2, "a"))
    wanted = IndexDefinition("product", (KeyPartDefinition("name"),), name="u", unique=True)
    shop.change_schema(lambda edit: edit.create_index(wanted))
    with pytest.raises(InvalidInput) as caught:
        txn.commit()
    assert caught.value.sqlstate == "23505"


# -- foreign keys -----------------------------------------------------------------------------


def test_a_child_needs_its_parent(shop: Database) -> None:
    error = refused(shop, lambda txn: insert(txn, "orders", (1, 9, None)), "23503")
    assert error.facts == {"constraint": "orders_customer_fkey", "table": "orders"}
    put(shop, "customer", (9, None, None))
    put(shop, "orders", (1, 9, None))
    refused(shop, lambda txn: update(txn, "orders", (1, 8, None)), "23503")


def test_a_parent_with_children_stays(shop: Database) -> None:
    put(shop, "customer", (9, None, None))
    put(shop, "orders", (1, 9, None))
    error = refused(shop, lambda txn: delete(txn, "customer", 9), "23503")
    assert error.detail == "the row is still referenced: (customer) = (9)"
    refused(shop, lambda txn: move(txn, "customer", (9,), (10, None, None)), "23503")
    shop.run_transaction(lambda txn: update(txn, "customer", (9, "x", "y")))
    shop.run_transaction(lambda txn: delete(txn, "orders", 1))
    shop.run_transaction(lambda txn: delete(txn, "customer", 9))


@pytest.mark.parametrize("reverse", [False, True])
def test_the_order_of_statements_does_not_matter(shop: Database, reverse: bool) -> None:
    def both(*steps: Callable[[Transaction], object]) -> None:
        shop.run_transaction(
            lambda txn: [step(txn) for step in (steps[::-1] if reverse else steps)]
        )

    both(
        lambda txn: insert(txn, "customer", (1, None, None)),
        lambda txn: insert(txn, "orders", (1, 1, None)),
        lambda txn: insert(txn, "product", (1, None)),
        lambda txn: insert(txn, "line", (1, 1, 1)),
    )
    both(
        lambda txn: move(txn, "customer", (1,), (2, None, None)),
        lambda txn: update(txn, "orders", (1, 2, None)),
    )
    both(
        lambda txn: delete(txn, "line", 1),
        lambda txn: delete(txn, "orders", 1),
        lambda txn: delete(txn, "customer", 2),
    )


def test_a_row_may_refer_to_itself_and_rows_to_each_other(shop: Database) -> None:
    put(shop, "staff", (1, 1))
    put(shop, "staff", (2, 3), (3, 2))
    put(shop, "staff", (4, None))
    refused(shop, lambda txn: insert(txn, "staff", (5, 6)), "23503")
    refused(shop, lambda txn: delete(txn, "staff", 2), "23503")
    shop.run_transaction(lambda txn: [delete(txn, "staff", id_) for id_ in (2, 3)])
    shop.run_transaction(lambda txn: delete(txn, "staff", 1))
    with shop.begin() as reader:
        assert scan(reader, "staff") == [(4, None)]


def test_a_parent_deleted_meanwhile_is_noticed(shop: Database) -> None:
    put(shop, "customer", (1, None, None))
    put(shop, "product", (1, None))
    put(shop, "orders", (1, 1, None))
    child, parent = shop.begin(), shop.begin()
    insert(child, "line", (1, 1, 1))
    delete(parent, "product", 1)
    parent.commit()
    with pytest.raises(InvalidInput) as caught:
        child.commit()
    assert caught.value.sqlstate == "23503"


def test_a_child_inserted_meanwhile_is_noticed(shop: Database) -> None:
    put(shop, "customer", (1, None, None))
    put(shop, "product", (1, None))
    put(shop, "orders", (1, 1, None))
    parent, child = shop.begin(), shop.begin()
    delete(parent, "product", 1)
    insert(child, "line", (1, 1, 1))
    child.commit()
    with pytest.raises(InvalidInput) as caught:
        parent.commit()
    assert caught.value.sqlstate == "23503"


def test_a_compound_key_refers_in_the_order_it_says(memory_shop: Database) -> None:
    parent = table_of("p", column("a"), column("b", TEXT), key="b a")
    child = table_of(
        "c",
        column("id"),
        column("x"),
        column("y", TEXT),
        foreign_keys=(foreign_key("x y", "p", parent_columns=("a", "b")),),
    )
    memory_shop.change_schema(lambda edit: (edit.create_table(parent), edit.create_table(child)))
    put(memory_shop, "p", (1, "one"))
    put(memory_shop, "c", (1, 1, "one"), (2, None, "two"), (3, 3, None))
    refused(memory_shop, lambda txn: insert(txn, "c", (4, 1, "two")), "23503")
    refused(memory_shop, lambda txn: delete(txn, "p", "one", 1), "23503")
    memory_shop.run_transaction(lambda txn: delete(txn, "c", 1))
    memory_shop.run_transaction(lambda txn: delete(txn, "p", "one", 1))


def test_a_foreign_key_to_a_unique_value(memory_shop: Database) -> None:
    shop = memory_shop
    child = table_of(
        "c",
        column("id"),
        column("email", TEXT),
        foreign_keys=(foreign_key("email", "customer", parent_columns=("email",)),),
    )
    shop.change_schema(lambda edit: edit.create_table(child))
    put(shop, "customer", (1, "a", None), (2, None, None))
    put(shop, "c", (1, "a"), (2, None))
    refused(shop, lambda txn: insert(txn, "c", (3, "b")), "23503")
    refused(shop, lambda txn: delete(txn, "customer", 1), "23503")
    refused(shop, lambda txn: update(txn, "customer", (1, None, None)), "23503")
    shop.run_transaction(lambda txn: delete(txn, "customer", 2))

    def hand_over(txn: Transaction) -> None:
        delete(txn, "customer", 1)
        insert(txn, "customer", (7, "a", None))

    shop.run_transaction(hand_over)
    with shop.begin() as reader:
        assert get(reader, "customer", 7) == (7, "a", None)


@pytest.mark.parametrize(
    ("child_type", "parent_type", "beyond"),
    [(INTEGER, BIGINT, 2**40), (SMALLINT, INTEGER, 2**20), (REAL, DOUBLE, 0.1)],
    ids=["integer", "smallint", "real"],
)
def test_a_narrower_child_column_never_hinders_its_parent(
    memory_shop: Database, child_type: SqlType, parent_type: SqlType, beyond: float
) -> None:
    """A parent whose key no child could have is free to go."""
    parent = table_of("p", column("id", parent_type))
    child = table_of(
        "c", column("id"), column("p", child_type), foreign_keys=(foreign_key("p", "p"),)
    )
    memory_shop.change_schema(lambda edit: (edit.create_table(parent), edit.create_table(child)))
    two = type(beyond)(2)
    put(memory_shop, "p", (beyond,), (two,))
    put(memory_shop, "c", (1, two))
    memory_shop.run_transaction(lambda txn: delete(txn, "p", beyond))
    refused(memory_shop, lambda txn: delete(txn, "p", two), "23503")


def test_a_foreign_key_that_is_not_enforced_is_not(memory_shop: Database) -> None:
    child = table_of(
        "c", column("id"), column("p"), foreign_keys=(foreign_key("p", "product", enforced=False),)
    )
    memory_shop.change_schema(lambda edit: edit.create_table(child))
    put(memory_shop, "c", (1, 42))
