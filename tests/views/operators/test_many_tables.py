"""Views over many tables: as many terms as tables, and right when several change at once."""

from __future__ import annotations

import random

import pytest

from belvedere.views.delta.delta_plan import build_delta_terms
from belvedere.views.delta.delta_tree import LinearCore
from tests.views.sql import Store, opened

TABLES = 12


def chain(store: Store, tables: int, maintenance: str) -> str:
    """Tables t0 .. whose rows point to one of the next; their join as view `v`."""
    for number in range(tables):
        store.run(f"CREATE TABLE t{number} (id int PRIMARY KEY, next int, v int)")
    joins = " ".join(
        f"JOIN t{number} ON t{number}.id = t{number - 1}.next" for number in range(1, tables)
    )
    total = " + ".join(f"t{number}.v" for number in range(tables))
    query = f"SELECT t0.id, t{tables - 1}.v, {total} AS total FROM t0 {joins}"
    store.run(f"CREATE MATERIALIZED VIEW v WITH (maintenance = '{maintenance}') AS {query}")
    return query


def test_a_join_has_a_term_for_each_table() -> None:
    with opened() as store:
        chain(store, TABLES, "immediate")
        tree = store.db.views.registry.get_maintenance_plan(store.db.catalog, store.view("v")).tree
        assert isinstance(tree, LinearCore)
        terms = build_delta_terms(tree.branches, tree.plan.fields, store.db.catalog)
        assert [term.changed for term in terms] == [(number,) for number in range(TABLES)]
        assert not any(term.scans for term in terms)


@pytest.mark.slow
@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
@pytest.mark.parametrize("tables", [4, 7])
def test_tables_of_a_long_join_change_together(
    tables: int, maintenance: str, rng: random.Random
) -> None:
    with opened() as store:
        query = chain(store, tables, maintenance)
        for _ in range(12):
            store.run("BEGIN")
            for number in rng.sample(range(tables), rng.randrange(1, tables + 1)):
                keys = rng.sample(range(4), rng.randrange(1, 4))
                store.run(f"DELETE FROM t{number} WHERE id IN ({', '.join(map(str, keys))})")
                for key in keys:
                    row = (key, rng.randrange(4), rng.randrange(10))
                    store.run(f"INSERT INTO t{number} VALUES {row}")
            inside = store.run(query), store.run("SELECT * FROM v")
            assert sorted(inside[0]) == sorted(inside[1])
            store.run("COMMIT")
            assert sorted(store.run("SELECT * FROM v")) == sorted(store.run(query))
        assert store.run(query)
        assert store.verified() == {"v": True}


def test_leaves_of_one_table_in_a_long_join_change_together(rng: random.Random) -> None:
    with opened() as store:
        store.run("CREATE TABLE t (id int PRIMARY KEY, next int)", "CREATE TABLE u (id int, v int)")
        query = (
            "SELECT a.id, d.next, u.v FROM t a JOIN t b ON b.id = a.next JOIN t c ON c.id = b.next"
            " JOIN t d ON d.id = c.next JOIN u ON u.id = d.id"
        )
        store.run(f"CREATE MATERIALIZED VIEW v AS {query}")
        for _ in range(15):
            key = rng.randrange(3)
            store.run(
                "BEGIN",
                f"DELETE FROM t WHERE id = {key}",
                f"INSERT INTO t VALUES ({key}, {rng.randrange(3)})",
                f"INSERT INTO u VALUES ({rng.randrange(3)}, {rng.randrange(9)})",
                "COMMIT",
            )
            assert sorted(store.run("SELECT * FROM v")) == sorted(store.run(query))
        assert store.run(query)


def test_a_definition_is_not_bound_again_for_each_index_it_gets() -> None:
    """Making a view fills an index for every join, each in a commit of its own."""
    with opened() as store:
        registry, bound = store.db.views.registry, []
        bind = registry._bind
        registry._bind = lambda catalog, text: bound.append(text) or bind(catalog, text)  # type: ignore[func-returns-value]
        chain(store, TABLES, "immediate")
        assert len(bound) <= 5
        bound.clear()
        store.run("INSERT INTO t0 VALUES (1, 1, 1)")
        assert bound == []
