"""A backup taken back to an earlier position, past changes of the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from belvedere.catalog.definitions import (
    ColumnDefinition,
    ForeignKeyDefinition,
    IndexDefinition,
    KeyPartDefinition,
    TableDefinition,
    UniqueDefinition,
)
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import Index, ObjectState
from belvedere.database import Database, restore_backup
from belvedere.errors import InvalidInput
from belvedere.txn.transaction import table_rows
from belvedere.txn.transaction.schema_change import apply_edit
from belvedere.types import BIGINT, INTEGER, TEXT

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


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "store") as opened:
        opened.change_schema(lambda edit: edit.create_table(PARENT))
        opened.change_schema(lambda edit: edit.create_table(CHILD))
        yield opened


def insert(database: Database, table: str, *values: object) -> int:
    with database.begin() as transaction:
        table_rows.insert_row(transaction, database.get_compiled_table(table), values)
        return transaction.commit().position


def contents(database: Database) -> dict[bytes, bytes]:
    """Rows and index entries of everything that is not dropped."""
    catalog = database.catalog
    live = [item.id for item in catalog.tables]
    live += [index.id for table in catalog.tables for index in catalog.table_indexes(table.id)]
    return {
        key: value
        for id_ in live
        for batch in database.store.scan(*_range(id_))
        for key, value in batch
    }


def _range(id_: int) -> tuple[bytes, bytes]:
    return b"\x10" + id_.to_bytes(4), b"\x10" + (id_ + 1).to_bytes(4)


def restored(database: Database, tmp_path: Path, position: int) -> Database:
    database.back_up(tmp_path / "backup")
    assert restore_backup(tmp_path / "backup", tmp_path / "restored", position) == position
    return Database.open(tmp_path / "restored")


def test_rows_older_and_younger_than_an_added_column(database: Database, tmp_path: Path) -> None:
    position = insert(database, "parent", 1, "one")
    before = contents(database)
    parent = database.get_compiled_table("parent").table.id
    database.change_schema(lambda edit: edit.add_column(parent, ColumnDefinition("more", INTEGER)))
    insert(database, "parent", 2, "two", 22)
    with restored(database, tmp_path, position) as earlier:
        assert contents(earlier) == before
        assert len(earlier.get_compiled_table("parent").table.columns) == 2


def test_the_beginning_is_an_empty_store(database: Database, tmp_path: Path) -> None:
    insert(database, "parent", 1, "one")
    with restored(database, tmp_path, 0) as earlier:
        assert earlier.position == 0
        assert earlier.catalog.tables == ()
        earlier.change_schema(lambda edit: edit.create_table(PARENT))
        assert insert(earlier, "parent", 1, "one") == 2


def test_dropped_index_comes_back_beside_foreign_keys(database: Database, tmp_path: Path) -> None:
    by_parent = IndexDefinition("child", (KeyPartDefinition("parent"),), "by_parent")
    database.change_schema(lambda edit: edit.create_index(by_parent))
    insert(database, "parent", 1, "one")
    position = insert(database, "child", 1, 1)
    before = contents(database)
    insert(database, "child", 3, 1)  # leaves an entry that the drop keeps
    index = database.catalog.require_relation(Index, "by_parent")
    database.change_schema(lambda edit: edit.drop_index(index.id))
    insert(database, "child", 2, 1)
    with restored(database, tmp_path, position) as earlier:
        assert contents(earlier) == before


def test_unique_index_that_never_was_ready_is_gone(database: Database, tmp_path: Path) -> None:
    """Two rows that the index would refuse: its build fails, and going back into it does not."""
    insert(database, "parent", 1, "one")
    for child in (1, 2):
        insert(database, "child", child, 1)
    wanted = IndexDefinition("child", (KeyPartDefinition("parent"),), "doomed", unique=True)
    with pytest.raises(InvalidInput, match="duplicate"):
        database.change_schema(lambda edit: edit.create_index(wanted))
    building = next(
        record.position
        for record in database.log.read(0)
        if any(b"building" in (change.new or b"") for change in record.changes())
    )
    with restored(database, tmp_path, building) as earlier:
        assert earlier.catalog.find_relation("doomed") is None
        assert len(contents(earlier)) == len(contents(database))


def test_rows_from_before_a_unique_index_need_not_be_unique(
    database: Database, tmp_path: Path
) -> None:
    insert(database, "parent", 1, "one")
    for child in (1, 2):
        position = insert(database, "child", child, 1)
    before = contents(database)
    with database.begin() as transaction:
        table_rows.delete_row(transaction, database.get_compiled_table("child"), (2, 1))
    wanted = IndexDefinition("child", (KeyPartDefinition("parent"),), "later", unique=True)
    database.change_schema(lambda edit: edit.create_index(wanted))
    with restored(database, tmp_path, position) as earlier:
        assert contents(earlier) == before
        assert earlier.catalog.find_relation("later") is None


def test_index_is_filled_where_it_became_ready(database: Database, tmp_path: Path) -> None:
    insert(database, "parent", 1, "one")
    wanted = IndexDefinition("parent", (KeyPartDefinition("name"),), "by_name")
    database.change_schema(lambda edit: edit.create_index(wanted))
    index = database.catalog.require_relation(Index, "by_name")
    assert index.state is ObjectState.READY
    position, before = database.position, contents(database)
    with database.begin() as transaction:
        edit = CatalogEdit(transaction.catalog)
        edit.drop_index(index.id)
        apply_edit(transaction, edit)
    with restored(database, tmp_path, position) as earlier:
        assert contents(earlier) == before
