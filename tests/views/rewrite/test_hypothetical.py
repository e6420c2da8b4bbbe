"""Views that do not exist: what they would do for a query, without a change of the database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.errors import Unsupported
from belvedere.plan import nodes as n
from belvedere.session.materialized.create import bind_query_as_written
from belvedere.views.compile.defined_view import NewView
from belvedere.views.rewrite.hypothetical import HypotheticalViews
from tests.views.rewrite.test_planner import SCHEMA
from tests.views.sql import Store, opened

JOINED = "SELECT subject, title, i_id, name FROM item JOIN author USING (a_id)"
COUNTS = "SELECT subject, count(*) AS n FROM item GROUP BY subject"
QUERY = "SELECT title, name FROM item JOIN author USING (a_id) WHERE subject = 's3'"


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with opened() as made:
        made.run(*SCHEMA)
        yield made


def make_views(store: Store, **definitions: str) -> HypotheticalViews:
    wanted = [NewView(name, text) for name, text in definitions.items()]
    registry, statistics = store.db.views.registry, store.shared.table_statistics
    return HypotheticalViews(store.db.catalog, registry, statistics, wanted)


def bind_query(store: Store, text: str) -> n.Node:
    return bind_query_as_written(store.db.catalog, text)


def test_a_view_that_would_help_is_taken_with_its_cost(store: Store) -> None:
    views = make_views(store, joined=JOINED, counts=COUNTS)
    before = store.db.catalog
    found = views.rewrite_plan(bind_query(store, QUERY))
    assert found is not None
    assert [one.view.rows.name for one in found.answers] == ["joined"]
    assert found.cost < found.cost_without / 5
    assert [(one.name, one.reason) for one in found.refusals] == [
        ("counts", "it has groups of rows")
    ]
    assert store.db.catalog is before
    assert views.row_counts["counts"] == 20


def test_a_view_that_would_not_match_says_why(store: Store) -> None:
    found = make_views(store, counts=COUNTS).rewrite_plan(bind_query(store, QUERY))
    assert found is not None
    assert not found.answers
    assert found.cost == found.cost_without


def test_what_no_view_can_be_is_unsupported(store: Store) -> None:
    with pytest.raises(Unsupported):
        make_views(store, wrong="SELECT random() AS r FROM item")
