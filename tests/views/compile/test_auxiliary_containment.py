"""Auxiliary views are shared by containment: one that has more serves who wants less."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.views.sql import Store, opened

WIDE = {
    "groups": "SELECT g AS gg, count(*) AS n, sum(v) AS s, sum(w) AS t, count(DISTINCT v) AS d"
    " FROM items WHERE w > 1 GROUP BY g",
    "rows": "SELECT id, g + v AS k, w, v, row_number() OVER (PARTITION BY g + v ORDER BY id) AS r"
    " FROM items",
    "least": "SELECT g + 1 AS k, min(v) AS lo, count(*) AS n, max(w) AS hi FROM items"
    " GROUP BY g + 1",
}
NARROW = {
    "groups": "SELECT items.g, sum(w) AS total, max(v) AS m FROM items WHERE w > 1"
    " GROUP BY items.g",
    "rows": "SELECT v, g + v AS other, sum(v) OVER (PARTITION BY g + v) AS r FROM items",
    "least": "SELECT g + 1 AS key, min(v) AS smallest, count(*) AS c FROM items GROUP BY g + 1",
}


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        made.run(
            "CREATE TABLE items (id int PRIMARY KEY, g int, v int, w int)",
            "INSERT INTO items SELECT x, x % 4, x % 7, x % 3 FROM generate_series(1, 30) AS t(x)",
        )
        yield made


def auxiliaries(store: Store) -> list[str]:
    return [view.name for view in store.db.catalog.views if view.part]


def change(store: Store, rng: random.Random, step: int) -> None:
    store.run(
        rng.choice(
            (
                f"INSERT INTO items VALUES ({100 + step}, {step % 4}, {step % 6}, {step % 3})",
                f"INSERT INTO items VALUES ({100 + step}, NULL, NULL, 2)",
                f"UPDATE items SET g = {step % 5}, w = w + 1 WHERE id % 4 = {step % 4}",
                f"UPDATE items SET v = NULL WHERE id % 9 = {step % 9}",
                f"DELETE FROM items WHERE id % 5 = {step % 5}",
            )
        )
    )


@pytest.mark.parametrize("name", list(WIDE))
def test_a_narrower_view_uses_what_a_wider_one_keeps(
    store: Store, rng: random.Random, name: str
) -> None:
    store.run(f"CREATE MATERIALIZED VIEW wide AS {WIDE[name]}")
    before = auxiliaries(store)
    store.run(f"CREATE MATERIALIZED VIEW narrow AS {NARROW[name]}")
    used = {store.db.catalog.objects[id_].name for id_ in store.view("narrow").auxiliary_views}  # type: ignore[union-attr]
    assert used & set(before), "nothing is shared"
    for step in range(25):
        change(store, rng, step)
        for view, text in (("wide", WIDE[name]), ("narrow", NARROW[name])):
            found, expected = store.run(f"SELECT * FROM {view}"), store.run(text)
            assert Counter(map(str, found)) == Counter(map(str, expected)), (step, view)
    assert set(store.verified().values()) == {True}


@pytest.mark.parametrize("name", list(WIDE))
def test_what_is_shared_stays_until_its_last_user_goes(store: Store, name: str) -> None:
    store.run(
        f"CREATE MATERIALIZED VIEW wide AS {WIDE[name]}",
        f"CREATE MATERIALIZED VIEW narrow WITH (maintenance = 'deferred') AS {NARROW[name]}",
        "DROP MATERIALIZED VIEW wide",
        "INSERT INTO items VALUES (200, 1, 1, 2)",
        "DELETE FROM items WHERE id < 4",
        "REFRESH MATERIALIZED VIEW narrow",
    )
    assert auxiliaries(store)
    assert set(store.verified().values()) == {True}
    store.run("DROP MATERIALIZED VIEW narrow")
    assert auxiliaries(store) == []


def test_what_has_too_little_or_other_rows_is_not_shared(store: Store) -> None:
    store.run(f"CREATE MATERIALIZED VIEW narrow AS {NARROW['groups']}")
    first = set(auxiliaries(store))
    store.run(
        "CREATE MATERIALIZED VIEW others AS SELECT g, sum(w) AS s, count(DISTINCT v) AS d"
        " FROM items WHERE w > 2 GROUP BY g",
        "CREATE MATERIALIZED VIEW more AS SELECT g, sum(v) AS s, max(v) AS m, sum(id) AS i"
        " FROM items WHERE w > 1 GROUP BY g",
    )
    presence = store.db.catalog.objects[store.view("more").auxiliary_views[0]]
    assert presence.name not in first  # type: ignore[union-attr]
    assert not set(store.view("others").auxiliary_views) & set(store.view("narrow").auxiliary_views)


def test_an_order_that_is_wanted_is_the_very_same(store: Store, rng: random.Random) -> None:
    """Ties of a LIMIT are broken by all columns, so rows with more of them are in another order."""
    store.run(
        "CREATE MATERIALIZED VIEW wide AS SELECT v, w, g FROM items ORDER BY v LIMIT 5",
        "CREATE MATERIALIZED VIEW narrow AS SELECT w, v FROM items ORDER BY v LIMIT 5",
    )
    assert not set(store.view("wide").auxiliary_views) & set(store.view("narrow").auxiliary_views)
    for step in range(10):
        change(store, rng, step)
    assert set(store.verified().values()) == {True}
