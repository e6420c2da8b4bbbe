"""A definition on its way into the catalog: bound and compiled once, for that catalog."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from belvedere.catalog.model import ViewKind
from belvedere.errors import InvalidInput
from belvedere.session.materialized.create import bind_simplified_definition
from belvedere.sql.bind.statements.statement import bind_statement
from belvedere.sql.parse.script import parse_script
from belvedere.views.backfill.backfill_views import BuildControl
from belvedere.views.compile.compile_view import compile_auxiliary, compile_view
from belvedere.views.compile.defined_view import BoundDefinition, NewView
from belvedere.views.explain.describe_view import build_explain_lines
from tests.views.sql import Store, opened, rows_of

TABLES = (
    "CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, at timestamptz)",
    "CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, amount int)",
    "INSERT INTO customers VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO orders VALUES (1, 1, 3), (2, 2, 4), (3, 1, 3)",
)
TOTALS = (
    "SELECT name, count(*) AS n, sum(amount) AS s FROM orders o JOIN customers c"
    " ON o.customer = c.id GROUP BY name"
)
DISTINCTS = (
    "SELECT name, count(DISTINCT amount) AS d, min(amount) AS m FROM orders o JOIN customers c"
    " ON o.customer = c.id GROUP BY name"
)
COUNTED: dict[str, Callable[..., Any]] = {
    "parsed": parse_script,
    "bound": bind_statement,
    "compiled": compile_view,
    "auxiliaries compiled": compile_auxiliary,
}
ONCE = {"parsed": 1, "bound": 1, "compiled": 1}


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the parser, the binder and the compilers of views are called, from anywhere."""
    found: Counter[str] = Counter()

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            found[name] += 1
            return function(*arguments, **named)

        return counted

    modules = [module for name, module in sys.modules.items() if name.startswith("belvedere.")]
    for name, function in COUNTED.items():
        replacement = counting(name, function)
        for module in modules:
            for attribute, value in list(vars(module).items()):
                if value is function:
                    monkeypatch.setattr(module, attribute, replacement)
    return found


def counts_of(store: Store, counts: Counter[str], statement: str) -> dict[str, int]:
    counts.clear()
    store.run(statement)
    return dict(counts)


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_a_definition_is_parsed_bound_and_compiled_once(
    counts: Counter[str], maintenance: str
) -> None:
    with opened() as store:
        store.run(*TABLES)
        made = f"MATERIALIZED VIEW v WITH (maintenance = '{maintenance}') AS {TOTALS}"
        assert counts_of(store, counts, f"CREATE {made}") == ONCE
        explain = counts_of(store, counts, f"EXPLAIN CREATE {made}")
        assert explain == ONCE | {"bound": 2}  # EXPLAIN itself, and what it explains
        assert counts_of(store, counts, f"CREATE OR REPLACE {made}") == ONCE
        assert store.verified() == {"v": True}


def test_auxiliary_views_are_compiled_once_each(counts: Counter[str]) -> None:
    with opened() as store:
        store.run(*TABLES)
        first = counts_of(store, counts, f"CREATE MATERIALIZED VIEW v AS {DISTINCTS}")
        made = len(store.view("v").auxiliary_views)
        assert made > 1
        assert first == ONCE | {"auxiliaries compiled": made}
        shared = counts_of(store, counts, f"CREATE MATERIALIZED VIEW w AS {DISTINCTS}")
        assert shared == ONCE
        assert store.view("w").auxiliary_views == store.view("v").auxiliary_views
        assert set(store.verified().values()) == {True}


def test_a_view_of_a_view_binds_the_view_below_once_more(counts: Counter[str]) -> None:
    with opened() as store:
        store.run(*TABLES, f"CREATE MATERIALIZED VIEW v AS {TOTALS}")
        over = counts_of(store, counts, "CREATE MATERIALIZED VIEW w AS SELECT n FROM v WHERE s > 3")
        assert over == {"parsed": 2, "bound": 2, "compiled": 1}
        assert store.view("w").reads == (store.view("v").id,)


def test_another_schedule_compiles_nothing(counts: Counter[str]) -> None:
    with opened() as store:
        store.run(*TABLES)
        store.run(f"CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred') AS {TOTALS}")
        altered = counts_of(store, counts, "ALTER MATERIALIZED VIEW v SET (max_lag = '1 s')")
        assert altered == {"parsed": 1, "bound": 1}


def test_what_is_compiled_at_first_is_what_a_later_open_compiles() -> None:
    with opened() as store:
        store.run(*TABLES, f"CREATE MATERIALIZED VIEW v AS {DISTINCTS}")
        for view in store.db.catalog.views:
            kept = store.db.views.registry.get_maintenance_plan(store.db.catalog, view)
            store.db.views.registry._definitions.clear()
            store.db.catalog.derived_cache.clear()
            again = store.db.views.registry.get_maintenance_plan(store.db.catalog, view)
            assert again is not kept
            assert (again.stored, again.amounts) == (kept.stored, kept.amounts)
            assert build_explain_lines(store.db.catalog, again) == build_explain_lines(
                store.db.catalog, kept
            )


# -- where the plan of the statement does not hold -------------------------------------------------


def test_a_plan_of_another_catalog_is_not_used() -> None:
    """Somebody changes the catalog between the statement's binding and its commit."""
    with opened() as store:
        store.run(*TABLES)
        catalog = store.db.catalog
        text, other = "SELECT name FROM customers", "SELECT amount FROM orders"
        plan = bind_simplified_definition(catalog, other)
        for version, columns in ((catalog.version, ["amount"]), (catalog.version - 1, ["name"])):
            new = NewView("v", text, bound=BoundDefinition(plan, version))
            defined = store.db.views.registry.build_defined_view(catalog, new)
            assert [name for name, _ in defined.definition.columns] == columns


def test_a_table_that_changes_while_the_statement_runs_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with opened() as store:
        store.run(*TABLES)
        other, create = store.session(), store.db.views.create_views

        def create_views(wanted: Any) -> list[int]:
            rows_of(other, "DROP TABLE orders")
            rows_of(other, "CREATE TABLE orders (id int PRIMARY KEY, amount text)")
            return create(wanted)

        monkeypatch.setattr(store.db.views, "create_views", create_views)
        store.run("CREATE MATERIALIZED VIEW v AS SELECT id, amount FROM orders")
        view = store.view("v")
        assert [str(column.type) for column in view.columns] == ["integer", "text"]
        store.run("INSERT INTO orders VALUES (1, 'much')")
        assert store.run("SELECT * FROM v") == [(1, "much")]


def test_a_table_that_is_gone_while_the_statement_runs_is_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with opened() as store:
        store.run(*TABLES)
        other, create = store.session(), store.db.views.create_views

        def create_views(wanted: Any) -> list[int]:
            rows_of(other, "DROP TABLE orders")
            return create(wanted)

        monkeypatch.setattr(store.db.views, "create_views", create_views)
        with pytest.raises(InvalidInput, match="relation does not exist"):
            store.run("CREATE MATERIALIZED VIEW v AS SELECT id, amount FROM orders")


def test_a_view_that_is_made_again_before_the_statement_runs_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with opened() as store:
        store.run(*TABLES, f"CREATE MATERIALIZED VIEW v AS {TOTALS}")
        other, watched = store.session(), store.db.views.backfills.use_build_control

        def replace_view(build: BuildControl) -> AbstractContextManager[None]:
            """Called once the statement is bound."""
            monkeypatch.undo()
            rows_of(other, "DROP MATERIALIZED VIEW v")
            rows_of(other, f"CREATE MATERIALIZED VIEW v AS {DISTINCTS}")
            return watched(build)

        monkeypatch.setattr(store.db.views.backfills, "use_build_control", replace_view)
        store.run("CREATE MATERIALIZED VIEW w AS SELECT name FROM v")
        assert store.view("w").reads == (store.view("v").id,)


def test_a_definition_means_the_same_in_every_time_zone(counts: Counter[str]) -> None:
    """The catalog keeps the text, which is read in UTC when the store is opened again."""
    with opened() as store:
        store.run(*TABLES, "SET TIME ZONE 'Europe/Vienna'")
        created = counts_of(
            store,
            counts,
            "CREATE MATERIALIZED VIEW v AS"
            " SELECT id, timestamptz '2020-01-01 00:00' AS since FROM customers",
        )
        assert created == ONCE | {"parsed": 2, "bound": 2}
        store.run("SET TIME ZONE 'UTC'")
        since = {str(row[1]) for row in store.run("SELECT * FROM v")}
        assert since == {"2020-01-01 00:00:00+00:00"}
        assert store.verified() == {"v": True}


def test_a_definition_names_the_table_of_the_sessions_schema(counts: Counter[str]) -> None:
    with opened() as store:
        store.run(*TABLES, "CREATE SCHEMA s", "CREATE TABLE s.orders (id int PRIMARY KEY)")
        store.run("SET search_path = s", "INSERT INTO orders VALUES (7)")
        created = counts_of(store, counts, "CREATE MATERIALIZED VIEW v AS SELECT * FROM orders")
        assert created == ONCE | {"parsed": 2, "bound": 2}
        store.run("RESET search_path")
        assert store.run("SELECT * FROM s.v") == [(7,)]


def test_what_is_kept_for_a_replacement_replaces_nothing() -> None:
    with opened() as store:
        store.run(*TABLES, f"CREATE MATERIALIZED VIEW v AS {TOTALS}")
        store.run(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {DISTINCTS}")
        assert len(store.db.catalog.views) > 1
        assert {view.replaces for view in store.db.catalog.views} == {None}


def test_kinds_of_views() -> None:
    with opened() as store:
        store.run(*TABLES, f"CREATE MATERIALIZED VIEW v AS {TOTALS}")
        store.run("CREATE UNIQUE INDEX by_name ON v (name)")
        views = {view.name: view for view in store.db.catalog.views}
        assert {name: view.kind for name, view in views.items()} == {
            "v": ViewKind.USER,
            "by_name": ViewKind.INDEX,
            "by_name (auxiliary 1)": ViewKind.AUXILIARY,
        }
        assert [name for name, view in views.items() if view.is_unique] == ["by_name"]
