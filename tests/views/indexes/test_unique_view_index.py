"""A unique index of a view refuses the write that would give the view two rows of one key."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.errors import InvalidInput
from tests.views.sql import Store, opened

DEFINITION = "SELECT name, count(*) AS n FROM people WHERE age > 17 GROUP BY name"


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        made.run(
            "CREATE TABLE people (id int PRIMARY KEY, name text, age int)",
            "INSERT INTO people VALUES (1, 'ann', 20), (2, 'bob', 30), (3, 'kid', 3)",
            "CREATE MATERIALIZED VIEW adults AS SELECT id, name FROM people WHERE age > 17",
            "CREATE MATERIALIZED VIEW names WITH (maintenance = 'deferred') AS"
            " SELECT name FROM people",
        )
        yield made


def is_refused(store: Store, statement: str) -> bool:
    try:
        store.run(statement)
    except InvalidInput as error:
        if error.sqlstate == "23505":
            return True
        raise
    return False


@pytest.fixture
def unique(store: Store) -> Store:
    store.run("CREATE UNIQUE INDEX one_name ON adults (name)")
    return store


def test_a_second_row_of_a_key_is_refused_and_changes_nothing(unique: Store) -> None:
    before = unique.run("SELECT * FROM people ORDER BY id")
    assert is_refused(unique, "INSERT INTO people VALUES (4, 'ann', 40)")
    assert is_refused(unique, "INSERT INTO people VALUES (4, 'eve', 40), (5, 'eve', 41)")
    assert is_refused(unique, "UPDATE people SET name = 'bob' WHERE id = 1")
    assert is_refused(unique, "UPDATE people SET age = 18, name = 'bob' WHERE id = 3")
    assert unique.run("SELECT * FROM people ORDER BY id") == before
    assert unique.run("SELECT id FROM adults WHERE name = 'ann'") == [(1,)]


def test_keys_outside_the_view_nulls_and_exchanged_keys_are_let_in(unique: Store) -> None:
    unique.run(
        "INSERT INTO people VALUES (4, 'ann', 4), (5, NULL, 50), (6, NULL, 60)",
        "UPDATE people SET name = CASE name WHEN 'ann' THEN 'bob' ELSE 'ann' END WHERE age > 17"
        " AND name IS NOT NULL",
        "DELETE FROM people WHERE id = 1",
        "INSERT INTO people VALUES (7, 'bob', 70)",
    )
    assert set(unique.verified().values()) == {True}


def test_a_transaction_is_judged_by_what_it_leaves(unique: Store) -> None:
    unique.run("BEGIN", "DELETE FROM people WHERE id = 1", "INSERT INTO people VALUES (9,'ann',9)")
    unique.run("UPDATE people SET age = 90 WHERE id = 9", "COMMIT")
    assert unique.run("SELECT id FROM adults WHERE name = 'ann'") == [(9,)]


def test_rows_that_are_not_unique_leave_no_index(store: Store) -> None:
    store.run("INSERT INTO people VALUES (4, 'ann', 40)")
    names = {view.name for view in store.db.catalog.views}
    for view in ("adults", "names"):
        assert is_refused(store, f"CREATE UNIQUE INDEX ON {view} (name)")
    assert {view.name for view in store.db.catalog.views} == names
    store.run("INSERT INTO people VALUES (5, 'ann', 40)")


def test_a_unique_index_of_a_deferred_view_is_immediate(store: Store) -> None:
    store.run("CREATE UNIQUE INDEX ON names (name)")
    assert is_refused(store, "INSERT INTO people VALUES (4, 'kid', 4)")
    assert not is_refused(store, "INSERT INTO people VALUES (4, 'new', 4)")
    assert store.run("SELECT name FROM names WHERE name = 'new'") == [("new",)]


def test_a_unique_key_may_be_an_aggregate(store: Store) -> None:
    store.run(
        "DELETE FROM people WHERE id = 2",
        f"CREATE MATERIALIZED VIEW counts AS {DEFINITION}",
        "CREATE UNIQUE INDEX ON counts (n)",
    )
    assert is_refused(store, "INSERT INTO people VALUES (8, 'eve', 40)")
    store.run("INSERT INTO people VALUES (8, 'eve', 40), (9, 'eve', 41)")
    assert store.run("SELECT name FROM counts WHERE n = 2") == [("eve",)]


def test_of_two_transactions_with_one_key_one_is_refused(unique: Store) -> None:
    first, second = unique.session(), unique.session()
    for session, id_ in ((first, 10), (second, 11)):
        session.execute("BEGIN")
        session.execute(f"INSERT INTO people VALUES ({id_}, 'eve', 33)")
    first.execute("COMMIT")
    with pytest.raises(InvalidInput, match="duplicate key"):
        second.execute("COMMIT")
    assert unique.run("SELECT id FROM adults WHERE name = 'eve'") == [(10,)]
    assert set(unique.verified().values()) == {True}
