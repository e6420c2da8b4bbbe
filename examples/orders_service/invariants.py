"""What must be so after any workload. Each check is a query that must give no row."""

from __future__ import annotations

from orders_service.database import Connection

VIEWS = (
    "order_totals",
    "customer_spending",
    "product_rating",
    "stock_by_product",
    "revenue_by_category",
    "never_reviewed",
    "best_customers",
)
TABLES = (
    "customers",
    "addresses",
    "categories",
    "products",
    "warehouses",
    "stock",
    "stock_moves",
    "coupons",
    "orders",
    "order_lines",
    "payments",
    "shipments",
    "reviews",
)

CHECKS = {
    "stock is what it began with and what moved": """
        SELECT s.product, s.warehouse FROM stock s
        LEFT JOIN (SELECT product, warehouse, sum(change) AS moved FROM stock_moves
                   GROUP BY product, warehouse) m
            ON m.product = s.product AND m.warehouse = s.warehouse
        WHERE s.quantity <> CASE s.warehouse WHEN 1 THEN 30 ELSE 20 END + coalesce(m.moved, 0)""",
    "an order is paid when its status says so, once": """
        SELECT o.id FROM orders o LEFT JOIN payments p ON p.order_id = o.id
        WHERE (o.status IN ('paid', 'shipped')) <> (p.order_id IS NOT NULL)""",
    "what is shipped was paid": """
        SELECT s.order_id FROM shipments s
        WHERE NOT EXISTS (SELECT 1 FROM payments p WHERE p.order_id = s.order_id)""",
    "every order has lines": """
        SELECT id FROM orders WHERE id NOT IN (SELECT order_id FROM order_lines)""",
    "a coupon was used as often as orders have it": """
        SELECT c.code FROM coupons c
        WHERE c.uses_left + (SELECT count(*) FROM orders o WHERE o.coupon = c.code)
            <> CASE c.code WHEN 'TEN' THEN 25 ELSE 3 END""",
    "totals of the view are those of the lines": """
        SELECT t.id FROM order_totals t
        WHERE t.total <> (SELECT sum(l.quantity * l.price) FROM order_lines l
                          WHERE l.order_id = t.id)""",
    "a view has each order once": """
        SELECT o.id FROM orders o LEFT JOIN order_totals t ON t.id = o.id AND t.status = o.status
        GROUP BY o.id HAVING count(t.id) <> 1""",
}


def find_violations(con: Connection) -> list[str]:
    """The names of the checks that do not hold, with a row each."""
    found = []
    for name, query in CHECKS.items():
        rows = con.execute(query).fetchall()
        if rows:
            found.append(f"{name}: {rows[0]}")
    con.commit()
    return found


def read_contents(con: Connection) -> dict[str, list[tuple[object, ...]]]:
    """The rows of every table and view, in order."""
    contents = {name: sorted(_read_rows(con, name), key=repr) for name in (*TABLES, *VIEWS)}
    con.commit()
    return contents


def _read_rows(con: Connection, name: str) -> list[tuple[object, ...]]:
    return con.execute(f"SELECT * FROM {name}").fetchall()
