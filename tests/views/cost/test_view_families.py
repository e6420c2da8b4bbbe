"""Views over the same rows and groups, added up by one statement, have the state that each would
have by itself."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

import pytest

from belvedere.views.cost import cost_model, tier_selector
from belvedere.views.cost.row_counts import PositionSpan
from tests.views.backfill.test_column_backfill import load_tables, read_state
from tests.views.cost.test_refill_by_columns import CHANGES
from tests.views.cost.test_tier_selector import last_batch
from tests.views.sql import Store, opened

FAMILIES = {
    "one table": (
        "SELECT g, count(*) AS c FROM t GROUP BY g",
        "SELECT g, sum(v) AS s, sum(v + 1) AS s2, count(v) AS c FROM t GROUP BY g",
        "SELECT avg(n * 2) AS a, g, sum(id) FILTER (WHERE ok) AS s FROM t GROUP BY g",
    ),
    "text keys": (
        "SELECT s, g, count(v) AS c FROM t WHERE v > 2 GROUP BY s, g",
        "SELECT s, g, sum(n) AS s2 FROM t WHERE v > 2 GROUP BY s, g",
    ),
    "a join": (
        "SELECT d.name, sum(t.v) AS s FROM t JOIN d ON d.id = t.g GROUP BY d.name",
        "SELECT d.name, sum(t.v * d.id) AS s, count(t.s) AS c FROM t JOIN d ON d.id = t.g"
        " GROUP BY d.name",
    ),
    "distinct rows": (
        "SELECT DISTINCT g, v FROM t",
        "SELECT g, v, count(*) AS c FROM t GROUP BY g, v",
    ),
}

APART = {
    "other rows": (
        "SELECT g, count(*) AS c FROM t WHERE v = 1 GROUP BY g",
        "SELECT g, count(*) AS c FROM t WHERE v = 2 GROUP BY g",
    ),
    "other groups": (
        "SELECT g, count(*) AS c FROM t GROUP BY g",
        "SELECT v, count(*) AS c FROM t GROUP BY v",
    ),
    "other literals, equal by value": (
        "SELECT CAST(1.0 * v AS text) AS x, count(*) AS c FROM t GROUP BY CAST(1.0 * v AS text)",
        "SELECT CAST(1.00 * v AS text) AS x, count(*) AS c FROM t GROUP BY CAST(1.00 * v AS text)",
    ),
    "no groups at all": ("SELECT id, v FROM t", "SELECT id, v FROM t WHERE v > 1"),
    "several branches": (
        "SELECT x, count(*) AS c FROM (SELECT g AS x FROM t UNION ALL SELECT id FROM d) AS u"
        " GROUP BY x",
        "SELECT x, sum(x) AS s FROM (SELECT g AS x FROM t UNION ALL SELECT id FROM d) AS u"
        " GROUP BY x",
    ),
}


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        load_tables(made)
        yield made


def create_pairs(store: Store, queries: tuple[str, ...]) -> Mapping[str, str]:
    """Each view alone, for rows to maintain, and again in one group, for columns."""
    pairs = {}
    for number, query in enumerate(queries):
        alone, together = f"a{number}", f"b{number}"
        for name, every in ((alone, 100 + number), (together, 9999)):
            store.run(
                f"CREATE MATERIALIZED VIEW {name} WITH (maintenance = 'deferred',"
                f" refresh_every = '{every} s') AS {query}"
            )
        pairs[alone] = together
    for _ in range(2):  # a new view follows the log by itself until it is where its group is
        store.db.views.deferred.advance_groups([store.view("b0").group])
    return pairs


def refresh_all(store: Store, pairs: Mapping[str, str]) -> None:
    store.run("SET maintenance_tier = python")
    store.run(*[f"REFRESH MATERIALIZED VIEW {name}" for name in pairs])
    store.run("SET maintenance_tier = duckdb")
    store.run(*[f"REFRESH MATERIALIZED VIEW {name}" for name in pairs.values()])
    for alone, together in pairs.items():
        assert read_state(store, alone) == read_state(store, together)


@pytest.mark.parametrize("shape", FAMILIES)
def test_a_family_has_the_state_of_its_members(store: Store, shape: str) -> None:
    pairs = create_pairs(store, FAMILIES[shape])
    others = len(pairs) - 1
    for change in (*CHANGES, "UPDATE t SET s = s || 'x' WHERE g = 2", "DELETE FROM t"):
        store.run(change)
        refresh_all(store, pairs)
        shown = f"by columns, with {others} other view{'s' if others > 1 else ''}"
        for name in pairs.values():
            assert last_batch(store, name).endswith(shown), last_batch(store, name)
    assert set(store.verified().values()) == {True}


@pytest.mark.parametrize("shape", APART)
def test_views_of_other_rows_or_groups_are_added_up_apart(store: Store, shape: str) -> None:
    pairs = create_pairs(store, APART[shape])
    for change in CHANGES:
        store.run(change)
        refresh_all(store, pairs)
        assert all(last_batch(store, name).endswith("by columns") for name in pairs.values())
    assert set(store.verified().values()) == {True}


AGGREGATES = (
    "count(*)",
    "count(v)",
    "sum(v)",
    "sum(v + t.id)",
    "avg(v)",
    "sum(n)",
    "avg(n - 1)",
    "count(*) FILTER (WHERE ok)",
    "sum(t.id) FILTER (WHERE v > 2)",
)
GROUPS = ("g", "g, v", "s", "day, g", "v % 3")
SOURCES = (
    "t",
    "t WHERE v > 1 OR ok",
    "t JOIN d ON d.id = t.g",
    "t JOIN d ON d.id = t.g WHERE v < 5",
)
STATEMENTS = (
    "UPDATE t SET v = v + 1 WHERE id % {a} = {b}",
    "UPDATE t SET g = {b}, n = n + {a} WHERE id % {a} = {b}",
    "UPDATE t SET ok = NOT ok, s = s || '{b}' WHERE id % {a} = {b}",
    "DELETE FROM t WHERE id % {a} = {b} AND v > {b}",
    "INSERT INTO t (id, g, v, n, ok) SELECT i, i % {a}, i % 7, i / 4.0, i % 2 = 0"
    " FROM generate_series({first}, {first} + {a}) AS s (i)",
)


def test_random_families_have_the_state_of_their_members(store: Store, rng: random.Random) -> None:
    groups, source = rng.choice(GROUPS), rng.choice(SOURCES)
    queries = []
    for _ in range(rng.randrange(2, 5)):
        calls = rng.sample(AGGREGATES, rng.randrange(1, 4))
        shown = ", ".join(f"{call} AS x{number}" for number, call in enumerate(calls))
        named = ", ".join(f"{one} AS k{at}" for at, one in enumerate(groups.split(", ")))
        queries.append(f"SELECT {named}, {shown} FROM {source} GROUP BY {groups}")
    pairs = create_pairs(store, tuple(queries))
    for first in range(2000, 2400, 100):
        for _ in range(rng.randrange(1, 4)):
            given = {"a": rng.randrange(2, 9), "b": rng.randrange(3), "first": first}
            store.run(rng.choice(STATEMENTS).format(**given))
            first += 20
        refresh_all(store, pairs)
    assert "by columns, with" in last_batch(store, "b0"), last_batch(store, "b0")
    assert set(store.verified().values()) == {True}


def test_groups_in_which_only_one_view_changes(store: Store) -> None:
    pairs = create_pairs(store, FAMILIES["one table"])
    store.run(
        "UPDATE t SET v = v + 1, ok = NOT ok WHERE g = 3", "UPDATE t SET n = n + 1 WHERE g = 1"
    )
    refresh_all(store, pairs)
    store.run("UPDATE t SET n = 3 WHERE g = 1")
    refresh_all(store, pairs)
    assert set(store.verified().values()) == {True}


def test_an_expression_that_fails_stops_its_own_view_only(store: Store) -> None:
    pairs = create_pairs(
        store,
        (
            "SELECT g, count(*) AS c FROM t GROUP BY g",
            "SELECT g, sum(100 / (v - 1000)) AS s FROM t GROUP BY g",
        ),
    )
    store.run("UPDATE t SET v = 1000 WHERE id = 7", "SET maintenance_tier = duckdb")
    store.run("REFRESH MATERIALIZED VIEW b0")
    rows = store.run("SELECT name, error IS NULL FROM belvedere.views WHERE name LIKE 'b%'")
    assert sorted(rows) == [("b0", True), ("b1", False)]
    store.run("UPDATE t SET v = 1 WHERE id = 7")
    refresh_all(store, pairs)
    assert set(store.verified().values()) == {True}


def test_totals_beyond_eight_bytes_in_one_view_send_all_by_rows(store: Store) -> None:
    pairs = create_pairs(
        store,
        ("SELECT g, sum(b) AS s FROM t GROUP BY g", "SELECT g, count(*) AS c FROM t GROUP BY g"),
    )
    store.run("UPDATE t SET b = b - 1 WHERE id < 100")
    refresh_all(store, pairs)
    assert "with" not in last_batch(store, "b1")
    assert set(store.verified().values()) == {True}


def test_a_family_is_worth_it_from_fewer_changes_on(store: Store) -> None:
    create_pairs(store, FAMILIES["one table"])
    tiers, view = store.db.views.registry.tiers, store.view("b0")
    store.run("SET maintenance_tier = auto")
    maintainer = store.db.views.registry.get_view_maintainer(store.db.catalog, view)
    span = PositionSpan(store.db.position, store.db.position)
    alone, many = (tiers.find_column_break_even(view, maintainer, span, n) for n in (1, 300))
    assert tier_selector.FAMILY_CHANGES_MIN <= many < alone
    assert cost_model.estimate_family_s(1.0, 1) == 1.0
