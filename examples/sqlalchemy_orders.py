"""Mapped classes over a store in this process, with a materialized view as one of them."""

from __future__ import annotations

from decimal import Decimal

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from belvedere.sqlalchemy import MaterializedView


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str] = mapped_column(sa.String(40), index=True)
    total: Mapped[Decimal] = mapped_column(sa.Numeric(10, 2))


totals = MaterializedView(
    "totals",
    Base.metadata,
    sa.select(
        Order.customer,
        sa.func.sum(Order.total).label("total"),
        sa.func.count().label("orders"),
    ).group_by(Order.customer),
    primary_key=["customer"],
)


class Total(Base):
    __table__ = totals.table


def main() -> None:
    engine = sa.create_engine("belvedere:///orders.db")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all(
            [
                Order(customer="ann", total=Decimal("12.50")),
                Order(customer="ann", total=Decimal("7.50")),
                Order(customer="bob", total=Decimal("3.00")),
            ]
        )
        session.commit()
        # The view is as new as the commit.
        ann = session.get_one(Total, "ann")
        print(f"{ann.customer}: {ann.orders} orders, {ann.total}")
    engine.dispose()


if __name__ == "__main__":
    main()
