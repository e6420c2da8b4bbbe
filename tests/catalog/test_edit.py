"""Catalog edits: every error, what they leave behind, and that errors leave nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from belvedere.catalog import catalog, model
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.definitions import (
    CheckDefinition,
    ColumnDefinition,
    ForeignKeyDefinition,
    IndexDefinition,
    KeyPartDefinition,
    SequenceDefinition,
    TableDefinition,
    UniqueDefinition,
    ViewDefinition,
)
from belvedere.catalog.edit import COLUMNS_MAX, ROW_ID, CatalogEdit
from belvedere.catalog.model import Index, Maintenance, ObjectState, Sequence, Table, View
from belvedere.catalog.relation_codecs import compiled_table, missing_value
from belvedere.errors import InvalidInput
from belvedere.types import BIGINT, INTEGER, TEXT, UNKNOWN, array_of, varchar_type

ID = ColumnDefinition("id", BIGINT)


def parent(**more: object) -> TableDefinition:
    columns = (ID, ColumnDefinition("code", TEXT), ColumnDefinition("n", INTEGER))
    return TableDefinition("parent", columns, ("id",), **more)  # type: ignore[arg-type]


def child(key: ForeignKeyDefinition | None = None, **more: object) -> TableDefinition:
    columns = (ID, ColumnDefinition("up", BIGINT, not_null=True), ColumnDefinition("code", TEXT))
    keys = (key or ForeignKeyDefinition(("up",), "parent"),)
    return TableDefinition("child", columns, ("id",), foreign_keys=keys, **more)  # type: ignore[arg-type]


def applied(before: Catalog, *changes: Callable[[CatalogEdit], object]) -> Catalog:
    """The catalog after one edit, by way of what is stored."""
    edit = CatalogEdit(before)
    for change in changes:
        change(edit)
    objects = {
        id_: None if item is None else model.decode(model.encode(item))
        for id_, item in edit.changed_objects().items()
    }
    after = before.with_objects(objects)
    assert after.objects == {**edit.catalog.objects, model.HEAD_ID: after.head}
    return after


@pytest.fixture
def two() -> Catalog:
    """parent with a unique code, and child below it."""
    unique = parent(uniques=(UniqueDefinition(("code",)),))
    return applied(
        catalog.empty_catalog(),
        lambda edit: edit.create_table(unique),
        lambda edit: edit.create_table(child()),
    )


def id_of(found: Catalog | CatalogEdit, name: str) -> int:
    holder = found.catalog if isinstance(found, CatalogEdit) else found
    item = holder.find_relation(name)
    assert item is not None
    return item.id


def refused(
    before: Catalog, change: Callable[[CatalogEdit], object], sqlstate: str
) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        change(CatalogEdit(before))
    assert caught.value.sqlstate == sqlstate
    return caught.value


# -- versions and ids -------------------------------------------------------------------------


def test_every_edit_writes_the_head_and_what_it_touched_alone(two: Catalog) -> None:
    edit = CatalogEdit(two)
    edit.add_column(id_of(two, "child"), ColumnDefinition("x", TEXT))
    changed = edit.changed_objects()
    assert set(changed) == {model.HEAD_ID, id_of(two, "child")}
    assert {item.version for item in changed.values() if item} == {two.version + 1}
    assert two.version == 1
    assert CatalogEdit(two).changed_objects() == {}  # and no head when it touched nothing


def test_ids_are_never_given_twice(two: Catalog) -> None:
    taken = set(two.objects)
    gone = applied(two, lambda edit: edit.drop_table(id_of(edit, "parent"), cascade=True))
    later = applied(gone, lambda edit: edit.create_table(parent()))
    assert id_of(later, "parent") not in taken
    assert later.head.next_id > max(later.objects)


def test_what_was_made_and_removed_in_one_edit_never_was(two: Catalog) -> None:
    edit = CatalogEdit(two)
    id_ = edit.create_sequence(SequenceDefinition("s"))
    edit.drop_sequence(id_)
    assert edit.changed_objects() == {}


# -- creating ---------------------------------------------------------------------------------


def test_a_table_without_a_key_gets_a_hidden_one() -> None:
    after = applied(catalog.empty_catalog(), lambda e: e.create_table(TableDefinition("t", (ID,))))
    table = after.require_relation(Table, "t")
    assert [(c.name, c.hidden) for c in table.columns] == [("id", False), (ROW_ID, True)]
    assert table.primary_key == (1,)
    assert table.columns[1].not_null


def test_serial_and_identity_columns_own_a_sequence_in_their_schema() -> None:
    columns = (
        ColumnDefinition("a", BIGINT, serial=True),
        ColumnDefinition("b", BIGINT, identity="always"),
    )

    def create(edit: CatalogEdit) -> None:
        edit.create_schema("s")
        edit.create_table(TableDefinition("t", columns, schema="s"))
        id_ = edit.catalog.require_relation(Table, "t", "s").id
        edit.add_column(id_, ColumnDefinition("c", BIGINT, serial=True))

    after = applied(catalog.empty_catalog(), create)
    table = after.require_relation(Table, "t", "s")
    for name, column in zip("abc", table.columns[:2] + table.columns[3:], strict=True):
        sequence = after.require_relation(Sequence, f"t_{name}_seq", "s")
        assert (column.sequence, column.not_null) == (sequence.id, True)
        assert sequence.owner == table.id


def test_indexes_of_a_new_table_are_ready_and_of_an_old_one_are_built(two: Catalog) -> None:
    assert two.require_relation(Index, "parent_code_key").state is ObjectState.READY
    wanted = IndexDefinition("child", (KeyPartDefinition("code"),))
    after = applied(two, lambda edit: edit.create_index(wanted))
    assert after.require_relation(Index, "child_code_idx").state is ObjectState.BUILDING


def test_a_foreign_key_uses_the_indexes_there_are(two: Catalog) -> None:
    [key] = two.require_relation(Table, "child").foreign_keys
    assert key.parent_index is None
    assert key.index == id_of(two, "child_up_children")
    index = two.require_relation(Index, "child_up_children")
    assert index.hidden

    def second(edit: CatalogEdit) -> None:
        child_id = id_of(edit, "child")
        edit.add_foreign_key(child_id, ForeignKeyDefinition(("up",), "parent", name="again"))
        by_code = ForeignKeyDefinition(("code",), "parent", ("code",))
        edit.add_foreign_key(child_id, by_code)

    after = applied(two, second)
    _, again, by_code = after.require_relation(Table, "child").foreign_keys
    assert again.index == key.index, "one index serves both"
    assert by_code.parent_index == id_of(after, "parent_code_key")
    assert by_code.name == "child_code_fkey"


@pytest.mark.parametrize(
    "unfit",
    [
        {"unique": True},
        {"where": "code > 'a'"},
        {"maintenance": Maintenance.DEFERRED},
        {"parts": (KeyPartDefinition("code"), KeyPartDefinition("up"))},
        {"parts": (KeyPartDefinition(expression="up", type=BIGINT),)},
    ],
    ids=lambda unfit: next(iter(unfit)),
)
def test_an_index_that_cannot_find_all_children_at_once_does_not_serve(
    unfit: dict[str, object],
) -> None:
    fields = {"table": "child", "parts": (KeyPartDefinition("up"),), "name": "mine"} | unfit

    def create(edit: CatalogEdit) -> None:
        edit.create_table(parent())
        id_ = edit.create_table(msgspec_replace(child(), foreign_keys=()))
        edit.create_index(IndexDefinition(**fields))  # type: ignore[arg-type]
        edit.add_foreign_key(id_, ForeignKeyDefinition(("up",), "parent"))

    after = applied(catalog.empty_catalog(), create)
    assert after.require_relation(Table, "child").foreign_keys[0].index != id_of(after, "mine")


def msgspec_replace(definition: TableDefinition, **changes: object) -> TableDefinition:
    fields = {name: getattr(definition, name) for name in definition.__dataclass_fields__}
    return TableDefinition(**(fields | changes))


def test_names_are_made_up_free_short_and_whole(two: Catalog) -> None:
    wanted = IndexDefinition("child", (KeyPartDefinition("code"),))
    after = applied(two, lambda edit: [edit.create_index(wanted) for _ in range(3)])
    names = {index.name for index in after.table_indexes(id_of(after, "child"))}
    assert names == {"child_up_children", *(f"child_code_idx{n}" for n in ("", "1", "2"))}
    long = "é" * 31
    columns = (ColumnDefinition(long, BIGINT), ColumnDefinition("up", BIGINT))
    definition = TableDefinition(
        long,
        columns,
        (long,),
        uniques=(UniqueDefinition((long,)), UniqueDefinition((long,))),
        checks=(CheckDefinition("a"), CheckDefinition("b"), CheckDefinition("c")),
        foreign_keys=(ForeignKeyDefinition(("up",), long),),
    )
    after = applied(catalog.empty_catalog(), lambda edit: edit.create_table(definition))
    table = after.require_relation(Table, long)
    made_up = [index.name for index in after.table_indexes(table.id)]
    made_up += [table.primary_key_name, *(check.name for check in table.checks)]
    made_up += [key.name for key in table.foreign_keys]
    assert len(set(made_up)) == len(made_up) == 8
    assert all(0 < len(name.encode()) <= 63 for name in made_up)


# -- what is refused --------------------------------------------------------------------------

REFUSED: dict[str, tuple[str, Callable[[CatalogEdit], object]]] = {
    "empty name": ("42602", lambda e: e.create_schema("")),
    "long name": ("42602", lambda e: e.create_schema("é" * 32)),
    "zero byte in a name": ("42602", lambda e: e.create_schema("a\0b")),
    "schema twice": ("42P06", lambda e: e.create_schema("public")),
    "unknown schema": ("3F000", lambda e: e.create_table(parent(schema="nowhere"))),
    "table twice": ("42P07", lambda e: e.create_table(parent())),
    "table named like an index": (
        "42P07",
        lambda e: e.create_table(TableDefinition("parent_code_key", (ID,))),
    ),
    "sequence named like a table": (
        "42P07",
        lambda e: e.create_sequence(SequenceDefinition("parent")),
    ),
    "view named like a table": ("42P07", lambda e: e.create_view(ViewDefinition("child", "", ()))),
    "sequence that stands still": (
        "22023",
        lambda e: e.create_sequence(SequenceDefinition("s", increment=0)),
    ),
    "sequence outside its bounds": (
        "22023",
        lambda e: e.create_sequence(SequenceDefinition("s", start=0)),
    ),
    "sequence beyond 64 bits": (
        "22023",
        lambda e: e.create_sequence(SequenceDefinition("s", maximum=2**63)),
    ),
    "column twice": ("42701", lambda e: e.create_table(TableDefinition("t", (ID, ID)))),
    "column of an array": (
        "42P16",
        lambda e: e.create_table(TableDefinition("t", (ColumnDefinition("a", array_of(TEXT)),))),
    ),
    "column of no type": (
        "42P16",
        lambda e: e.add_column(id_of(e, "child"), ColumnDefinition("a", UNKNOWN)),
    ),
    "too many columns": (
        "54011",
        lambda e: e.create_table(
            TableDefinition(
                "t", tuple(ColumnDefinition(f"c{n}", BIGINT) for n in range(COLUMNS_MAX + 1))
            )
        ),
    ),
    "too many columns in the key": (
        "54011",
        lambda e: e.create_table(
            TableDefinition(
                "t",
                tuple(ColumnDefinition(f"c{n}", BIGINT) for n in range(33)),
                tuple(f"c{n}" for n in range(33)),
            )
        ),
    ),
    "too many columns in an index": (
        "54011",
        lambda e: e.create_index(IndexDefinition("child", (KeyPartDefinition("up"),) * 33)),
    ),
    "key of an unknown column": (
        "42703",
        lambda e: e.create_table(TableDefinition("t", (ID,), ("nope",))),
    ),
    "key with a column twice": (
        "42701",
        lambda e: e.create_table(TableDefinition("t", (ID,), ("id", "id"))),
    ),
    "column added twice": (
        "42701",
        lambda e: e.add_column(id_of(e, "child"), ColumnDefinition("up", TEXT)),
    ),
    "column of an unknown table": ("42P01", lambda e: e.add_column(999, ID)),
    "unknown column dropped": ("42703", lambda e: e.drop_column(id_of(e, "child"), "nope")),
    "key column dropped": ("2BP01", lambda e: e.drop_column(id_of(e, "child"), "id")),
    "renamed to a taken name": ("42P07", lambda e: e.rename_relation(id_of(e, "child"), "parent")),
    "index of an unknown table": (
        "42P01",
        lambda e: e.create_index(IndexDefinition("nope", (KeyPartDefinition("id"),))),
    ),
    "index of an index": (
        "42809",
        lambda e: e.create_index(IndexDefinition("parent_code_key", (KeyPartDefinition("id"),))),
    ),
    "index of an unknown column": (
        "42703",
        lambda e: e.create_index(IndexDefinition("child", (KeyPartDefinition("nope"),))),
    ),
    "index that includes an unknown column": (
        "42703",
        lambda e: e.create_index(
            IndexDefinition("child", (KeyPartDefinition("up"),), include=("nope",))
        ),
    ),
    "index name taken": (
        "42P07",
        lambda e: e.create_index(IndexDefinition("child", (KeyPartDefinition("up"),), "parent")),
    ),
    "check twice": (
        "42710",
        lambda e: [e.add_check(id_of(e, "child"), CheckDefinition("a", "c")) for _ in range(2)],
    ),
    "foreign key twice": (
        "42710",
        lambda e: e.add_foreign_key(id_of(e, "child"), ForeignKeyDefinition(("up",), "parent")),
    ),
    "foreign key to nothing": (
        "42P01",
        lambda e: e.add_foreign_key(id_of(e, "child"), ForeignKeyDefinition(("up",), "nope")),
    ),
    "foreign key of an unknown column": (
        "42703",
        lambda e: e.add_foreign_key(id_of(e, "child"), ForeignKeyDefinition(("x",), "parent")),
    ),
    "foreign key to an unknown column": (
        "42703",
        lambda e: e.add_foreign_key(
            id_of(e, "child"), ForeignKeyDefinition(("up",), "parent", ("x",))
        ),
    ),
    "foreign key to what is not unique": (
        "42830",
        lambda e: e.add_foreign_key(
            id_of(e, "child"), ForeignKeyDefinition(("up",), "parent", ("n",))
        ),
    ),
    "foreign key of the wrong width": (
        "42830",
        lambda e: e.add_foreign_key(
            id_of(e, "child"), ForeignKeyDefinition(("up", "code"), "parent")
        ),
    ),
    "foreign key of another type": (
        "42804",
        lambda e: e.add_foreign_key(id_of(e, "child"), ForeignKeyDefinition(("code",), "parent")),
    ),
    "foreign key to a hidden row id": (
        "42830",
        lambda e: (
            e.create_table(TableDefinition("bare", (ID,))),
            e.add_foreign_key(id_of(e, "child"), ForeignKeyDefinition(("up",), "bare")),
        ),
    ),
    "unknown foreign key dropped": (
        "42704",
        lambda e: e.drop_foreign_key(id_of(e, "child"), "nope"),
    ),
    "unknown root": ("42704", lambda e: e.set_root(id_of(e, "child"), "nope")),
    "root of a new table unknown": (
        "42704",
        lambda e: e.create_table(TableDefinition("t", (ID,), ("id",), root="nope")),
    ),
    "parent dropped": ("2BP01", lambda e: e.drop_table(id_of(e, "parent"))),
    "index of a foreign key dropped": (
        "2BP01",
        lambda e: e.drop_index(id_of(e, "child_up_children")),
    ),
    "unknown table dropped": ("42P01", lambda e: e.drop_table(999)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_edit_that_cannot_be_right_is_refused(two: Catalog, what: str) -> None:
    sqlstate, change = REFUSED[what]
    refused(two, change, sqlstate)


def test_a_nullable_foreign_key_is_no_root() -> None:
    columns = (ID, ColumnDefinition("up", BIGINT))
    key = ForeignKeyDefinition(("up",), "parent", name="up")
    wanted = TableDefinition("t", columns, ("id",), foreign_keys=(key,), root="up")
    refused(
        catalog.empty_catalog(),
        lambda edit: (edit.create_table(parent()), edit.create_table(wanted)),
        "42704",
    )


# -- changing ---------------------------------------------------------------------------------


def test_an_added_column_reads_as_its_missing_value(two: Catalog) -> None:
    id_ = id_of(two, "parent")
    old = compiled_table(two, id_)
    wanted = ColumnDefinition("x", varchar_type(10), missing="was")
    after = applied(two, lambda edit: edit.add_column(id_, wanted))
    new = compiled_table(after, id_)
    assert new.decode(old.encode((1, "a", 2))) == (1, "a", 2, "was")
    assert missing_value(new.table.columns[3]) == "was"


def test_a_dropped_column_takes_its_indexes_foreign_keys_and_sequence_with_it(two: Catalog) -> None:
    def extend(edit: CatalogEdit) -> None:
        id_ = id_of(edit, "child")
        edit.create_index(
            IndexDefinition("child", (KeyPartDefinition("code"),), "covers", include=("up",))
        )
        edit.create_index(IndexDefinition("child", (KeyPartDefinition("code"),), "stays"))
        edit.add_column(id_, ColumnDefinition("s", BIGINT, serial=True))
        edit.set_root(id_, "child_up_fkey")

    before = applied(two, extend)
    id_ = id_of(before, "child")
    after = applied(before, lambda e: (e.drop_column(id_, "up"), e.drop_column(id_, "s")))
    table = after.require_relation(Table, "child")
    assert table.foreign_keys == ()
    assert table.root is None
    assert [index.name for index in after.table_indexes(id_)] == ["stays"]
    assert after.find_relation("child_s_seq") is None
    assert [c.slot for c in table.columns] == [0, 1, 2, 3]
    assert [c.name for c in compiled_table(after, id_).live_columns] == ["id", "code"]
    renewed = applied(after, lambda e: e.add_column(id_, ColumnDefinition("up", TEXT)))
    assert renewed.require_relation(Table, "child").columns[-1].slot == 4


def test_a_column_that_others_refer_to_is_not_dropped(two: Catalog) -> None:
    key = ForeignKeyDefinition(("code",), "parent", ("code",))
    after = applied(two, lambda edit: edit.add_foreign_key(id_of(edit, "child"), key))
    error = refused(after, lambda edit: edit.drop_column(id_of(edit, "parent"), "code"), "2BP01")
    assert error.detail == "constraint child_code_fkey on child"


def test_a_renamed_table_is_found_by_its_new_name_alone(two: Catalog) -> None:
    id_ = id_of(two, "child")
    after = applied(two, lambda edit: edit.rename_relation(id_, "kid"))
    assert after.find_relation("child") is None
    assert id_of(after, "kid") == id_


# -- dropping ---------------------------------------------------------------------------------


def test_a_dropped_table_keeps_its_object_and_frees_its_names() -> None:
    columns = (ColumnDefinition("id", BIGINT, serial=True),)
    wanted = TableDefinition("t", columns, ("id",), uniques=(UniqueDefinition(("id",)),))
    before = applied(catalog.empty_catalog(), lambda edit: edit.create_table(wanted))
    id_ = id_of(before, "t")
    after = applied(before, lambda edit: edit.drop_table(id_))
    table = after.get(id_)
    assert isinstance(table, Table)
    assert (table.state, table.dropped_at) == (ObjectState.DROPPED, after.version)
    assert after.tables == ()
    assert after.table_indexes(id_) == ()
    with pytest.raises(InvalidInput, match="does not exist"):
        after.table(id_)
    again = applied(after, lambda edit: edit.create_table(wanted))
    assert again.require_relation(Sequence, "t_id_seq").owner == id_of(again, "t")


def test_cascade_drops_foreign_keys_with_their_indexes_and_views(two: Catalog) -> None:
    parent_id = id_of(two, "parent")

    def views(edit: CatalogEdit) -> None:
        first = edit.create_view(ViewDefinition("v", "", (("a", TEXT),), (parent_id,)))
        edit.create_view(ViewDefinition("w", "", (("a", TEXT),), (parent_id,), (first,)))

    before = applied(two, views)
    assert refused(before, lambda e: e.drop_table(parent_id), "2BP01").detail == (
        "constraint child_up_fkey on child, view v, view w"
    )
    after = applied(before, lambda edit: edit.drop_table(parent_id, cascade=True))
    assert [table.name for table in after.tables] == ["child"]
    assert after.require_relation(Table, "child").foreign_keys == ()
    assert after.table_indexes(id_of(after, "child")) == ()
    assert after.views == ()


def test_dropping_an_index_by_force_drops_what_stands_on_it(two: Catalog) -> None:
    key = ForeignKeyDefinition(("code",), "parent", ("code",))
    before = applied(two, lambda edit: edit.add_foreign_key(id_of(edit, "child"), key))
    after = applied(
        before, lambda edit: edit.drop_index(id_of(edit, "parent_code_key"), cascade=True)
    )
    assert [k.name for k in after.require_relation(Table, "child").foreign_keys] == [
        "child_up_fkey"
    ]
    assert [i.name for i in after.table_indexes(id_of(after, "child"))] == ["child_up_children"]


def test_an_index_serving_two_foreign_keys_stays_for_the_second(two: Catalog) -> None:
    again = ForeignKeyDefinition(("up",), "parent", name="again")
    before = applied(two, lambda edit: edit.add_foreign_key(id_of(edit, "child"), again))
    id_ = id_of(before, "child")
    after = applied(before, lambda edit: edit.drop_foreign_key(id_, "child_up_fkey"))
    assert [i.name for i in after.table_indexes(id_)] == ["child_up_children"]
    last = applied(after, lambda edit: edit.drop_foreign_key(id_, "again"))
    assert last.table_indexes(id_) == ()


def test_only_dropped_objects_can_be_forgotten(two: Catalog) -> None:
    with pytest.raises(AssertionError):
        CatalogEdit(two).purge_dropped([id_of(two, "child")])
    id_ = id_of(two, "child")
    dropped = applied(two, lambda edit: edit.drop_table(id_))
    forgotten = applied(dropped, lambda edit: edit.purge_dropped([id_]))
    assert forgotten.get(id_) is None


def test_a_view_starts_building_and_a_deferred_one_has_a_group(two: Catalog) -> None:
    def create(edit: CatalogEdit) -> None:
        edit.create_view(ViewDefinition("v", "q", (("a", TEXT),)))
        edit.create_view(ViewDefinition("w", "q", (("a", TEXT),), maintenance=Maintenance.DEFERRED))

    after = applied(two, create)
    assert after.require_relation(View, "v").state is ObjectState.BUILDING
    assert after.require_relation(View, "v").group == 0
    assert after.require_relation(View, "w").group > 0
    ready = applied(after, lambda edit: edit.set_state(id_of(edit, "v"), ObjectState.READY))
    assert ready.require_relation(View, "v").state is ObjectState.READY
