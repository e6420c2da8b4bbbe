"""What the application does. Each function is the work of one transaction."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from orders_service.database import Connection


class Wanted(NamedTuple):
    """One line of an order that a customer asks for."""

    product: int
    warehouse: int
    quantity: int


class Refusal(Exception):
    """The service says no, and the transaction changes nothing."""


def add_customer(con: Connection, customer: int, name: str, city: str) -> None:
    con.execute(
        "INSERT INTO customers (id, email, name) VALUES ($1, $2, $3)",
        [customer, f"{name.lower()}.{customer}@example.org", name],
    )
    con.execute(
        "INSERT INTO addresses VALUES ($1, 1, $2, 'AT') "
        "ON CONFLICT (customer, number) DO UPDATE SET city = excluded.city",
        [customer, city],
    )


def place_order(
    con: Connection,
    customer: int,
    wanted: Sequence[Wanted],
    at: datetime.datetime,
    coupon: str | None = None,
) -> int:
    """The number of the new order; stock is taken from the warehouses."""
    if coupon is not None:
        _use_coupon(con, coupon)
    found = con.execute(
        "INSERT INTO orders (customer, placed, coupon) VALUES ($1, $2, $3) RETURNING id",
        [customer, at, coupon],
    ).fetchone()
    assert found is not None
    (order,) = found
    for line, item in enumerate(wanted, 1):
        price = _find_price(con, item.product)
        _move_stock(con, item.product, item.warehouse, -item.quantity, f"order {order}")
        con.execute(
            "INSERT INTO order_lines (order_id, line, product, warehouse, quantity, price) "
            "VALUES ($1, $2, $3, $4, $5, $6)",
            [order, line, item.product, item.warehouse, item.quantity, price],
        )
    return int(order)


def pay_order(con: Connection, order: int, method: str, at: datetime.datetime) -> Decimal:
    """What was paid: the total of the lines, less the percentage of the coupon."""
    _require_status(con, order, "open")
    due = con.execute(
        "SELECT round(t.total * (100 - coalesce(c.percent, 0)) / 100, 2) "
        "FROM order_lines_total t JOIN orders o ON o.id = t.order_id "
        "LEFT JOIN coupons c ON c.code = o.coupon WHERE o.id = $1",
        [order],
    ).fetchone()
    assert due is not None
    con.execute("INSERT INTO payments VALUES ($1, $2, $3, $4)", [order, due[0], method, at])
    con.execute("UPDATE orders SET status = 'paid' WHERE id = $1", [order])
    return Decimal(due[0])


def ship_order(con: Connection, order: int, at: datetime.datetime) -> None:
    _require_status(con, order, "paid")
    con.execute(
        "INSERT INTO shipments SELECT o.id, a.city, $2 FROM orders o "
        "JOIN addresses a ON a.customer = o.customer AND a.number = 1 WHERE o.id = $1",
        [order, at],
    )
    con.execute("UPDATE orders SET status = 'shipped' WHERE id = $1", [order])


def cancel_order(con: Connection, order: int) -> None:
    """Only before it is paid; the goods go back to where they came from."""
    _require_status(con, order, "open")
    lines = con.execute(
        "SELECT product, warehouse, quantity FROM order_lines WHERE order_id = $1 ORDER BY line",
        [order],
    ).fetchall()
    for product, warehouse, quantity in lines:
        _move_stock(con, product, warehouse, quantity, f"cancel {order}")
    con.execute("UPDATE orders SET status = 'cancelled' WHERE id = $1", [order])


def restock(con: Connection, product: int, warehouse: int, quantity: int) -> None:
    _move_stock(con, product, warehouse, quantity, "restock")


def review_product(con: Connection, product: int, customer: int, stars: int) -> None:
    """A second review by the same customer replaces the first."""
    con.execute(
        "INSERT INTO reviews (product, customer, stars) VALUES ($1, $2, $3) "
        "ON CONFLICT (product, customer) DO UPDATE SET stars = excluded.stars",
        [product, customer, stars],
    )


def change_price(con: Connection, product: int, percent: int) -> None:
    con.execute(
        "UPDATE products SET price = greatest(round(price * $2 / 100, 2), 0.01) WHERE id = $1",
        [product, percent],
    )


def delete_customer(con: Connection, customer: int) -> None:
    """Only one who never ordered or reviewed: the foreign keys say so."""
    con.execute("DELETE FROM customers WHERE id = $1", [customer])


def _use_coupon(con: Connection, code: str) -> None:
    used = con.execute(
        "UPDATE coupons SET uses_left = uses_left - 1 WHERE code = $1 AND uses_left > 0", [code]
    )
    if used.rowcount != 1:
        raise Refusal(f"coupon {code} is used up")


def _find_price(con: Connection, product: int) -> Decimal:
    found = con.execute(
        "SELECT price FROM products WHERE id = $1 AND NOT discontinued", [product]
    ).fetchone()
    if found is None:
        raise Refusal(f"product {product} is not sold")
    return Decimal(found[0])


def _move_stock(con: Connection, product: int, warehouse: int, change: int, reason: str) -> None:
    moved = con.execute(
        "UPDATE stock SET quantity = quantity + $3 "
        "WHERE product = $1 AND warehouse = $2 AND quantity + $3 >= 0",
        [product, warehouse, change],
    )
    if moved.rowcount != 1:
        raise Refusal(f"not enough of product {product} in warehouse {warehouse}")
    con.execute(
        "INSERT INTO stock_moves (product, warehouse, change, reason) VALUES ($1, $2, $3, $4)",
        [product, warehouse, change, reason],
    )


def _require_status(con: Connection, order: int, status: str) -> None:
    found = con.execute("SELECT status FROM orders WHERE id = $1 FOR UPDATE", [order]).fetchone()
    if found != (status,):
        raise Refusal(f"order {order} is not {status}")
