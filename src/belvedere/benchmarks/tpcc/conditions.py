"""The twelve consistency conditions of TPC-C (clause 3.3.2), as queries that give what breaks them.

Each is also a materialized view: one that stays empty, and is maintained by every transaction.
"""

from __future__ import annotations

from belvedere.benchmarks.tpcc.peers import TransactionPeer

CONDITIONS = {
    "warehouse_ytd": """
        SELECT w_id FROM warehouse JOIN district ON d_w_id = w_id
        GROUP BY w_id, w_ytd HAVING w_ytd <> sum(d_ytd)""",
    "next_order": """
        SELECT d.d_w_id, d.d_id FROM district d
        JOIN (SELECT o_w_id, o_d_id, max(o_id) AS latest FROM orders GROUP BY o_w_id, o_d_id) o
            ON o.o_w_id = d.d_w_id AND o.o_d_id = d.d_id
        LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS latest FROM new_order
                   GROUP BY no_w_id, no_d_id) n
            ON n.no_w_id = d.d_w_id AND n.no_d_id = d.d_id
        WHERE d.d_next_o_id - 1 <> o.latest OR d.d_next_o_id - 1 <> n.latest""",
    "new_orders_without_gaps": """
        SELECT no_w_id, no_d_id FROM new_order GROUP BY no_w_id, no_d_id
        HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)""",
    "lines_of_a_district": """
        SELECT o.o_w_id, o.o_d_id
        FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS wanted FROM orders
              GROUP BY o_w_id, o_d_id) o
        LEFT JOIN (SELECT ol_w_id, ol_d_id, count(*) AS found FROM order_line
                   GROUP BY ol_w_id, ol_d_id) l
            ON l.ol_w_id = o.o_w_id AND l.ol_d_id = o.o_d_id
        WHERE o.wanted <> coalesce(l.found, 0)""",
    "carrier_or_new_order": """
        SELECT o_w_id, o_d_id, o_id FROM orders
        LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
        WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)""",
    "lines_of_an_order": """
        SELECT o_w_id, o_d_id, o_id FROM orders
        LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS found FROM order_line
                   GROUP BY ol_w_id, ol_d_id, ol_o_id) l
            ON l.ol_w_id = o_w_id AND l.ol_d_id = o_d_id AND l.ol_o_id = o_id
        WHERE o_ol_cnt <> coalesce(l.found, 0)""",
    "delivery_dates": """
        SELECT ol_w_id, ol_d_id, ol_o_id, ol_number FROM order_line
        JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
        WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)""",
    "warehouse_history": """
        SELECT w_id FROM warehouse JOIN history ON h_w_id = w_id
        GROUP BY w_id, w_ytd HAVING w_ytd <> sum(h_amount)""",
    "district_history": """
        SELECT d_w_id, d_id FROM district JOIN history ON h_w_id = d_w_id AND h_d_id = d_id
        GROUP BY d_w_id, d_id, d_ytd HAVING d_ytd <> sum(h_amount)""",
    "balance": """
        SELECT c.c_w_id, c.c_d_id, c.c_id FROM customer c
        LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS bought FROM orders
                   JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                   WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) b
            ON b.o_w_id = c.c_w_id AND b.o_d_id = c.c_d_id AND b.o_c_id = c.c_id
        LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid FROM history
                   GROUP BY h_c_w_id, h_c_d_id, h_c_id) h
            ON h.h_c_w_id = c.c_w_id AND h.h_c_d_id = c.c_d_id AND h.h_c_id = c.c_id
        WHERE c.c_balance <> coalesce(b.bought, 0) - coalesce(h.paid, 0)""",
    "orders_delivered": """
        SELECT o.o_w_id, o.o_d_id
        FROM (SELECT o_w_id, o_d_id, count(*) AS delivered FROM orders
              WHERE o_carrier_id IS NOT NULL GROUP BY o_w_id, o_d_id) o
        JOIN (SELECT o_w_id, o_d_id, count(*) AS made FROM orders GROUP BY o_w_id, o_d_id) a
            ON a.o_w_id = o.o_w_id AND a.o_d_id = o.o_d_id
        LEFT JOIN (SELECT no_w_id, no_d_id, count(*) AS waiting FROM new_order
                   GROUP BY no_w_id, no_d_id) n
            ON n.no_w_id = o.o_w_id AND n.no_d_id = o.o_d_id
        WHERE a.made - coalesce(n.waiting, 0) <> o.delivered""",
    "balance_and_payments": """
        SELECT c.c_w_id, c.c_d_id, c.c_id FROM customer c
        LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS bought FROM orders
                   JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                   WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) b
            ON b.o_w_id = c.c_w_id AND b.o_d_id = c.c_d_id AND b.o_c_id = c.c_id
        WHERE c.c_balance + c.c_ytd_payment <> coalesce(b.bought, 0)""",
}


def find_broken_conditions(peer: TransactionPeer) -> list[str]:
    broken = []
    for name, query in CONDITIONS.items():
        rows = peer.fetch_rows(query, ())
        if rows:
            broken.append(f"{name}: {len(rows)} rows, such as {rows[0]}")
    peer.commit()
    return broken


def require_consistency(name: str, peer: TransactionPeer) -> None:
    if broken := find_broken_conditions(peer):
        raise AssertionError(f"{name}: {'; '.join(broken)}")


def create_condition_views(peer: TransactionPeer) -> None:
    for name, query in CONDITIONS.items():
        peer.change_rows(f"CREATE MATERIALIZED VIEW broken_{name} AS {query}", ())
        peer.commit()


def read_condition_views(peer: TransactionPeer) -> dict[str, int]:
    """How many rows each view has: none, when the database is consistent."""
    found = {}
    for name in CONDITIONS:
        ((found[name],),) = peer.fetch_rows(f"SELECT count(*) FROM broken_{name}", ())
    peer.commit()
    return found
