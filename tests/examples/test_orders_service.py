"""The order service of examples/ gives the same answers on Belvedere and on PostgreSQL."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.examples.snippets import run
from tests.oracle.postgres import Postgres, postgres  # noqa: F401

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STEPS = 150


class OrderService(ModuleType):
    """The modules of the example by name."""

    database: Any
    invariants: Any
    migrate: Any
    workload: Any
    __main__: Any


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> OrderService:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    found = OrderService("orders_service")
    for name in ("database", "invariants", "migrate", "workload", "__main__"):
        setattr(found, name, importlib.import_module(f"orders_service.{name}"))
    return found


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:  # noqa: F811
    """A database of its own."""
    postgres.connection.execute("DROP DATABASE IF EXISTS orders_service")
    postgres.connection.execute("CREATE DATABASE orders_service")
    yield make_database_url(postgres.uri, "orders_service")
    postgres.connection.execute("DROP DATABASE orders_service WITH (FORCE)")


def make_database_url(uri: str, name: str) -> str:
    """A URL of another database of the server that a connection string names."""
    parts = {**conninfo_to_dict(uri), "dbname": name}
    return "postgresql:///?" + urlencode({key: str(value) for key, value in parts.items()})


def run_alone(example: OrderService, name: str, seed: int) -> dict[str, Any]:
    """Migrate halfway, work, migrate to the end, work: what the tables and views then hold."""
    con = example.database.open_database(name)
    assert example.migrate.apply_migrations(con, "0004_reviews")
    example.workload.load_catalog(con)
    shopper = example.workload.Shopper(con, seed)
    shopper.take_steps(STEPS)
    assert example.migrate.apply_migrations(con)
    assert example.migrate.apply_migrations(con) == []
    shopper.take_steps(STEPS)
    if example.database.is_postgres(name):
        example.__main__.refresh_views(con)
    assert example.invariants.find_violations(con) == []
    contents = example.invariants.read_contents(con)
    con.close()
    return {"outcomes": shopper.outcomes, **contents}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_same_answers_on_both(
    example: OrderService, postgres_url: str, tmp_path: Path, seed: int
) -> None:
    ours = run_alone(example, str(tmp_path / "shop.db"), seed)
    assert example.database.is_postgres(postgres_url)
    theirs = run_alone(example, postgres_url, seed)
    assert ours == theirs
    assert ours["outcomes"].total() == 2 * STEPS
    assert all(ours[view] for view in ("order_totals", "best_customers", "revenue_by_category"))


def test_threads_on_both(example: OrderService, postgres_url: str, tmp_path: Path) -> None:
    for name in (str(tmp_path / "shop.db"), postgres_url):
        con = example.database.open_database(name)
        example.migrate.apply_migrations(con)
        example.workload.load_catalog(con)
        example.workload.run_threads(name, threads=6, steps=40, seed=5)
        if example.database.is_postgres(name):
            example.__main__.refresh_views(con)
        assert example.invariants.find_violations(con) == []
        con.close()


@pytest.mark.parametrize("deferred", [False, True])
def test_views_equal_their_queries(example: OrderService, tmp_path: Path, deferred: bool) -> None:
    name = str(tmp_path / "shop.db")
    con = example.database.open_database(name)
    example.migrate.apply_migrations(con)
    if deferred:
        example.migrate.defer_views(con)
    example.workload.load_catalog(con)
    example.workload.run_threads(name, threads=4, steps=40, seed=6)
    for view in example.invariants.VIEWS:
        found = con.execute(f"VERIFY MATERIALIZED VIEW {view}").fetchone()
        assert found[-1] is True, found
    con.close()


def test_violations_are_found(example: OrderService, tmp_path: Path) -> None:
    """The checks can fail: stock that nobody moved, and a status without a payment."""
    con = example.database.open_database(str(tmp_path / "shop.db"))
    example.migrate.apply_migrations(con)
    example.workload.load_catalog(con)
    example.workload.Shopper(con, 7).take_steps(30)
    con.execute("UPDATE stock SET quantity = quantity + 1 WHERE product = 3 AND warehouse = 1")
    con.execute("UPDATE orders SET status = 'paid' WHERE status = 'open'")
    con.commit()
    assert len(example.invariants.find_violations(con)) == 2
    con.close()


def test_command_runs(tmp_path: Path) -> None:
    shown = run(
        [sys.executable, "-W", "error", "-m", "orders_service", str(tmp_path / "shop.db")], EXAMPLES
    )
    assert "violations: none" in shown
