"""The law: after any history a view equals its query, as a bag, at its position."""

from __future__ import annotations

import math
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Maintenance, View
from belvedere.config import Config, Durability
from belvedere.database import Database
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.run import Interrupt, Run
from belvedere.plan import nodes as n
from belvedere.txn.contracts import Reader
from belvedere.txn.transaction import table_rows
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row
from belvedere.views.deferred.batch import (
    MaintenanceUnit,
    compute_batch_per_unit,
    write_batch_if_valid,
)
from belvedere.views.delta.sessionless_run import ENVIRONMENT, NO_SERVICES
from tests.exact import EXACT
from tests.mutations.registry import mutated
from tests.views.plans import CUSTOMERS, ORDERS, PLANS, UNORDERED

pytestmark = pytest.mark.slow

CITIES = ("Vienna", "Graz", "", None)
TOTALS = (None, Decimal("1.50"), Decimal("9.99"), Decimal("0.00"), Decimal("NaN"))
WEIGHTS = (None, 0.1, -0.0, 1e308, 1e-308, math.inf, -math.inf, math.nan)


def bind(catalog: Catalog, text: str) -> n.Node:
    return PLANS[text](catalog)


def bag(catalog: Catalog, plan: n.Node, reader: Reader) -> Counter[tuple[str, ...]]:
    run = Run(reader, (), ENVIRONMENT, NO_SERVICES, Interrupt())
    return Counter(tuple(map(canonical, row)) for row in compile_plan(catalog, plan)(run))


def canonical(value: object) -> str:
    if isinstance(value, float):
        return repr(value + 0.0)
    if isinstance(value, Decimal):
        return "NaN" if value.is_nan() else str(value.normalize(EXACT)) if value else "0"
    return repr(value)


def open_shop(path: Path | str) -> Database:
    db = Database.open(path, Config(durability=Durability.OFF), bind=bind)
    if not db.catalog.tables:
        db.change_schema(lambda edit: edit.create_table(CUSTOMERS))
        db.change_schema(lambda edit: edit.create_table(ORDERS))
    return db


def make_views(db: Database) -> None:
    for name, plan in PLANS.items():
        columns = [f"c{number}" for number in range(len(plan(db.catalog).fields))]
        db.views.create_view(f"{name}_now", name, columns=columns)
        db.views.create_view(f"{name}_later", name, Maintenance.DEFERRED, columns=columns)


def check_views(db: Database, reader: Reader, *, deferred: bool) -> None:
    catalog = db.catalog
    for name, plan in PLANS.items():
        if name in UNORDERED:
            continue
        expected = bag(catalog, plan(catalog), reader)
        for suffix in ("now", "later") if deferred else ("now",):
            view = catalog.require_relation(View, f"{name}_{suffix}")
            found = bag(catalog, db.views.registry.build_reading_plan(catalog, view), reader)
            assert found == expected, (name, suffix, reader.position)


def random_change(rng: random.Random, db: Database, txn: Transaction) -> None:
    name = rng.choice(("customers", "orders", "orders"))
    table = db.get_compiled_table(name)
    existing = [table.decode(v) for batch in txn.scan_values(table.start, table.end) for v in batch]
    row = random_row(rng, name)
    if existing and rng.random() < 0.35:
        table_rows.delete_row(txn, table, rng.choice(existing))
    elif existing and rng.random() < 0.6:
        old = rng.choice(existing)
        taken = {one[0] for one in existing}
        new = (old[0], *row[1:]) if row[0] in taken else row
        table_rows.update_row(txn, table, old, new)
    elif row[0] not in {one[0] for one in existing}:
        table_rows.insert_row(txn, table, row)


def random_row(rng: random.Random, name: str) -> Row:
    id_ = rng.randrange(8)
    if name == "customers":
        return (id_, rng.choice(CITIES), rng.choice(WEIGHTS))
    return (id_ + 100, rng.choice((None, *range(8))), rng.choice(TOTALS))


def random_history(rng: random.Random, db: Database, transactions: int) -> None:
    for number in range(transactions):
        txn = db.begin()
        for _ in range(rng.randrange(1, 5)):
            random_change(rng, db, txn)
        check_views(db, txn, deferred=False)
        if rng.random() < 0.15:
            txn.rollback()
        else:
            txn.commit()
        if number % 5 == 0:
            for view in db.views.list_deferred_views():
                db.views.catch_up_view(view)
            with db.begin() as reader:
                check_views(db, reader, deferred=True)


@pytest.mark.parametrize("store", ["memory", "rocksdb"])
def test_views_equal_their_queries_after_every_transaction(
    store: str, tmp_path: Path, rng: random.Random
) -> None:
    with open_shop(":memory:" if store == "memory" else tmp_path / "shop.db") as db:
        make_views(db)
        random_history(rng, db, 60)


def test_views_of_tables_with_rows_are_filled(rng: random.Random) -> None:
    with open_shop(":memory:") as db:
        for _ in range(30):
            with db.begin() as txn:
                random_change(rng, db, txn)
        make_views(db)
        with db.begin() as reader:
            check_views(db, reader, deferred=True)
        random_history(rng, db, 10)


def test_views_go_on_after_a_restart(tmp_path: Path, rng: random.Random) -> None:
    for _ in range(3):
        with open_shop(tmp_path / "shop.db") as db:
            if not db.catalog.views:
                make_views(db)
            random_history(rng, db, 15)


def test_immediate_and_deferred_agree_also_where_order_shows(rng: random.Random) -> None:
    with open_shop(":memory:") as db:
        make_views(db)
        random_history(rng, db, 40)
        for view in db.views.list_deferred_views():
            db.views.catch_up_view(view)
        catalog = db.catalog
        with db.begin() as reader:
            for name in UNORDERED:
                now, later = (
                    bag(
                        catalog,
                        db.views.registry.build_reading_plan(
                            catalog, catalog.require_relation(View, one)
                        ),
                        reader,
                    )
                    for one in (f"{name}_now", f"{name}_later")
                )
                assert now == later, name


def test_a_batch_of_the_log_is_applied_once_whoever_tries() -> None:
    with open_shop(":memory:") as db:
        apply_twice(db)


def test_applying_a_batch_twice_would_be_noticed() -> None:
    with mutated("view_batch_twice"):
        with open_shop(":memory:") as db, pytest.raises(AssertionError):
            apply_twice(db)


def apply_twice(db: Database) -> None:
    """Two drivers that saw the same watermark: the second must find that it moved."""
    view_id = db.views.create_view("later", "per_customer", Maintenance.DEFERRED)
    view = db.catalog.require_relation(View, "later")
    assert view.id == view_id
    start = db.views.read_view_watermark(view)
    db.run_transaction(
        lambda txn: table_rows.insert_row(
            txn, db.get_compiled_table("orders"), (1, 1, Decimal("1.00"))
        )
    )
    db.views.catch_up_view(view)
    with db.begin() as reader:
        unit = MaintenanceUnit(view.group, view.group, start, (view,))
        (batch,) = compute_batch_per_unit(db.views.registry, db.log, reader, [unit])
    write_batch_if_valid(db.commits, batch)
    with db.begin() as reader:
        expected = bag(db.catalog, PLANS["per_customer"](db.catalog), reader)
        found = bag(db.catalog, db.views.registry.build_reading_plan(db.catalog, view), reader)
        assert found == expected
