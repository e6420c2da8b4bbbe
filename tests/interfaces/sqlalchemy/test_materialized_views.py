"""Materialized views as constructs of a MetaData, at both doors."""

from __future__ import annotations

from decimal import Decimal

import pytest
import sqlalchemy as sa

from belvedere.sqlalchemy import (
    AlterMaterialized,
    CreateMaterialized,
    DropMaterialized,
    MaterializedView,
    RefreshMaterialized,
)


def declare(
    options: dict[str, str | int | float | bool] | None = None,
) -> tuple[sa.MetaData, sa.Table, MaterializedView]:
    metadata = sa.MetaData()
    orders = sa.Table(
        "orders",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("customer", sa.String(10)),
        sa.Column("total", sa.Numeric(10, 2)),
    )
    query = (
        sa.select(orders.c.customer, sa.func.sum(orders.c.total).label("total"))
        .where(orders.c.customer != "it's")
        .group_by(orders.c.customer)
    )
    return metadata, orders, MaterializedView("totals", metadata, query, options=options)


def test_view_comes_and_goes_with_the_tables(door: sa.Engine) -> None:
    metadata, orders, totals = declare()
    doubles = MaterializedView(
        "doubles", metadata, sa.select(totals.c.customer, (totals.c.total * 2).label("twice"))
    )
    metadata.create_all(door)
    metadata.create_all(door)  # finds them
    assert sorted(sa.inspect(door).get_materialized_view_names()) == ["doubles", "totals"]
    with door.begin() as connection:
        rows = [{"customer": "ann", "total": 3}, {"customer": "it's", "total": 5}]
        connection.execute(orders.insert(), rows)
    with door.connect() as connection:
        assert connection.execute(sa.select(totals)).all() == [("ann", Decimal("3.00"))]
        joined = sa.select(orders.c.id, doubles.c.twice).join(
            doubles, doubles.c.customer == orders.c.customer
        )
        assert connection.execute(joined).all() == [(1, Decimal("6.00"))]
    metadata.drop_all(door)
    metadata.drop_all(door)  # finds nothing
    assert sa.inspect(door).get_materialized_view_names() == []
    assert sa.inspect(door).get_table_names() == []


def test_constructs_run_by_themselves(door: sa.Engine) -> None:
    _, orders, totals = declare({"maintenance": "deferred", "max_lag": "1 h"})
    orders.create(door)
    with door.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(CreateMaterialized(totals))
        connection.execute(CreateMaterialized(totals, if_not_exists=True))
        with pytest.raises(sa.exc.ProgrammingError):
            connection.execute(CreateMaterialized(totals))
        connection.execute(orders.insert().values(customer="bob", total=2))
        connection.execute(RefreshMaterialized(totals))
        connection.exec_driver_sql("SET freshness = 'any'")
        assert connection.execute(sa.select(totals.c.total)).scalars().all() == [Decimal("2.00")]
        kind = sa.text("SELECT maintenance FROM belvedere.views WHERE name = 'totals'")
        assert connection.scalar(kind) == "deferred"
        connection.execute(AlterMaterialized(totals, {"maintenance": "immediate"}))
        assert connection.scalar(kind) == "immediate"
        connection.execute(DropMaterialized(totals))
        connection.execute(DropMaterialized(totals, if_exists=True))
        with pytest.raises(sa.exc.ProgrammingError):
            connection.execute(DropMaterialized(totals, cascade=True))


def test_names_and_options_are_quoted() -> None:
    metadata = sa.MetaData()
    query = sa.select(sa.literal(1).label("one"))
    view = MaterializedView(
        "Odd Name",
        metadata,
        query,
        schema="other",
        options={"comment": "it's", "keys": 3, "x": True},
    )
    text = str(CreateMaterialized(view).compile(dialect=sa.dialects.postgresql.dialect()))
    assert text == (
        'CREATE MATERIALIZED VIEW other."Odd Name" '
        "WITH (comment = 'it''s', keys = 3, x = true) AS SELECT 1 AS one"
    )
