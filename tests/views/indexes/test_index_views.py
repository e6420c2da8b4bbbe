"""Indexes that are kept as views: deferred or local, thin and covering."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from belvedere.errors import InvalidInput, Unsupported
from tests.views.sql import Store, opened, rows_of

OPTIONS = (
    "maintenance = 'deferred'",
    "placement = 'local'",
    "maintenance = 'deferred', placement = 'local'",
)


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        made.run(
            "CREATE TABLE items (id int PRIMARY KEY, price int, name text, note text)"
            " WITH (partitions = 4)",
            "INSERT INTO items SELECT x, x % 7, 'n' || x, '' FROM generate_series(1, 60) AS g(x)",
        )
        yield made


def explained(store: Store, text: str) -> str:
    return "\n".join(line for (line,) in store.run(f"EXPLAIN {text}"))


@pytest.mark.parametrize("options", OPTIONS)
def test_a_look_up_by_such_an_index_is_that_of_the_table(
    store: Store, rng: random.Random, options: str
) -> None:
    queries = [
        "SELECT id, name FROM items WHERE price = 3",
        "SELECT * FROM items WHERE price = 3 AND id > 20",
        "SELECT count(*) AS c FROM items a JOIN items b ON a.id = b.id WHERE a.price = 5",
        "SELECT id FROM items WHERE price = 1 OR price = 2",
        "SELECT id, name FROM items WHERE price > 4",
    ]
    store.run(f"CREATE INDEX by_price ON items (price) INCLUDE (name) WITH ({options})")
    for step in range(12):
        store.run(
            rng.choice(
                (
                    f"INSERT INTO items VALUES ({100 + step}, {step % 7}, 'x', NULL)",
                    f"UPDATE items SET price = {step % 7} WHERE id % 11 = {step % 11}",
                    f"DELETE FROM items WHERE id % 13 = {step}",
                    f"UPDATE items SET name = 'y{step}' WHERE price = 3",
                )
            )
        )
        for query in queries:
            whole = query.replace("price =", "price + 0 =").replace("price >", "price + 0 >")
            assert Counter(store.run(query)) == Counter(store.run(whole)), (step, query)


def test_a_covering_index_is_read_alone_and_a_thin_one_with_its_table(store: Store) -> None:
    store.run(
        "CREATE INDEX by_price ON items (price) INCLUDE (name) WITH (maintenance = 'deferred')"
    )
    covering = explained(store, "SELECT id, name FROM items WHERE price = 3")
    thin = explained(store, "SELECT id, note FROM items WHERE price = 3")
    assert "Scan items" not in covering
    assert "Scan items" in thin
    assert "Scan items" not in explained(store, "SELECT id FROM items WHERE price > 3")
    assert "Scan items" in explained(store, "SELECT note FROM items WHERE price > 3")


def test_the_transaction_finds_its_own_rows(store: Store) -> None:
    store.run("CREATE INDEX by_price ON items (price) WITH (maintenance = 'deferred')")
    session = store.session()
    session.execute("BEGIN")
    session.execute("INSERT INTO items VALUES (500, 777, 'new', '')")
    assert rows_of(session, "SELECT name FROM items WHERE price = 777") == [("new",)]
    session.execute("ROLLBACK")
    assert rows_of(session, "SELECT name FROM items WHERE price = 777 ") == []


def test_dropping_it_drops_its_rows_and_its_table_drops_it(store: Store) -> None:
    store.run("CREATE INDEX by_price ON items (price) WITH (maintenance = 'deferred')")
    store.run("CREATE INDEX IF NOT EXISTS by_price ON items (price) WITH (placement = 'local')")
    store.run("DROP INDEX by_price")
    assert store.db.catalog.views == ()
    assert store.run("SELECT count(*) FROM items WHERE price = 3") == [(9,)]


def test_what_is_the_default_is_a_plain_index(store: Store) -> None:
    store.run("CREATE INDEX i ON items (price) WITH (maintenance = 'immediate')")
    assert store.db.catalog.views == ()
    assert [index.name for index in store.db.catalog.table_indexes(store_table(store))] == ["i"]


def store_table(store: Store) -> int:
    return store.db.get_compiled_table("items").table.id


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("CREATE UNIQUE INDEX i ON items (price) WITH (maintenance = 'deferred')", Unsupported),
        ("CREATE INDEX i ON items ((price + 1)) WITH (placement = 'local')", Unsupported),
        ("CREATE INDEX i ON items (price) WITH (fillfactor = 70)", InvalidInput),
        ("CREATE INDEX i ON items (price) WITH (maintenance = 'never')", InvalidInput),
        ("CREATE INDEX i ON items (nothing) WITH (placement = 'local')", InvalidInput),
    ],
)
def test_what_it_cannot_be_is_refused(store: Store, text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        store.run(text)
    assert store.db.catalog.views == ()
