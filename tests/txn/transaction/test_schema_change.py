"""Catalog changes beside each other and beside writers."""

from __future__ import annotations

import threading

import pytest

from belvedere import failpoints
from belvedere.catalog.definitions import ColumnDefinition, IndexDefinition, KeyPartDefinition
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import Index, ObjectState
from belvedere.database import Database
from belvedere.errors import InvalidInput, Retry, Unavailable
from belvedere.txn.transaction import table_rows
from belvedere.txn.transaction.schema_change import apply_edit
from belvedere.types import TEXT
from belvedere.views.backfill import index_backfill
from tests.txn.shop import (
    column,
    delete,
    entries,
    foreign_key,
    get,
    insert,
    key_space,
    put,
    scan,
    table,
    table_of,
    update,
)

BY_NAME = IndexDefinition("product", (KeyPartDefinition("name"),), name="by_name")


def test_two_edits_from_one_catalog_cannot_both_commit(shop: Database) -> None:
    first, second = shop.begin(), shop.begin()
    for name, txn in (("x", first), ("y", second)):
        edit = CatalogEdit(txn.catalog)
        edit.create_table(table_of(name, column("id")))
        apply_edit(txn, edit)
        if txn is first:
            first.commit()
            break
    edit = CatalogEdit(second.catalog)
    edit.create_table(table_of("y", column("id")))
    with pytest.raises(Retry):
        apply_edit(second, edit)
    second.rollback()
    assert shop.catalog.find_relation("y") is None


def test_an_edit_that_lost_starts_over_from_the_newer_catalog(shop: Database) -> None:
    names = []

    def create(edit: CatalogEdit) -> None:
        names.append(edit.before.find_relation("x") is not None)
        if len(names) == 1:
            shop.change_schema(lambda other: other.create_table(table_of("x", column("id"))))
        edit.create_table(table_of("y", column("id")))

    shop.change_schema(create)
    assert names == [False, True]
    assert (
        shop.catalog.require_relation(type(shop.catalog.tables[0]), "x").id
        != table(shop, "y").table.id
    )


def test_many_threads_change_the_schema_at_once(shop: Database) -> None:
    def create(number: int) -> None:
        shop.change_schema(lambda edit: edit.create_table(table_of(f"t{number}", column("id"))))

    threads = [threading.Thread(target=create, args=(n,)) for n in range(8)]
    before = shop.catalog.version
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = {table(shop, f"t{number}").table.id for number in range(8)}
    assert len(ids) == 8
    assert shop.catalog.version == before + 8


def test_a_refused_edit_changes_nothing(shop: Database) -> None:
    before, position = key_space(shop), shop.position

    def change(edit: CatalogEdit) -> None:
        edit.create_table(table_of("x", column("id")))
        edit.create_table(table_of("product", column("id")))

    with pytest.raises(InvalidInput):
        shop.change_schema(change)
    assert (key_space(shop), shop.position) == (before, position)


def test_an_open_transaction_keeps_its_catalog(shop: Database) -> None:
    put(shop, "product", (1, "a"))
    with shop.begin() as txn:
        id_ = table(shop, "product").table.id
        shop.change_schema(lambda edit: edit.drop_table(id_, cascade=True))
        assert scan(txn, "product") == [(1, "a")]
    with shop.begin() as later, pytest.raises(InvalidInput):
        scan(later, "product")


def test_a_write_to_a_table_dropped_meanwhile_loses(shop: Database) -> None:
    txn = shop.begin()
    insert(txn, "product", (1, "a"))
    id_ = table(shop, "product").table.id
    shop.change_schema(lambda edit: edit.drop_table(id_, cascade=True))
    with pytest.raises(Retry):
        txn.commit()


def test_a_write_to_a_table_changed_meanwhile_loses_and_then_wins(shop: Database) -> None:
    put(shop, "product", (1, "a"))
    txn = shop.begin()
    insert(txn, "product", (2, "b"))
    id_ = table(shop, "product").table.id
    wanted = ColumnDefinition("x", TEXT, not_null=True)  # rows from before it have none
    shop.change_schema(lambda edit: edit.add_column(id_, wanted))
    with pytest.raises(Retry):
        txn.commit()
    put(shop, "product", (2, "b", "x"))
    with shop.begin() as reader:
        assert scan(reader, "product") == [(1, "a", None), (2, "b", "x")]


def test_a_snapshot_from_before_a_new_column_never_sees_its_rows(shop: Database) -> None:
    put(shop, "product", (1, "a"))
    with shop.begin() as reader:
        id_ = table(shop, "product").table.id
        shop.change_schema(lambda edit: edit.add_column(id_, ColumnDefinition("x", TEXT)))
        shop.run_transaction(lambda txn: update(txn, "product", (1, "b", "x")))
        put(shop, "product", (2, "c", "y"))
        assert scan(reader, "product") == [(1, "a")]
        assert get(reader, "product", 2) is None


def test_an_index_made_meanwhile_is_maintained_by_whoever_commits_later(shop: Database) -> None:
    put(shop, "product", (1, "a"), (2, "b"))
    txn = shop.begin()
    insert(txn, "product", (3, "c"))
    delete(txn, "product", 1)
    shop.change_schema(lambda edit: edit.create_index(BY_NAME))
    txn.commit()
    with shop.begin() as reader:
        assert entries(reader, "by_name") == [("b", 2), ("c", 3)]


def test_an_index_is_filled_while_writers_go_on(
    shop: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two chunks of the build: rows before and after it change, appear and go."""
    monkeypatch.setattr(index_backfill, "CHUNK_ROWS_MAX", index_backfill.CHUNK_ROWS)
    put(shop, "product", *[(id_, f"n{id_}") for id_ in range(600)])
    chunks = []

    def meddle() -> None:
        chunks.append(len(chunks))
        at = len(chunks)
        if at > 3:
            return
        shop.run_transaction(lambda txn: update(txn, "product", (at, "early")))
        shop.run_transaction(lambda txn: update(txn, "product", (590 + at, "late")))
        shop.run_transaction(lambda txn: delete(txn, "product", 100 + at))
        shop.run_transaction(lambda txn: delete(txn, "product", 500 + at))
        put(shop, "product", (-at, "before"), (1000 + at, "after"))

    failpoints.arm("backfill.chunk", "call", call=meddle)
    shop.change_schema(lambda edit: edit.create_index(BY_NAME))
    failpoints.disarm_all()
    assert len(chunks) >= 3
    with shop.begin() as reader:
        expected = sorted((name, id_) for id_, name in scan(reader, "product"))
        assert entries(reader, "by_name") == expected


def test_a_unique_index_over_duplicates_is_refused_and_leaves_nothing(shop: Database) -> None:
    put(shop, "product", (1, "a"), (2, "a"))
    before = {k for k in key_space(shop) if k[1:5] != b"\0\0\0\x01"}
    wanted = IndexDefinition("product", (KeyPartDefinition("name"),), name="u", unique=True)
    with pytest.raises(InvalidInput) as refused:
        shop.change_schema(lambda edit: edit.create_index(wanted))
    assert refused.value.sqlstate == "23505"
    assert shop.catalog.find_relation("u") is None
    put(shop, "product", (3, "a"))
    shop.run_transaction(lambda txn: delete(txn, "product", 3))
    indexes = {item.id for item in shop.catalog.objects.values() if isinstance(item, Index)}
    left = {k for k in key_space(shop) if k[1:5] != b"\0\0\0\x01"} - before
    assert not {int.from_bytes(key[1:5]) for key in left} - indexes


def test_a_build_that_fails_takes_back_all_that_was_made_with_it(shop: Database) -> None:
    put(shop, "product", (1, "a"), (2, "a"))

    def change(edit: CatalogEdit) -> None:
        id_ = table(shop, "product").table.id
        edit.add_column(id_, column("up"))
        edit.add_foreign_key(id_, foreign_key("up", "customer"))
        edit.create_index(
            IndexDefinition("product", (KeyPartDefinition("name"),), name="u", unique=True)
        )

    with pytest.raises(InvalidInput) as refused:
        shop.change_schema(change)
    assert refused.value.sqlstate == "23505"
    assert all(
        index.state is not ObjectState.BUILDING
        for index in shop.catalog.table_indexes(table(shop, "product").table.id)
    )
    put(shop, "product", (3, "b", None))


def test_a_foreign_key_over_orphans_is_refused_and_leaves_nothing(shop: Database) -> None:
    shop.change_schema(lambda edit: edit.create_table(table_of("c", column("id"), column("up"))))
    id_ = table(shop, "c").table.id
    put(shop, "product", (1, "a"))
    put(shop, "c", (1, 1), (2, 404), (3, None))
    with pytest.raises(InvalidInput) as refused:
        shop.change_schema(lambda edit: edit.add_foreign_key(id_, foreign_key("up", "product")))
    assert refused.value.sqlstate == "23503"
    assert table(shop, "c").table.foreign_keys == ()
    assert shop.catalog.table_indexes(id_) == ()
    shop.run_transaction(lambda txn: delete(txn, "c", 2))
    shop.change_schema(lambda edit: edit.add_foreign_key(id_, foreign_key("up", "product")))
    with pytest.raises(InvalidInput):
        shop.run_transaction(lambda txn: delete(txn, "product", 1))


def test_a_foreign_key_holds_while_the_index_of_its_children_is_built(shop: Database) -> None:
    """The index does not know the row's child yet; the parent must stay all the same."""
    shop.change_schema(lambda edit: edit.create_table(table_of("c", column("id"), column("up"))))
    put(shop, "product", *[(id_, "p") for id_ in range(400)])
    put(shop, "c", *[(id_, id_) for id_ in range(399)])
    refused: list[str] = []

    def meddle() -> None:
        for id_ in (10, 390, 399):
            try:
                shop.run_transaction(lambda txn, id_=id_: delete(txn, "product", id_))
            except InvalidInput as error:
                refused.append(f"{id_} {error.sqlstate}")
        failpoints.disarm_all()

    failpoints.arm("backfill.chunk", "call", call=meddle)
    id_ = table(shop, "c").table.id
    shop.change_schema(lambda edit: edit.add_foreign_key(id_, foreign_key("up", "product")))
    assert refused == ["10 23503", "390 23503"]


def test_an_orphan_that_came_before_the_key_but_after_the_look_is_found(shop: Database) -> None:
    """A client looks for orphans first, then adds the key; one is put in between."""
    shop.change_schema(lambda edit: edit.create_table(table_of("c", column("id"), column("up"))))
    id_ = table(shop, "c").table.id
    late = shop.begin()
    insert(late, "c", (1, 404))

    def change(edit: CatalogEdit) -> None:
        if not late.ended:
            late.commit()
        edit.add_foreign_key(id_, foreign_key("up", "product"))

    with pytest.raises(InvalidInput) as refused:
        shop.change_schema(change)
    assert refused.value.sqlstate == "23503"
    assert table(shop, "c").table.foreign_keys == ()


def test_a_dropped_table_can_be_made_again_at_once(shop: Database) -> None:
    put(shop, "staff", (1, None))
    id_ = table(shop, "staff").table.id
    shop.change_schema(lambda edit: edit.drop_table(id_))
    shop.change_schema(lambda edit: edit.create_table(table_of("staff", column("id"))))
    with shop.begin() as reader:
        assert scan(reader, "staff") == []
    put(shop, "staff", (1,))


def test_a_row_of_an_unknown_table_is_refused(memory_shop: Database) -> None:
    into = table(memory_shop, "staff")
    memory_shop.change_schema(lambda edit: edit.drop_table(into.table.id))
    with pytest.raises(InvalidInput) as refused:
        memory_shop.run_transaction(lambda txn: table_rows.insert_row(txn, into, (1, None)))
    assert refused.value.sqlstate == "42P01"


def test_a_catalog_change_that_dies_before_its_commit_leaves_no_trace(shop: Database) -> None:
    before, position = key_space(shop), shop.position
    failpoints.arm("catalog.before", "raise")
    with pytest.raises(Unavailable):
        shop.change_schema(lambda edit: edit.create_table(table_of("x", column("id"))))
    failpoints.disarm_all()
    assert (key_space(shop), shop.position) == (before, position)
    shop.change_schema(lambda edit: edit.create_table(table_of("x", column("id"))))
