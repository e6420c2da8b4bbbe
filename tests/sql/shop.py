"""A catalog to bind against: what a small shop would have."""

from __future__ import annotations

from typing import Any

from belvedere.catalog.catalog import PUBLIC_ID, Catalog, empty_catalog
from belvedere.catalog.model import (
    CatalogColumn,
    CheckConstraint,
    ForeignKey,
    Index,
    KeyPart,
    ObjectState,
    PlainView,
    Schema,
    Sequence,
    Table,
    TypeName,
    View,
)
from belvedere.plan.fields import Field, Fields
from belvedere.sql.rules.column_summary import ColumnSummary
from belvedere.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    INTEGER,
    JSON,
    NUMERIC,
    TEXT,
    TIMESTAMPTZ,
    SqlType,
    numeric_type,
    varchar_type,
)


def column(name: str, slot: int, type_: SqlType, **more: object) -> CatalogColumn:
    return CatalogColumn(name=name, slot=slot, type_name=TypeName.from_type(type_), **more)


def table(
    id_: int, name: str, columns: list[CatalogColumn], key: tuple[int, ...], **more: object
) -> Table:
    key_name = more.pop("primary_key_name", f"{name}_pkey")
    return Table(
        id=id_,
        name=name,
        schema=more.pop("schema", PUBLIC_ID),
        columns=tuple(columns),
        primary_key=key,
        primary_key_name=key_name,
        **more,
    )


CUSTOMERS = table(
    100,
    "customers",
    [
        column("id", 0, INTEGER, not_null=True),
        column("name", 1, TEXT, not_null=True),
        column("email", 2, varchar_type(80)),
        column("city", 3, TEXT),
        column("born", 4, DATE),
        column("active", 5, BOOLEAN, default="true"),
    ],
    (0,),
)
ORDERS = table(
    101,
    "orders",
    [
        column("id", 0, BIGINT, not_null=True, sequence=120),
        column("customer", 1, INTEGER, not_null=True),
        column("placed", 2, TIMESTAMPTZ, default="now()"),
        column("total", 3, numeric_type(12, 2), not_null=True, default="0"),
        column("state", 4, TEXT, default="'new'"),
        column("note", 5, JSON),
    ],
    (0,),
    checks=(CheckConstraint(name="orders_total_check", expression="total >= 0"),),
    foreign_keys=(ForeignKey(name="orders_fk", columns=(1,), parent=100, parent_columns=(0,)),),
)
LINES = table(
    102,
    "lines",
    [
        column("order_id", 0, BIGINT, not_null=True),
        column("line", 1, INTEGER, not_null=True),
        column("product", 2, TEXT, not_null=True),
        column("quantity", 3, INTEGER, not_null=True),
        column("price", 4, NUMERIC, not_null=True),
        column("amount", 5, NUMERIC, generated="quantity * price"),
    ],
    (0, 1),
)
LOG = table(
    103,
    "log",
    [
        column("row_id", 0, BIGINT, not_null=True, hidden=True),
        column("a", 1, INTEGER),
        column("old", 2, TEXT, dropped=True),
        column("b", 3, TEXT),
    ],
    (0,),
    primary_key_name="",
)
TOTALS = View(
    id=110,
    name="totals",
    schema=PUBLIC_ID,
    definition="select customer, sum(total) as sum from orders group by customer",
    columns=(column("customer", 0, INTEGER), column("sum", 1, NUMERIC)),
    inputs=(101,),
    state=ObjectState.READY,
)
BIG = PlainView(
    id=111,
    name="big",
    schema=PUBLIC_ID,
    definition="select id, total from orders where total > 1000",
    columns=(column("id", 0, BIGINT), column("worth", 1, numeric_type(12, 2))),
)
INDEXES = (
    Index(
        id=130,
        name="customers_email",
        schema=PUBLIC_ID,
        table=100,
        parts=(KeyPart(slot=2),),
        unique=True,
        constraint=True,
    ),
    Index(
        id=131,
        name="orders_customer",
        schema=PUBLIC_ID,
        table=101,
        parts=(KeyPart(slot=1), KeyPart(slot=2)),
        include=(3,),
    ),
    Index(
        id=132,
        name="customers_lower",
        schema=PUBLIC_ID,
        table=100,
        parts=(KeyPart(expression="lower(name)", type_name=TypeName.from_type(TEXT)),),
    ),
    Index(
        id=133,
        name="orders_open",
        schema=PUBLIC_ID,
        table=101,
        parts=(KeyPart(slot=2, descending=True),),
        where="state = 'new'",
    ),
    Index(
        id=134,
        name="customers_city",
        schema=PUBLIC_ID,
        table=100,
        parts=(KeyPart(slot=3),),
        state=ObjectState.BUILDING,
    ),
)
SEQUENCES = (Sequence(id=120, name="orders_id_seq", schema=PUBLIC_ID, owner=101),)
ARCHIVE = Schema(id=90, name="archive")
OLD = table(
    104,
    "orders",
    [column("id", 0, INTEGER, not_null=True), column("gone", 1, TEXT)],
    (0,),
    schema=90,
)


def shop() -> Catalog:
    objects = [CUSTOMERS, ORDERS, LINES, LOG, TOTALS, BIG, ARCHIVE, OLD, *INDEXES, *SEQUENCES]
    return empty_catalog().with_objects({one.id: one for one in objects})


def SYSTEM(schema: str, name: str) -> Fields | None:
    """One table that the system computes."""
    if (schema, name) == ("information_schema", "tables"):
        return (Field("table_schema", TEXT), Field("table_name", TEXT))
    return None


class Sized:
    """Statistics of a shop with many orders."""

    def __init__(
        self,
        rows: dict[int, float],
        distinct: dict[tuple[int, int], float],
        summaries: dict[tuple[int, int], ColumnSummary] | None = None,
    ) -> None:
        self._rows = rows
        self._distinct = distinct
        self._summaries = summaries or {}

    def row_count(self, relation: int) -> float | None:
        return self._rows.get(relation)

    def distinct_count(self, relation: int, slot: int) -> float | None:
        return self._distinct.get((relation, slot))

    def value_range(self, relation: int, slot: int) -> tuple[Any, Any] | None:
        return (1, 1_000_000) if (relation, slot) == (101, 0) else None

    def column_summary(self, relation: int, slot: int) -> ColumnSummary | None:
        return self._summaries.get((relation, slot))


def sized() -> Sized:
    rows = {100: 10_000.0, 101: 1_000_000.0, 102: 5_000_000.0, 103: 50.0, 110: 9_000.0}
    return Sized(rows, {(101, 1): 9_000.0, (101, 4): 5.0, (100, 3): 200.0, (102, 0): 1_000_000.0})
