"""Where the row-atomic commit differs from the batch-atomic one: by name, and on purpose.

Everything else is shown by the tests of transactions themselves, which run on both (tests/protocols
has the list of those that do not)."""

from __future__ import annotations

from pathlib import Path

import pytest

from belvedere.config import Config
from belvedere.database import Database
from belvedere.errors import Retry, Unavailable, Unsupported
from belvedere.txn.contracts import SERIALIZABLE
from tests.txn.row_atomic.nodes import open_node
from tests.txn.shop import column, get, insert, put, table_of


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


def test_batches_and_backups_belong_to_other_stores(shop: Database, tmp_path: Path) -> None:
    with pytest.raises(Unsupported):
        shop.back_up(tmp_path / "copy")
    with pytest.raises(Unsupported):
        shop.store.get(b"x")


def test_a_position_nobody_has_taken_does_not_come(shop: Database) -> None:
    with pytest.raises(Unavailable) as caught:
        shop.begin(at_least=shop.position + 10, wait_s=0.0)
    assert caught.value.sqlstate == "57014"
    assert put(shop, "product", (1, "a")).position == shop.position, "no position was closed"


def test_a_token_of_one_node_is_good_on_another() -> None:
    first = open_node()
    first.change_schema(lambda edit: edit.create_table(table_of("t", column("id"))))
    committed = first.run_and_get_commit(lambda txn: insert(txn, "t", (1,)))[1]
    token = first.position_to_token(committed.position)
    second = Database.on_cells(first.engine._opened, Config())  # type: ignore[attr-defined]
    assert second.store_id == first.store_id
    with second.begin(at_least=second.token_to_position(token)) as reader:
        assert get(reader, "t", 1) == (1,)
    with pytest.raises(Exception, match="token of another store"):
        open_node().token_to_position(token)
