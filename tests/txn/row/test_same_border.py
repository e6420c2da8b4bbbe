"""The tests of transactions and constraints, unchanged, on the row-atomic commit."""

from __future__ import annotations

import pytest

from belvedere.database import Database
from belvedere.errors import Retry, Unsupported
from belvedere.txn.border import SERIALIZABLE
from tests.txn.shop import column, insert, put, table_of
from tests.txn.test_constraints import *  # noqa: F403
from tests.txn.test_transaction import *  # noqa: F403

DIFFERENT = {
    # SERIALIZABLE is refused by name, see below.
    "test_write_skew_is_refused_when_serializable_and_allowed_otherwise",
    "test_a_range_that_was_read_must_not_change",
    "test_an_empty_range_and_an_absent_row_are_reads_too",
    "test_changes_outside_what_was_read_do_no_harm",
    "test_reads_through_an_index_are_validated",
    "test_a_serializable_reader_that_writes_nothing_never_fails",
    "test_rollback_to_keeps_locks_and_the_read_set",
    # A transaction under an older catalog is told to run again, see below.
    "test_a_unique_index_made_later_is_enforced_on_transactions_under_way",
}
for _name in DIFFERENT:
    del globals()[_name]


def test_serializable_is_refused_by_name(shop: Database) -> None:
    with pytest.raises(Unsupported, match="serializable isolation is not supported"):
        shop.begin(SERIALIZABLE)


def test_a_transaction_under_an_older_catalog_is_told_to_run_again(shop: Database) -> None:
    put(shop, "product", (1, "a"))
    txn = shop.begin()
    insert(txn, "product", (2, "a"))
    shop.change_schema(lambda edit: edit.create_table(table_of("other", column("id"))))
    with pytest.raises(Retry, match="catalog changed"):
        txn.commit()
    put(shop, "product", (2, "a"))
