"""The tables of TPC-C. Money is in cents and rates are in hundredths of a percent, as integers.

sqlite3 has no decimal type, and the same statements run on every system; sums stay exact.
Instants are microseconds for the same reason.
"""

from __future__ import annotations

_ADDRESS = "street_1 text, street_2 text, city text, state text, zip text"


def _prefix_columns(prefix: str, columns: str) -> str:
    return ", ".join(f"{prefix}_{column.strip()}" for column in columns.split(","))


_DISTRICTS = ", ".join(f"s_dist_{number:02} text NOT NULL" for number in range(1, 11))

TABLES = (
    f"""CREATE TABLE warehouse (
        w_id integer PRIMARY KEY, w_name text, {_prefix_columns("w", _ADDRESS)},
        w_tax integer NOT NULL, w_ytd bigint NOT NULL)""",
    f"""CREATE TABLE district (
        d_w_id integer NOT NULL REFERENCES warehouse (w_id), d_id integer NOT NULL,
        d_name text, {_prefix_columns("d", _ADDRESS)},
        d_tax integer NOT NULL, d_ytd bigint NOT NULL, d_next_o_id integer NOT NULL,
        PRIMARY KEY (d_w_id, d_id))""",
    """CREATE TABLE item (
        i_id integer PRIMARY KEY, i_im_id integer, i_name text NOT NULL,
        i_price integer NOT NULL, i_data text)""",
    f"""CREATE TABLE customer (
        c_w_id integer NOT NULL, c_d_id integer NOT NULL, c_id integer NOT NULL,
        c_first text NOT NULL, c_middle text, c_last text NOT NULL,
        {_prefix_columns("c", _ADDRESS)}, c_phone text, c_since bigint, c_credit text NOT NULL,
        c_credit_lim bigint, c_discount integer NOT NULL, c_balance bigint NOT NULL,
        c_ytd_payment bigint NOT NULL, c_payment_cnt integer NOT NULL,
        c_delivery_cnt integer NOT NULL, c_data text,
        PRIMARY KEY (c_w_id, c_d_id, c_id),
        FOREIGN KEY (c_w_id, c_d_id) REFERENCES district (d_w_id, d_id))""",
    "CREATE INDEX customer_name ON customer (c_w_id, c_d_id, c_last, c_first)",
    """CREATE TABLE history (
        h_id bigint PRIMARY KEY, h_c_id integer NOT NULL, h_c_d_id integer NOT NULL,
        h_c_w_id integer NOT NULL, h_d_id integer NOT NULL, h_w_id integer NOT NULL,
        h_date bigint, h_amount bigint NOT NULL, h_data text)""",
    f"""CREATE TABLE stock (
        s_w_id integer NOT NULL REFERENCES warehouse (w_id),
        s_i_id integer NOT NULL REFERENCES item (i_id),
        s_quantity integer NOT NULL, {_DISTRICTS}, s_ytd bigint NOT NULL,
        s_order_cnt integer NOT NULL, s_remote_cnt integer NOT NULL, s_data text,
        PRIMARY KEY (s_w_id, s_i_id))""",
    """CREATE TABLE orders (
        o_w_id integer NOT NULL, o_d_id integer NOT NULL, o_id integer NOT NULL,
        o_c_id integer NOT NULL, o_entry_d bigint, o_carrier_id integer,
        o_ol_cnt integer NOT NULL, o_all_local integer NOT NULL,
        PRIMARY KEY (o_w_id, o_d_id, o_id),
        FOREIGN KEY (o_w_id, o_d_id, o_c_id) REFERENCES customer (c_w_id, c_d_id, c_id))""",
    "CREATE INDEX orders_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)",
    """CREATE TABLE new_order (
        no_w_id integer NOT NULL, no_d_id integer NOT NULL, no_o_id integer NOT NULL,
        PRIMARY KEY (no_w_id, no_d_id, no_o_id),
        FOREIGN KEY (no_w_id, no_d_id, no_o_id) REFERENCES orders (o_w_id, o_d_id, o_id))""",
    """CREATE TABLE order_line (
        ol_w_id integer NOT NULL, ol_d_id integer NOT NULL, ol_o_id integer NOT NULL,
        ol_number integer NOT NULL, ol_i_id integer NOT NULL, ol_supply_w_id integer,
        ol_delivery_d bigint, ol_quantity integer NOT NULL, ol_amount bigint NOT NULL,
        ol_dist_info text,
        PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number),
        FOREIGN KEY (ol_w_id, ol_d_id, ol_o_id) REFERENCES orders (o_w_id, o_d_id, o_id))""",
)

VIEWS = (
    """CREATE MATERIALIZED VIEW open_orders AS
        SELECT no_w_id, no_d_id, count(*) AS orders FROM new_order GROUP BY no_w_id, no_d_id""",
    """CREATE MATERIALIZED VIEW district_sales AS
        SELECT ol_w_id, ol_d_id, count(*) AS lines, sum(ol_amount) AS amount
        FROM order_line GROUP BY ol_w_id, ol_d_id""",
    """CREATE MATERIALIZED VIEW payments_by_district AS
        SELECT h_w_id, h_d_id, count(*) AS payments, sum(h_amount) AS amount
        FROM history GROUP BY h_w_id, h_d_id""",
    """CREATE MATERIALIZED VIEW orders_by_customer AS
        SELECT o_w_id, o_d_id, o_c_id, count(*) AS orders, max(o_id) AS latest
        FROM orders GROUP BY o_w_id, o_d_id, o_c_id""",
)
"""What an application would keep beside the tables; maintained inside every transaction."""
