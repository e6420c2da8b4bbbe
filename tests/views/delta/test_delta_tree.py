"""Trees are walked by one function, which leaves no part out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.catalog.model import Table
from belvedere.views.delta import delta_tree as trees
from belvedere.views.delta.delta_tree import (
    DeltaTree,
    LinearCore,
    child_trees,
    collect_read_slots,
    collect_relations,
    walk_tree,
)
from tests.views.sql import Store, opened

DEFINITIONS = {
    "LinearCore": "SELECT a.v FROM a JOIN b ON a.id = b.id",
    "Map": "SELECT m + 1 AS n FROM (SELECT g, max(v) AS m FROM a GROUP BY g) x",
    "Union": "SELECT v FROM a UNION ALL (SELECT max(v) FROM b GROUP BY g)",
    "Apply": "SELECT a.v, b.v AS w FROM a LEFT JOIN b ON a.id = b.id",
    "Recompute": "SELECT g, max(v) AS m FROM a GROUP BY g",
    "nested": "SELECT g, max(w) AS m FROM (SELECT a.g, b.v AS w FROM a LEFT JOIN"
    " (SELECT g, max(v) AS v FROM b GROUP BY g) b ON a.g = b.g) x GROUP BY g",
}


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with opened() as made:
        for name in ("a", "b"):
            made.run(f"CREATE TABLE {name} (id int PRIMARY KEY, g int, v int, unused int)")
        for name, text in DEFINITIONS.items():
            made.run(f'CREATE MATERIALIZED VIEW "v_{name}" AS {text}')
        yield made


def tree_of(store: Store, name: str) -> DeltaTree:
    return store.db.views.registry.get_view_maintainer(
        store.db.catalog, store.view(f"v_{name}")
    ).tree


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_definitions_have_parts_of_every_kind(store: Store, name: str) -> None:
    kinds = {type(part).__name__ for part in walk_tree(tree_of(store, name))}
    assert "LinearCore" in kinds
    assert name == "nested" or name in kinds


def below(part: object) -> Iterator[object]:
    """The parts of a tree by what its fields hold, whatever these are called."""
    for name in getattr(part, "__slots__", ()):
        value = getattr(part, name)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, DeltaTree):
                yield one
            elif isinstance(one, trees.RecomputeInput | trees.LookupInput):
                yield one.tree


@pytest.mark.parametrize("name", DEFINITIONS)
def test_children_are_all_trees_that_a_tree_holds(store: Store, name: str) -> None:
    for part in walk_tree(tree_of(store, name)):
        assert [id(one) for one in child_trees(part)] == [id(one) for one in below(part)]


def test_the_tables_and_columns_of_a_tree_are_those_of_its_leaves(store: Store) -> None:
    tree = tree_of(store, "nested")
    assert len([part for part in walk_tree(tree) if isinstance(part, LinearCore)]) == 2
    ids = {name: store.db.catalog.require_relation(Table, name).id for name in ("a", "b")}
    assert set(collect_relations(tree)) == set(ids.values())
    assert 3 not in collect_read_slots(tree, ids["a"]) | collect_read_slots(tree, ids["b"])
    assert 2 in collect_read_slots(tree, ids["b"])
