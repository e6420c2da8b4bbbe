"""The root key of a row, and that a transaction inside one root takes one lock."""

from __future__ import annotations

import pytest

from belvedere.catalog.definitions import TableDefinition
from belvedere.catalog.edit import CatalogEdit
from belvedere.database import Database
from belvedere.txn.contracts import LockRequest
from belvedere.txn.transaction.root_keys import root_finder
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import TEXT
from tests.txn.shop import column, delete, foreign_key, insert, put, table, table_of, update


def create(database: Database, *wanted: TableDefinition) -> None:
    database.change_schema(lambda edit: [edit.create_table(one) for one in wanted])


def child_of(name: str, parent: str, **more: object) -> TableDefinition:
    return table_of(
        name,
        column("id"),
        column("up", not_null=True),
        foreign_keys=(foreign_key("up", parent),),
        **more,
    )


def roots(txn: Transaction) -> list[tuple[str, int]]:
    """The root locks held: table name and key."""
    return sorted(_named(txn, request) for request in txn.held_locks)


def _named(txn: Transaction, request: LockRequest) -> tuple[str, int]:
    assert request.kind == "root"
    assert not request.is_shared
    item = txn.catalog.get(int.from_bytes(request.key[1:5]))
    assert item is not None
    return item.name, table(txn, item.name).key.decode(request.key)[0]


@pytest.fixture
def tree(memory_shop: Database) -> Database:
    """a <- b <- c <- d: four levels."""
    create(
        memory_shop,
        table_of("a", column("id")),
        child_of("b", "a"),
        child_of("c", "b"),
        child_of("d", "c"),
    )
    put(memory_shop, "a", (1,), (2,))
    put(memory_shop, "b", (10, 1), (20, 2))
    put(memory_shop, "c", (100, 10), (200, 20))
    put(memory_shop, "d", (1000, 100))
    return memory_shop


def test_one_lock_for_a_whole_tree_at_any_depth(tree: Database) -> None:
    before = tree.locks.acquired_counts["root"]
    with tree.begin() as txn:
        insert(txn, "b", (11, 1))
        insert(txn, "c", (101, 11), (102, 10))
        insert(txn, "d", (1001, 101), (1002, 100))
        update(txn, "d", (1000, 101))
        delete(txn, "d", 1002)
        assert roots(txn) == [("a", 1)]
    assert tree.locks.acquired_counts == {**tree.locks.acquired_counts, "root": before + 1}
    assert tree.locks.list_locks() == []


def test_the_root_table_is_its_own_root(tree: Database) -> None:
    assert root_finder(tree.catalog, table(tree, "a").table.id) is None
    with tree.begin() as txn:
        insert(txn, "a", (3,))
        assert roots(txn) == [("a", 3)]


def test_two_roots_are_two_locks_and_a_move_locks_both(tree: Database) -> None:
    with tree.begin() as txn:
        update(txn, "c", (100, 20))
        assert roots(txn) == [("a", 1), ("a", 2)]
    with tree.begin() as txn:
        update(txn, "d", (1000, 200))
        assert roots(txn) == [("a", 2)], "its ancestors have moved with it"


def test_a_missing_ancestor_ends_the_walk(tree: Database) -> None:
    txn = tree.begin()
    insert(txn, "d", (1003, 777))
    insert(txn, "b", (12, 99))
    assert roots(txn) == [("a", 99), ("c", 777)]
    txn.rollback()


def test_own_new_ancestors_are_found(tree: Database) -> None:
    with tree.begin() as txn:
        insert(txn, "a", (5,))
        insert(txn, "b", (50, 5))
        insert(txn, "c", (500, 50))
        insert(txn, "d", (5000, 500))
        assert roots(txn) == [("a", 5)]


def test_a_table_may_be_its_own_root(memory_shop: Database) -> None:
    create(memory_shop, table_of("a", column("id")), child_of("b", "a", root="self"))
    create(memory_shop, child_of("c", "b"))
    put(memory_shop, "a", (1,))
    put(memory_shop, "b", (10, 1))
    with memory_shop.begin() as txn:
        insert(txn, "c", (100, 10))
        assert roots(txn) == [("b", 10)]


def two_parents(**more: object) -> TableDefinition:
    return table_of(
        "both",
        column("id"),
        column("x", not_null=True),
        column("y", not_null=True),
        foreign_keys=(
            foreign_key("x", "customer", name="to_customer"),
            foreign_key("y", "product", name="to_product"),
        ),
        **more,
    )


@pytest.mark.parametrize(
    ("root", "expected"),
    [(None, ("customer", 1)), ("to_product", ("product", 2)), ("self", ("both", 3))],
)
def test_the_first_foreign_key_leads_upward_unless_overridden(
    memory_shop: Database, root: str | None, expected: tuple[str, int]
) -> None:
    create(memory_shop, two_parents(root=root))
    put(memory_shop, "customer", (1, None, None))
    put(memory_shop, "product", (2, None))
    with memory_shop.begin() as txn:
        insert(txn, "both", (3, 1, 2))
        assert roots(txn) == [expected]


def test_nullable_and_unenforced_foreign_keys_do_not_lead_upward(memory_shop: Database) -> None:
    keys = (foreign_key("up", "product"), foreign_key("far", "product", enforced=False))
    wanted = table_of(
        "t", column("id"), column("up"), column("far", not_null=True), foreign_keys=keys
    )
    create(memory_shop, wanted)
    put(memory_shop, "product", (1, None))
    with memory_shop.begin() as txn:
        insert(txn, "t", (7, 1, 1))
        assert roots(txn) == [("t", 7)]


def test_a_table_that_refers_to_itself_is_a_root(memory_shop: Database) -> None:
    create(memory_shop, child_of("node", "node"))
    with memory_shop.begin() as txn:
        insert(txn, "node", (1, 1), (2, 1))
        assert roots(txn) == [("node", 1), ("node", 2)]


def test_a_circle_of_tables_ends_where_it_would_close(memory_shop: Database) -> None:
    def circle(edit: CatalogEdit) -> None:
        edit.create_table(table_of("x", column("id"), column("up", not_null=True)))
        edit.create_table(child_of("y", "x"))
        edit.add_foreign_key(table(edit, "x").table.id, foreign_key("up", "y"))

    memory_shop.change_schema(circle)
    with memory_shop.begin() as txn:
        insert(txn, "x", (1, 2))
        insert(txn, "y", (2, 1))
        assert roots(txn) == [("x", 1), ("y", 2)]


def test_a_root_by_a_unique_value_is_the_row_it_names(memory_shop: Database) -> None:
    wanted = table_of(
        "t",
        column("id"),
        column("email", TEXT, not_null=True),
        foreign_keys=(foreign_key("email", "customer", parent_columns=("email",)),),
    )
    create(memory_shop, wanted)
    put(memory_shop, "customer", (5, "a", None))
    with memory_shop.begin() as txn:
        insert(txn, "t", (1, "a"))
        assert roots(txn) == [("customer", 5)]
    txn = memory_shop.begin()
    insert(txn, "t", (2, "nobody"))
    assert roots(txn) == [("t", 2)], "a parent that is not there has no key to lock"
    txn.rollback()


def test_a_root_that_changes_in_the_catalog_changes_the_locks(memory_shop: Database) -> None:
    create(memory_shop, two_parents())
    put(memory_shop, "customer", (1, None, None))
    put(memory_shop, "product", (2, None))
    id_ = table(memory_shop, "both").table.id
    memory_shop.change_schema(lambda edit: edit.set_root(id_, "to_product"))
    with memory_shop.begin() as txn:
        insert(txn, "both", (3, 1, 2))
        assert roots(txn) == [("product", 2)]


@pytest.fixture
def keyed_tree(memory_shop: Database) -> Database:
    """w <- d <- c <- o, where each key begins with that of the row above; o refers to c by a column
    that is not in its own key."""
    create(
        memory_shop,
        table_of("w", column("w"), key="w"),
        table_of("d", column("w"), column("d"), key="w d", foreign_keys=(foreign_key("w", "w"),)),
        table_of(
            "c",
            column("w"),
            column("d"),
            column("c"),
            key="w d c",
            foreign_keys=(foreign_key("w d", "d"),),
        ),
        table_of(
            "o",
            column("w"),
            column("d"),
            column("o"),
            column("c", not_null=True),
            key="w d o",
            foreign_keys=(foreign_key("w d c", "c"),),
        ),
        table_of(
            "row",
            column("w", not_null=True),
            column("d", not_null=True),
            column("o", not_null=True),
            column("line"),
            key="line",
            foreign_keys=(foreign_key("w d o", "o"),),
        ),
    )
    put(memory_shop, "w", (1,), (2,))
    put(memory_shop, "d", (1, 5), (2, 5))
    put(memory_shop, "c", (1, 5, 7), (2, 5, 7))
    put(memory_shop, "o", (1, 5, 9, 7))
    return memory_shop


def test_an_inherited_root_key_is_found_without_reading_ancestors(keyed_tree: Database) -> None:
    catalog = keyed_tree.catalog
    line = table(keyed_tree, "row")
    finder = root_finder(catalog, line.table.id)
    assert finder is not None

    class NoReader:
        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"{name} of a reader was used")

    row = (2, 5, 9, 100)
    root = finder(line.key_of(row), row, NoReader())  # type: ignore[arg-type]
    assert root == table(keyed_tree, "w").key_of((2,))
    with keyed_tree.begin() as txn:
        insert(txn, "row", (1, 5, 9, 100))
        assert roots(txn) == [("w", 1)]


def test_a_reference_that_may_be_null_leads_nowhere(memory_shop: Database) -> None:
    """An order without a customer is its own root, and so is that of its lines."""
    create(
        memory_shop,
        table_of("w", column("w"), key="w"),
        table_of("c", column("w"), column("c"), key="w c", foreign_keys=(foreign_key("w", "w"),)),
        table_of(
            "o",
            column("w"),
            column("o"),
            column("c"),
            key="w o",
            foreign_keys=(foreign_key("w c", "c"),),
        ),
        table_of(
            "row",
            column("w"),
            column("o"),
            column("line"),
            key="w o line",
            foreign_keys=(foreign_key("w o", "o"),),
        ),
    )
    put(memory_shop, "w", (1,))
    put(memory_shop, "o", (1, 9, None))
    with memory_shop.begin() as txn:
        insert(txn, "row", (1, 9, 3))
        assert roots(txn) == [("o", 1)]
