"""The catalog at one version: look-ups, lists, and what a changed one shares."""

from __future__ import annotations

import pytest

from belvedere.catalog import catalog, model
from belvedere.catalog.catalog import PUBLIC_ID, Catalog
from belvedere.catalog.definitions import (
    ColumnDefinition,
    ForeignKeyDefinition,
    IndexDefinition,
    KeyPartDefinition,
    TableDefinition,
    UniqueDefinition,
    ViewDefinition,
)
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.foreign_key_graph import (
    child_foreign_keys,
    parent_foreign_key,
    root_path,
    root_table,
)
from belvedere.catalog.model import Index, ObjectState, Table, View
from belvedere.catalog.relation_codecs import compiled_index, compiled_table
from belvedere.errors import Corruption, InvalidInput
from belvedere.types import BIGINT, TEXT, numeric_type

ID = ColumnDefinition("id", BIGINT)
UP = ColumnDefinition("up", BIGINT, not_null=True)


def below(name: str, parent: str) -> TableDefinition:
    return TableDefinition(
        name, (ID, UP), ("id",), foreign_keys=(ForeignKeyDefinition(("up",), parent),)
    )


@pytest.fixture
def chain() -> Catalog:
    """a <- b <- c, a unique column and an index."""
    edit = CatalogEdit(catalog.empty_catalog())
    columns = (ID, ColumnDefinition("code", TEXT))
    edit.create_table(
        TableDefinition("a", columns, ("id",), uniques=(UniqueDefinition(("code",)),))
    )
    edit.create_table(below("b", "a"))
    edit.create_table(below("c", "b"))
    edit.create_index(IndexDefinition("a", (KeyPartDefinition("code"),)))
    edit.create_view(
        ViewDefinition("v", "", (("x", TEXT),), (edit.catalog.require_relation(Table, "a").id,))
    )
    return catalog.empty_catalog().with_objects(edit.changed_objects())


def test_a_new_store_has_one_schema_and_nothing_in_it() -> None:
    empty = catalog.empty_catalog()
    assert [schema.name for schema in empty.schemas] == ["public"]
    assert empty.version == 0
    assert empty.tables == ()
    assert empty.head.next_id == model.FIRST_USER_ID


def test_objects_are_found_by_name_and_kind(chain: Catalog) -> None:
    assert chain.require_relation(Table, "a").schema == PUBLIC_ID
    assert chain.find_relation("nope") is None
    with pytest.raises(InvalidInput) as wrong_kind:
        chain.require_relation(Table, "a_code_key")
    assert (wrong_kind.value.message, wrong_kind.value.sqlstate) == ("not a table", "42809")
    with pytest.raises(InvalidInput) as near:
        chain.require_relation(Index, "a_code_kez")
    assert near.value.sqlstate == "42704"
    assert near.value.hint == "did you mean a_code_key, a_code_idx?"
    with pytest.raises(InvalidInput) as far:
        chain.require_relation(View, "zzzzzz")
    assert far.value.hint is None
    with pytest.raises(InvalidInput) as nowhere:
        chain.find_relation("a", "nowhere")
    assert nowhere.value.sqlstate == "3F000"


def test_lists_hold_what_is_live(chain: Catalog) -> None:
    a = chain.require_relation(Table, "a").id
    assert [table.name for table in chain.tables] == ["a", "b", "c"]
    assert [index.name for index in chain.table_indexes(a)] == ["a_code_key", "a_code_idx"]
    assert [view.name for view in chain.dependent_views(a)] == ["v"]
    assert chain.table_indexes(999) == ()
    assert chain.dependent_views(999) == ()
    view = chain.require_relation(View, "v")
    index = chain.require_relation(Index, "a_code_idx")
    edit = CatalogEdit(chain)
    edit.drop_view(view.id)
    edit.drop_index(index.id)
    later = chain.with_objects(edit.changed_objects())
    assert later.views == ()
    assert later.dependent_views(a) == ()
    assert [one.name for one in later.table_indexes(a)] == ["a_code_key"]
    dropped = later.get(index.id)
    assert isinstance(dropped, Index)
    assert dropped.state is ObjectState.DROPPED


def test_a_successor_shares_what_did_not_change(chain: Catalog) -> None:
    a, b = chain.require_relation(Table, "a").id, chain.require_relation(Table, "b").id
    key = chain.require_relation(Index, "a_code_key").id
    compiled = {id_: compiled_table(chain, id_) for id_ in (a, b)}
    entry = compiled_index(chain, key)
    edit = CatalogEdit(chain)
    edit.add_column(a, ColumnDefinition("x", TEXT))
    later = chain.with_objects(edit.changed_objects())
    assert later.objects[b] is chain.objects[b]
    assert compiled_table(later, b) is compiled[b]
    assert compiled_table(later, a) is not compiled[a]
    assert compiled_table(chain, a) is compiled[a]
    assert compiled_index(later, key).key.columns == entry.key.columns
    assert later.derived_cache == {}


def test_what_is_not_an_index_cannot_be_compiled_as_one(chain: Catalog) -> None:
    with pytest.raises(Corruption):
        compiled_index(chain, chain.require_relation(Table, "a").id)


def test_every_object_survives_its_encoding(chain: Catalog) -> None:
    for item in chain.objects.values():
        assert model.decode(model.encode(item)) == item
    type_ = numeric_type(10, 2)
    assert model.TypeName.from_type(type_).to_type() == type_


def test_the_graph_of_foreign_keys(chain: Catalog) -> None:
    a, b, c = (chain.require_relation(Table, name) for name in "abc")
    assert [(t.name, k.name) for t, k in child_foreign_keys(chain, a.id)] == [("b", "b_up_fkey")]
    assert child_foreign_keys(chain, c.id) == ()
    assert parent_foreign_key(a) is None
    assert [key.name for key in root_path(chain, c)] == ["c_up_fkey", "b_up_fkey"]
    assert [root_table(chain, table).name for table in (a, b, c)] == ["a", "a", "a"]


def test_a_circle_in_the_graph_ends(chain: Catalog) -> None:
    edit = CatalogEdit(catalog.empty_catalog())
    x = edit.create_table(TableDefinition("x", (ID, UP), ("id",)))
    edit.create_table(below("y", "x"))
    edit.create_table(below("z", "y"))
    edit.add_foreign_key(x, ForeignKeyDefinition(("up",), "z"))
    paths = {
        table.name: [key.name for key in root_path(edit.catalog, table)]
        for table in edit.catalog.tables
    }
    assert paths == {
        "x": ["x_up_fkey", "z_up_fkey"],
        "y": ["y_up_fkey", "x_up_fkey"],
        "z": ["z_up_fkey", "y_up_fkey"],
    }
