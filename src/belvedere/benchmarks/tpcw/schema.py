"""Tables and indexes of TPC-W, with its foreign keys."""

from __future__ import annotations

TABLES = {
    "country": """
        co_id int PRIMARY KEY, co_name varchar(50) NOT NULL, co_exchange double precision NOT NULL,
        co_currency varchar(18) NOT NULL""",
    "author": """
        a_id int PRIMARY KEY, a_fname varchar(20), a_lname varchar(20), a_mname varchar(20),
        a_dob date, a_bio varchar(500)""",
    "address": """
        addr_id int PRIMARY KEY, addr_street1 varchar(40), addr_street2 varchar(40),
        addr_city varchar(30), addr_state varchar(20), addr_zip varchar(10),
        addr_co_id int NOT NULL REFERENCES country""",
    "customer": """
        c_id int PRIMARY KEY, c_uname varchar(20) NOT NULL, c_passwd varchar(20),
        c_fname varchar(17), c_lname varchar(17), c_addr_id int NOT NULL REFERENCES address,
        c_phone varchar(18), c_email varchar(50), c_since date, c_last_login date,
        c_login timestamp, c_expiration timestamp, c_discount real, c_balance double precision,
        c_ytd_pmt double precision, c_birthdate date, c_data varchar(500)""",
    "item": """
        i_id int PRIMARY KEY, i_title varchar(60), i_a_id int NOT NULL REFERENCES author,
        i_pub_date date, i_publisher varchar(60), i_subject varchar(60), i_desc varchar(500),
        i_related1 int, i_related2 int, i_related3 int, i_related4 int, i_related5 int,
        i_thumbnail varchar(40), i_image varchar(40), i_srp double precision,
        i_cost double precision, i_avail date, i_stock int, i_isbn char(13), i_page int,
        i_backing varchar(15), i_dimensions varchar(25)""",
    "orders": """
        o_id int PRIMARY KEY, o_c_id int NOT NULL REFERENCES customer, o_date date,
        o_sub_total double precision, o_tax double precision, o_total double precision,
        o_ship_type varchar(10), o_ship_date date, o_bill_addr_id int NOT NULL REFERENCES address,
        o_ship_addr_id int NOT NULL REFERENCES address, o_status varchar(15)""",
    "order_line": """
        ol_id int NOT NULL, ol_o_id int NOT NULL REFERENCES orders,
        ol_i_id int NOT NULL REFERENCES item, ol_qty int, ol_discount double precision,
        ol_comments varchar(110), PRIMARY KEY (ol_id, ol_o_id)""",
    "cc_xacts": """
        cx_o_id int PRIMARY KEY REFERENCES orders, cx_type varchar(10), cx_num varchar(20),
        cx_name varchar(30), cx_expire date, cx_auth_id char(15), cx_xact_amt double precision,
        cx_xact_date date, cx_co_id int NOT NULL REFERENCES country""",
    "shopping_cart": "sc_id int PRIMARY KEY, sc_time timestamp",
    "shopping_cart_line": """
        scl_sc_id int NOT NULL REFERENCES shopping_cart, scl_qty int,
        scl_i_id int NOT NULL REFERENCES item, PRIMARY KEY (scl_sc_id, scl_i_id)""",
}

INDEXES = (
    "author (a_lname)",
    "address (addr_co_id)",
    "address (addr_zip)",
    "customer (c_addr_id)",
    "customer (c_uname)",
    "item (i_title)",
    "item (i_subject)",
    "item (i_a_id)",
    "order_line (ol_i_id)",
    "order_line (ol_o_id)",
    "country (co_name)",
    "orders (o_c_id)",
    "shopping_cart_line (scl_i_id)",
)

TOTALS = (
    """CREATE MATERIALIZED VIEW cart_totals AS
       SELECT scl_sc_id, sum(scl_qty) AS items, sum(scl_qty * i_cost) AS total, count(*) AS lines
       FROM shopping_cart_line JOIN item ON scl_i_id = i_id GROUP BY scl_sc_id""",
    """CREATE MATERIALIZED VIEW order_totals AS
       SELECT ol_o_id, sum(ol_qty) AS items, sum(ol_qty * i_cost) AS total, count(*) AS lines
       FROM order_line JOIN item ON ol_i_id = i_id GROUP BY ol_o_id""",
)
"""What a cart or an order comes to, kept inside the transactions that change it."""

ROOTS = ("author", "customer", "country")
"""The roots that the Synergy paper uses."""


def list_table_statements() -> list[str]:
    return [f"CREATE TABLE {name} ({columns})" for name, columns in TABLES.items()]


def list_index_statements() -> list[str]:
    return [f"CREATE INDEX ON {index}" for index in INDEXES]
