"""VERIFY by Spark: what is right is found right, and what is wrong is shown."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from belvedere.catalog.model import View
from belvedere.catalog.relation_codecs import compiled_view
from belvedere.errors import InvalidInput
from belvedere.interfaces import stores
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.jobs import verify
from belvedere.pipeline.store.client import Store
from belvedere.plan.fields import Field
from belvedere.types import NUMERIC
from belvedere.views.deferred import driver
from tests.pipeline.definitions import DEFINITIONS
from tests.pipeline.spark_laws import wait_for_groups

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    found = list(verify.verify_views(spark, Store.from_url(str(shop)), names, DEFINITIONS))
    assert [(one.view, one.rows, one.is_correct) for one in found] == [
        ("per_name", 4, True),
        ("times", 1, True),
        ("total", 1, True),
    ]
    assert any("sum(float8)" in note for note in found[0].in_python)


def test_tables_without_a_key_stand_in_sub_queries(
    spark: SparkSession, shop: Path, orders: Connection
) -> None:
    orders.execute("CREATE TABLE bare (g int, name text)")
    orders.execute("INSERT INTO bare VALUES (1, 'a'), (1, 'a'), (3, 'b')")
    orders.execute(
        "CREATE MATERIALIZED VIEW wanted AS SELECT o.customer, count(*) AS n FROM orders o"
        " WHERE EXISTS (SELECT 1 FROM bare b WHERE b.g = o.customer) OR o.price > 70"
        " GROUP BY o.customer"
    )
    (found,) = verify.verify_views(spark, Store.from_url(str(shop)), ["wanted"], DEFINITIONS)
    assert (found.is_correct, found.rows) == (True, 5)


def damage(shop: Path, view: str, rows: int = 1) -> None:
    """Take the first rows away from what is stored."""
    database = stores._open_stores[str(shop)].database
    stored = compiled_view(database.catalog, database.catalog.require_relation(View, view).id)
    with database.begin() as reader:
        keys = [key for batch in reader.scan(stored.start, stored.end) for key, _ in batch]
    database.commits.derive(lambda reader: [(key, None) for key in keys[:rows]])


def test_a_damaged_view_is_shown_with_its_rows(
    spark: SparkSession, shop: Path, orders: Connection
) -> None:
    orders.execute(
        "CREATE MATERIALIZED VIEW per_customer AS"
        " SELECT customer, count(*) AS n FROM orders GROUP BY customer"
    )
    damage(shop, "per_customer")
    (found,) = verify.verify_views(spark, Store.from_url(str(shop)), ["per_customer"], DEFINITIONS)
    assert (found.missing, found.unexpected, found.is_correct) == (1, 0, False)
    assert found.samples == (("0, 3", 1, 0),)


def test_a_deferred_view_is_verified_where_it_is(
    spark: SparkSession, shop: Path, orders: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.execute(
        "CREATE MATERIALIZED VIEW later WITH (maintenance = 'deferred') AS"
        " SELECT customer, max(price) AS most FROM orders GROUP BY customer"
    )
    store = Store.from_url(str(shop))
    monkeypatch.setattr(driver, "CLAIM_EXPIRY_S", 3600.0)
    wait_for_groups(store, 1)
    (group,) = store.call_owner_verb("groups")
    held = store.call_owner_verb(
        "claim_take", group=group["group"], owner="the test", positions_max=1000
    )
    orders.execute("UPDATE orders SET price = 1000 WHERE id = 0")
    (found,) = verify.verify_views(spark, store, ["later"], DEFINITIONS)
    assert found.is_correct
    assert found.position == held[3] < store.position()
    orders.execute("DELETE FROM orders WHERE id = 50")
    ahead = verify.verify_views(spark, store, ["later"], DEFINITIONS, position=store.position() - 1)
    assert [(one.position, one.is_correct) for one in ahead] == [(store.position() - 1, True)]
    damage(shop, "later", rows=1000)
    (found,) = verify.verify_views(spark, store, ["later"], DEFINITIONS, position=store.position())
    assert (found.position, found.is_correct) == (store.position(), False)
    assert found.missing > 20
    store.call_owner_verb("claim_release", claim=held)


def test_a_value_that_spark_cannot_hold_is_verified_in_python(
    spark: SparkSession, shop: Path, orders: Connection
) -> None:
    orders.execute("UPDATE orders SET spare = 'NaN' WHERE id < 2")
    orders.execute(
        "CREATE MATERIALIZED VIEW spares AS"
        " SELECT customer, sum(spare) AS spare FROM orders GROUP BY customer"
    )
    (found,) = verify.verify_views(spark, Store.from_url(str(shop)), ["spares"], DEFINITIONS)
    assert (found.rows, found.is_correct) == (25, True)


def test_an_unknown_view_is_refused(spark: SparkSession, shop: Path, orders: Connection) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        list(verify.verify_views(spark, Store.from_url(str(shop)), ["nothing"], DEFINITIONS))


PAST = {
    "counted": "SELECT customer, count(*) AS n, sum(price) AS total FROM orders GROUP BY customer",
    "highest": "SELECT customer, max(price) AS most FROM orders GROUP BY customer",
    "named": "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON c.id = o.customer",
    "top": "SELECT id, price FROM orders ORDER BY price DESC, id LIMIT 5",
}


def test_a_view_is_verified_at_any_position_of_the_log(
    spark: SparkSession, shop: Path, orders: Connection
) -> None:
    """Also where it was before: rows came, went and moved since."""
    for name, query in PAST.items():
        orders.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    store = Store.from_url(str(shop))
    positions = [store.position()]
    for statement in (
        "UPDATE orders SET customer = 3, price = price + 1 WHERE id < 10",
        "DELETE FROM orders WHERE id % 7 = 1",
        "INSERT INTO orders VALUES (100, 3, 9999, NULL, NULL)",
        "UPDATE customers SET name = 'new' WHERE id < 5",
    ):
        orders.execute(statement)
        positions.append(store.position())
    names = list(PAST)
    rows = set()
    for position in positions[::2]:
        found = list(verify.verify_views(spark, store, names, DEFINITIONS, position=position))
        assert [(one.position, one.is_correct) for one in found] == [(position, True)] * 4, found
        rows.add(found[2].rows)
    assert len(rows) > 1, "the views were others then"
    damage(shop, "counted")
    (then,) = verify.verify_views(spark, store, ["counted"], DEFINITIONS, position=positions[0])
    assert (then.missing, then.is_correct) == (1, False), "what is wrong now was wrong then"
    assert list((shop / "pipeline").iterdir()) == []


def test_a_position_at_which_the_view_was_another_is_refused(
    spark: SparkSession, shop: Path, orders: Connection
) -> None:
    store = Store.from_url(str(shop))
    before = store.position()
    orders.execute("CREATE MATERIALIZED VIEW v AS SELECT customer FROM orders")
    with pytest.raises(InvalidInput, match="the view was another at this position"):
        list(verify.verify_views(spark, store, ["v"], DEFINITIONS, position=before))
    made = store.position()
    orders.execute("ALTER TABLE orders ADD COLUMN more int")
    with pytest.raises(InvalidInput, match="the view was another at this position"):
        list(verify.verify_views(spark, store, ["v"], DEFINITIONS, position=made))
    for outside in (store.position() + 1, -1):
        with pytest.raises(InvalidInput, match="position is not in the log"):
            list(verify.verify_views(spark, store, ["v"], DEFINITIONS, position=outside))


def test_equal_numerics_are_the_same_text_whatever_their_scale() -> None:
    from belvedere.pipeline.jobs.verify_rows import build_row_formatter

    text = build_row_formatter((Field("n", NUMERIC),))
    for same in (
        ("0", "0E-24", "-0.00"),
        ("1.50", "1.5"),
        ("NaN", "NaN"),
        ("1E+30", "1" + "0" * 30),
    ):
        assert len({text((Decimal(one),)) for one in same}) == 1, same
