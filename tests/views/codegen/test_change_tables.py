"""Change tables and their propagation: the five rules of the CloudTPS thesis, and its example.

A change table is a delta: rows that come count +1, rows that go -1. Each rule says what the change
table of an operator is, given that of its input E: the right side is worked out here, by hand, and
the left side is what a view over the operator changes by.

    selection     d(select p E)      =  select p (dE)
    projection    d(project A E)     =  project A (dE)
    inner join    d(E join F)        =  dE join F
    bag union     d(E union all F)   =  dE
    aggregation   d(group by G E)    =  group by G (dE), sums and counts of deletions negated
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.views.sql import Store, opened

EVENTS = [(1, 10, 100), (2, 10, 50), (3, 11, 30), (4, 12, 70), (5, 13, 20)]
PRODUCTS = [(10, 5), (11, 5), (12, 8), (13, 17)]
"""Three events of category 5, one of 8, one of 17."""

CHANGES = (
    "INSERT INTO events VALUES (6, 12, 40), (7, 12, 10), (8, 14, 60)",
    "DELETE FROM events WHERE event = 5",
)
"""Three insertions, one of a category that had none, and one deletion, the last of its category."""

DELTA = Counter({(6, 12, 40): 1, (7, 12, 10): 1, (8, 14, 60): 1, (5, 13, 20): -1})
CATEGORY = {**dict(PRODUCTS), 14: 21}

COST_CAT = (
    "SELECT p.cat, sum(e.cost) AS cost FROM events e JOIN products p ON e.prod = p.prod"
    " GROUP BY p.cat"
)


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        made.run(
            "CREATE TABLE events (event int PRIMARY KEY, prod int, cost int)",
            "CREATE TABLE products (prod int PRIMARY KEY, cat int)",
            "CREATE TABLE archive (event int PRIMARY KEY, prod int, cost int)",
            f"INSERT INTO events VALUES {', '.join(map(str, EVENTS))}",
            f"INSERT INTO products VALUES {', '.join(map(str, [*PRODUCTS, (14, 21)]))}",
            "INSERT INTO archive VALUES (1, 10, 100)",
        )
        yield made


def delta(store: Store, name: str) -> Counter[Any]:
    """The rows, with weights, by which the transaction changes a view, those of no weight left
    out."""
    with store.db.begin() as before:
        session = store.session()
        for statement in ("BEGIN", *CHANGES):
            session.execute(statement)
        transaction = session.transactions.open
        assert transaction is not None
        maintainer = store.db.views.registry.get_view_maintainer(before.catalog, store.view(name))
        found: Counter[Any] = Counter()
        for row, weight in maintainer.compute_delta_rows(transaction.changes, before):
            found[row] += weight
        session.execute("COMMIT")
    return Counter({row: weight for row, weight in found.items() if weight})


def mapped(function: Callable[[tuple[int, int, int]], Any]) -> Counter[Any]:
    """The change table of E with a function of its rows; None: the row is left out."""
    found: Counter[Any] = Counter()
    for row, weight in DELTA.items():
        made = function(row)
        if made is not None:
            found[made] += weight
    return Counter({row: weight for row, weight in found.items() if weight})


RULES: dict[str, tuple[str, Counter[Any]]] = {
    "selection": (
        "SELECT event, prod, cost FROM events WHERE cost > 30",
        mapped(lambda row: row if row[2] > 30 else None),
    ),
    "projection": ("SELECT prod FROM events", mapped(lambda row: (row[1],))),
    "inner join": (
        "SELECT e.event, e.cost, p.cat FROM events e JOIN products p ON e.prod = p.prod",
        mapped(lambda row: (row[0], row[2], CATEGORY[row[1]])),
    ),
    "bag union": ("SELECT * FROM events UNION ALL SELECT * FROM archive", mapped(lambda row: row)),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_change_table_goes_through_an_operator_by_its_rule(store: Store, rule: str) -> None:
    text, expected = RULES[rule]
    store.run(f"CREATE MATERIALIZED VIEW v AS {text}")
    assert delta(store, "v") == expected
    assert Counter(store.run("SELECT * FROM v")) == Counter(store.run(text))


def test_an_aggregate_of_the_change_table_refreshes_the_aggregate(store: Store) -> None:
    """The example: total cost by category. The change table has sums and counts, deletions negated;
    what matches is added, what does not is inserted, and a count of zero deletes."""
    store.run(f"CREATE MATERIALIZED VIEW cost_cat AS {COST_CAT}")
    before = amounts(store)
    assert before == {5: (3, 180), 8: (1, 70), 17: (1, 20)}
    for statement in ("BEGIN", *CHANGES, "COMMIT"):
        store.run(statement)
    change_table = {8: (2, 50), 21: (1, 60), 17: (-1, -20)}
    refreshed = {
        cat: (
            before.get(cat, (0, 0))[0] + change_table.get(cat, (0, 0))[0],
            before.get(cat, (0, 0))[1] + change_table.get(cat, (0, 0))[1],
        )
        for cat in before.keys() | change_table.keys()
    }
    assert amounts(store) == {cat: both for cat, both in refreshed.items() if both[0]}
    assert sorted(store.run("SELECT * FROM cost_cat")) == [(5, 180), (8, 120), (21, 60)]


def amounts(store: Store) -> dict[int, tuple[int, int]]:
    """Count and sum of each category, as they are stored."""
    maintained = "SELECT p.cat, count(*) AS n, sum(e.cost) AS cost"
    maintained += " FROM events e JOIN products p ON e.prod = p.prod GROUP BY p.cat"
    if store.db.catalog.find_relation("stored") is None:
        store.run(f"CREATE MATERIALIZED VIEW stored AS {maintained}")
    return {cat: (count, cost) for cat, count, cost in store.run("SELECT * FROM stored")}


def test_the_aggregate_s_change_table_comes_from_the_join_s(store: Store) -> None:
    """Aggregation: d(group E) = group (dE), and below it d(E join F) = dE join F."""
    store.run(f"CREATE MATERIALIZED VIEW cost_cat AS {COST_CAT}")
    joined = delta(store, "cost_cat")
    grouped: dict[int, list[int]] = {}
    for row, weight in joined.items():
        prod, cost, same, cat = row
        assert prod == same
        sums = grouped.setdefault(cat, [0, 0])
        sums[0] += weight
        sums[1] += weight * cost
    assert grouped == {8: [2, 50], 21: [1, 60], 17: [-1, -20]}


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("count(*)", "distributive"),
        ("sum(cost)", "distributive"),
        ("avg(cost)", "algebraic"),
        ("min(cost)", "distributive for inserts, holistic for deletes"),
        ("string_agg(cost::text, ',')", "holistic"),
        ("count(DISTINCT cost)", "holistic"),
    ],
)
def test_explain_names_the_kind_of_an_aggregate(store: Store, call: str, kind: str) -> None:
    lines = store.run(
        f"EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT prod, {call} AS x FROM events GROUP BY prod"
    )
    assert any(f"), {kind}" in line for (line,) in lines), lines
