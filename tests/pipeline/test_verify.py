"""VERIFY by Spark: what is right is found right, and what is wrong is shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from belvedere.catalog.model import View
from belvedere.catalog.relation import compiled_view
from belvedere.errors import InvalidInput
from belvedere.interfaces import stores
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline import verify
from belvedere.pipeline.inputs import Definitions
from belvedere.pipeline.store import Store
from belvedere.session.expressions import compile_table_expression
from belvedere.session.views import bind_definition
from belvedere.views import deferred
from tests.pipeline.spark_laws import wait_for_groups

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFINITIONS = Definitions(bind_definition, compile_table_expression)


@pytest.fixture
def orders(connection: Connection) -> Connection:
    connection.execute(
        "CREATE TABLE customers (id int PRIMARY KEY, name text, score double precision)"
    )
    connection.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, customer int, price numeric(10,2), at time,"
        " spare numeric(6,1))"
    )
    for i in range(20):
        connection.execute("INSERT INTO customers VALUES (?, ?, ?)", (i, f"n{i % 4}", i / 7))
    for i in range(60):
        connection.execute(
            "INSERT INTO orders VALUES (?, ?, ?, '10:00', ?)", (i, i % 25, i * 1.25, i)
        )
    return connection


def test_a_right_view_has_no_differences(
    spark: SparkSession, shop: Path, orders: Connection
) -> None:
    orders.execute(
        "CREATE MATERIALIZED VIEW per_name AS SELECT c.name, count(*) AS n, sum(o.price) AS total,"
        " sum(c.score) AS score FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.name"
    )
    orders.execute("CREATE MATERIALIZED VIEW times AS SELECT DISTINCT at FROM orders")
    orders.execute("CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n FROM orders")
    names = ["per_name", "public.times", "total"]
    found = list(verify.run(spark, Store.of(str(shop)), names, DEFINITIONS))
    assert [(one.view, one.rows, one.ok) for one in found] == [
        ("per_name", 4, True),
        ("times", 1, True),
        ("total", 1, True),
    ]
    assert any("sum(float8)" in note for note in found[0].in_python)


def test_a_damaged_view_is_shown_with_its_rows(
    spark: SparkSession, shop: Path, orders: Connection
) -> None:
    orders.execute(
        "CREATE MATERIALIZED VIEW per_customer AS"
        " SELECT customer, count(*) AS n FROM orders GROUP BY customer"
    )
    database = stores._open[str(shop)].database
    stored = compiled_view(database.catalog, database.catalog.expect(View, "per_customer").id)
    with database.begin() as reader:
        (first, *_) = [key for batch in reader.scan(stored.start, stored.end) for key, _ in batch]
    database.commits.derive(lambda reader: [(first, None)])
    (found,) = verify.run(spark, Store.of(str(shop)), ["per_customer"], DEFINITIONS)
    assert (found.missing, found.unexpected, found.ok) == (1, 0, False)
    assert found.samples == (("0, 3", 1, 0),)


def test_a_deferred_view_is_verified_where_it_is(
    spark: SparkSession, shop: Path, orders: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.execute(
        "CREATE MATERIALIZED VIEW later WITH (maintenance = 'deferred') AS"
        " SELECT customer, max(price) AS most FROM orders GROUP BY customer"
    )
    store = Store.of(str(shop))
    monkeypatch.setattr(deferred, "CLAIM_EXPIRY_S", 3600.0)
    wait_for_groups(store, 1)
    (group,) = store.ask("groups")
    held = store.ask("claim_take", group=group["group"], owner="the test", positions_max=1000)
    orders.execute("UPDATE orders SET price = 1000 WHERE id = 0")
    (found,) = verify.run(spark, store, ["later"], DEFINITIONS)
    assert found.ok
    assert found.position == held[3] < store.position()
    with pytest.raises(InvalidInput, match="another position"):
        list(verify.run(spark, store, ["later"], DEFINITIONS, position=store.position()))
    store.ask("claim_release", claim=held)


def test_a_value_that_spark_cannot_hold_is_verified_in_python(
    spark: SparkSession, shop: Path, orders: Connection
) -> None:
    orders.execute("UPDATE orders SET spare = 'NaN' WHERE id < 2")
    orders.execute(
        "CREATE MATERIALIZED VIEW spares AS"
        " SELECT customer, sum(spare) AS spare FROM orders GROUP BY customer"
    )
    (found,) = verify.run(spark, Store.of(str(shop)), ["spares"], DEFINITIONS)
    assert (found.rows, found.ok) == (25, True)


def test_an_unknown_view_is_refused(spark: SparkSession, shop: Path, orders: Connection) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        list(verify.run(spark, Store.of(str(shop)), ["nothing"], DEFINITIONS))
