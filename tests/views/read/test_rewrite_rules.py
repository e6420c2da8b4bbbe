"""Rules by which views answer queries: the joint, tried with a rule of one shape."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.errors import Unavailable
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from tests.views.sql import Store, opened, rows_of

QUERY = "SELECT city, count(*) AS c FROM people GROUP BY city"


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        made.run(
            "CREATE TABLE people (id int PRIMARY KEY, city text)",
            f"CREATE MATERIALIZED VIEW counts WITH (maintenance = 'deferred') AS {QUERY}",
            "INSERT INTO people VALUES (1, 'Graz'), (2, 'Linz'), (3, 'Graz')",
        )
        yield made


def counts(plan: n.Node, catalog: Catalog) -> n.Node:
    """Answers a count by city from the view of it."""
    view = catalog.require_relation(View, "counts")

    def on_node(node: n.Node) -> n.Node:
        if isinstance(node, n.Aggregate) and node.groups and node.aggregates:
            return n.Scan(view.id, view.name, (0, 1), node.fields)
        return transform.rebuild_inputs(node, on_node)

    return on_node(plan)


def other_columns(plan: n.Node, catalog: Catalog) -> n.Node:
    return n.Project(plan, (e.Column(0, plan.fields[0].type),), plan.fields[:1])


def explained(store: Store, text: str) -> str:
    return "\n".join(line for (line,) in store.run(f"EXPLAIN {text}"))


def test_without_a_rule_for_it_a_query_reads_its_tables(store: Store) -> None:
    assert "people" in explained(store, QUERY)


def test_a_rule_answers_a_query_from_a_view_as_fresh_as_asked(store: Store) -> None:
    store.shared.rewrite_rules = (counts,)
    session = store.session()
    assert "people" not in explained(store, QUERY)
    assert sorted(rows_of(session, QUERY, "latest")) == [("Graz", 2), ("Linz", 1)]
    session.execute("BEGIN")
    session.execute("INSERT INTO people VALUES (4, 'Linz')")
    assert sorted(rows_of(session, QUERY + " ")) == [("Graz", 2), ("Linz", 2)]
    session.execute("ROLLBACK")


def test_a_rule_that_changes_the_columns_is_refused(store: Store) -> None:
    store.shared.rewrite_rules = (other_columns,)
    with pytest.raises(Unavailable, match="other columns"):
        store.run(QUERY)
