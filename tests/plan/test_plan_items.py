"""Walks over the nodes of a plan and the expressions in them."""

from __future__ import annotations

import belvedere
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.plan_items import walk_items_with_depth, walk_plan_items
from belvedere.sql.bind.statements.statement import bind_statement
from belvedere.sql.parse.script import parse_script
from belvedere.sql.statements import DataPlan


def bind_query(text: str) -> n.Node:
    with belvedere.connect(":memory:", autocommit=True) as connection:
        connection.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
        catalog = connection.session.catalog
    (parsed,) = parse_script(text)
    bound = bind_statement(parsed.tree, catalog)
    assert isinstance(bound, DataPlan)
    return bound.plan


def test_every_expression_comes_after_its_node() -> None:
    plan = bind_query("SELECT a + 7 FROM t WHERE b > 3")
    items = list(walk_plan_items(plan))
    assert items[0] is plan
    values = [item.value for item in items if isinstance(item, e.Literal)]
    assert sorted(values) == [3, 7]
    assert sum(isinstance(item, n.Scan) for item in items) == 1
    filters = [item for item in items if isinstance(item, n.Filter)]
    assert items.index(filters[0]) < items.index(filters[0].condition)


def test_depth_counts_the_queries_around_an_item() -> None:
    text = "SELECT (SELECT max(x.a) FROM t x WHERE x.b = (SELECT t.b FROM t y LIMIT 1)) FROM t"
    depths = [
        level for item, level in walk_items_with_depth(bind_query(text)) if isinstance(item, n.Scan)
    ]
    assert sorted(depths) == [0, 1, 2]


def test_right_side_of_a_lateral_join_is_one_query_deeper() -> None:
    def list_depths(join: str) -> list[int]:
        plan = bind_query(f"SELECT 1 FROM t JOIN {join} (SELECT b FROM t) x ON true")
        return sorted(
            level for item, level in walk_items_with_depth(plan) if isinstance(item, n.Scan)
        )

    assert list_depths("") == [0, 0]
    plan = bind_query("SELECT 1 FROM t JOIN LATERAL (SELECT t.b FROM t y) x ON true")
    depths = {level for item, level in walk_items_with_depth(plan) if isinstance(item, n.Scan)}
    assert depths == {0, 1}
