"""The statements of TPC-W: joins Q1 to Q11 and writes W1 to W13 as the Synergy paper names them,
and what the paper leaves out: the searches by title and author, and clearing a cart.

A statement draws its parameters from a `TpcwRandom`. The specification compares the SOUNDEX of
titles and names; like most implementations these searches compare a beginning instead.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from belvedere.benchmarks.tpcw.generate import (
    SUBJECTS,
    TpcwRandom,
    TpcwSize,
    make_line,
    make_order,
    make_payment,
    user_name,
)

NOW = datetime.datetime(2026, 1, 2, 9, 30)


@dataclass(slots=True)
class KeySource:
    """The keys that statements ask for: those in the data, and new ones past them."""

    random: TpcwRandom
    size: TpcwSize
    made: int = 0
    """How many keys this source has given out for new rows."""
    base: int = 1_000_000

    def new_key(self) -> int:
        self.made += 1
        return self.base + self.made

    @property
    def newest_key(self) -> int:
        return self.base + self.made


Draw = Callable[[KeySource], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class TpcwStatement:
    """`needs`: the write that makes the rows which this one is about, run before it, unmeasured."""

    name: str
    sql: str
    draw: Draw
    needs: tuple[str, ...] = ()

    @property
    def is_query(self) -> bool:
        return self.sql.lstrip().upper().startswith("SELECT")


def _order(k: KeySource) -> int:
    return k.random.rng.randint(1, k.size.orders)


def _item(k: KeySource) -> int:
    return k.random.draw_item(k.size)


def _customer(k: KeySource) -> int:
    return k.random.draw_customer(k.size)


def _subject(k: KeySource) -> str:
    return k.random.rng.choice(SUBJECTS)


def _last_item(k: KeySource) -> int:
    """The item of the newest cart, the same for all statements about it."""
    return k.newest_key % k.size.items + 1


def _make_new_customer(k: KeySource) -> tuple[Any, ...]:
    key = k.new_key()
    name, day = f"N{key}", NOW.date()
    address = k.random.rng.randint(1, k.size.addresses)
    head = (key, name, name.lower(), k.random.text(8, 15), k.random.text(8, 15), address)
    times = (day, day, NOW, NOW + datetime.timedelta(hours=2))
    return (*head, "555", f"{name}@x.com", *times, 0.1, 0.0, 0.0, day, k.random.text(100, 400))


QUERIES = (
    TpcwStatement(
        "Q1",
        "SELECT * FROM order_line, item WHERE ol_o_id = ? AND ol_i_id = i_id",
        lambda k: (_order(k),),
    ),
    TpcwStatement(
        "Q2",
        """SELECT o_id FROM customer, orders WHERE c_id = o_c_id AND c_uname = ?
           ORDER BY o_date, o_id DESC LIMIT 1""",
        lambda k: (user_name(_customer(k)),),
    ),
    TpcwStatement(
        "Q3",
        """SELECT * FROM customer, address, country
           WHERE c_addr_id = addr_id AND addr_co_id = co_id AND c_uname = ?""",
        lambda k: (user_name(_customer(k)),),
    ),
    TpcwStatement(
        "Q4",
        """SELECT * FROM item, author WHERE i_a_id = a_id AND i_subject = ?
           ORDER BY i_title LIMIT 50""",
        lambda k: (_subject(k),),
    ),
    TpcwStatement(
        "Q5",
        """SELECT i_id, i_title, a_fname, a_lname FROM item, author
           WHERE i_a_id = a_id AND i_subject = ? ORDER BY i_pub_date DESC, i_title LIMIT 50""",
        lambda k: (_subject(k),),
    ),
    TpcwStatement(
        "Q6",
        "SELECT * FROM item, author WHERE i_a_id = a_id AND i_id = ?",
        lambda k: (_item(k),),
    ),
    TpcwStatement(
        "Q7",
        """SELECT orders.*, customer.*, cx_type,
                  ship.addr_street1 AS ship_street1, ship.addr_street2 AS ship_street2,
                  ship.addr_state AS ship_state, ship.addr_zip AS ship_zip,
                  ship_co.co_name AS ship_country,
                  bill.addr_street1 AS bill_street1, bill.addr_street2 AS bill_street2,
                  bill.addr_state AS bill_state, bill.addr_zip AS bill_zip,
                  bill_co.co_name AS bill_country
           FROM customer, orders, cc_xacts, address AS ship, country AS ship_co,
                address AS bill, country AS bill_co
           WHERE o_id = ? AND cx_o_id = o_id AND c_id = o_c_id
             AND o_bill_addr_id = bill.addr_id AND bill.addr_co_id = bill_co.co_id
             AND o_ship_addr_id = ship.addr_id AND ship.addr_co_id = ship_co.co_id""",
        lambda k: (_order(k),),
    ),
    TpcwStatement(
        "Q8",
        "SELECT * FROM shopping_cart_line, item WHERE scl_i_id = i_id AND scl_sc_id = ?",
        lambda k: (k.random.rng.randint(1, 100),),
    ),
    TpcwStatement(
        "Q9",
        """SELECT j.i_id, j.i_thumbnail FROM item i, item j
           WHERE (i.i_related1 = j.i_id OR i.i_related2 = j.i_id OR i.i_related3 = j.i_id
                  OR i.i_related4 = j.i_id OR i.i_related5 = j.i_id) AND i.i_id = ?""",
        lambda k: (_item(k),),
    ),
    TpcwStatement(
        "Q10",
        """SELECT i_id, i_title, a_fname, a_lname FROM item, author, order_line
           WHERE i_id = ol_i_id AND i_a_id = a_id
             AND ol_o_id > (SELECT max(o_id) - 3333 FROM orders) AND i_subject = ?
           GROUP BY i_id, i_title, a_fname, a_lname ORDER BY sum(ol_qty) DESC LIMIT 50""",
        lambda k: (_subject(k),),
    ),
    TpcwStatement(
        "Q11",
        """SELECT ol_i_id FROM orders, order_line
           WHERE o_id = ol_o_id AND NOT (ol_i_id = ?) AND o_c_id IN (
               SELECT o_c_id FROM orders, order_line
               WHERE o_id = ol_o_id AND o_id > (SELECT max(o_id) - 10000 FROM orders)
                 AND ol_i_id = ?)
           GROUP BY ol_i_id ORDER BY sum(ol_qty) DESC LIMIT 5""",
        lambda k: (item := _item(k), item),
    ),
)

SEARCHES = (
    TpcwStatement(
        "title_search",
        """SELECT * FROM item, author WHERE i_a_id = a_id AND i_title LIKE ?
           ORDER BY i_title LIMIT 50""",
        lambda k: (k.random.rng.choice("abcdefghijkl") + "%",),
    ),
    TpcwStatement(
        "author_search",
        """SELECT * FROM item, author WHERE i_a_id = a_id AND a_lname LIKE ?
           ORDER BY i_title LIMIT 50""",
        lambda k: (k.random.rng.choice("abcdefghijkl") + "%",),
    ),
)

WRITES = (
    TpcwStatement(
        "W1",
        "INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        lambda k: make_order(k.random, k.size, k.new_key(), 3),
    ),
    TpcwStatement(
        "W2",
        """INSERT INTO cc_xacts VALUES (?, ?, ?, ?, ?, ?, ?, ?,
           (SELECT co_id FROM address, country WHERE addr_id = ? AND addr_co_id = co_id))""",
        lambda k: (
            *make_payment(k.random, k.newest_key, 99.5, NOW.date())[:8],
            k.random.rng.randint(1, k.size.addresses),
        ),
        needs=("W1",),
    ),
    TpcwStatement(
        "W3",
        "INSERT INTO order_line VALUES (?, ?, ?, ?, ?, ?)",
        lambda k: make_line(k.random, k.size, k.newest_key, 1),
        needs=("W1",),
    ),
    TpcwStatement(
        "W4",
        f"INSERT INTO customer VALUES ({', '.join('?' * 17)})",
        _make_new_customer,
    ),
    TpcwStatement(
        "W5",
        "INSERT INTO address VALUES (?, ?, ?, ?, ?, ?, ?)",
        lambda k: (
            k.new_key(),
            *(k.random.text(5, 10) for _ in range(5)),
            k.random.rng.randint(1, 92),
        ),
    ),
    TpcwStatement(
        "W6",
        "INSERT INTO shopping_cart VALUES (?, ?)",
        lambda k: (k.new_key(), NOW),
    ),
    TpcwStatement(
        "W7",
        "INSERT INTO shopping_cart_line VALUES (?, ?, ?)",
        lambda k: (k.newest_key, 2, _last_item(k)),
        needs=("W6",),
    ),
    TpcwStatement(
        "W8",
        "DELETE FROM shopping_cart_line WHERE scl_sc_id = ? AND scl_i_id = ?",
        lambda k: (k.newest_key, _last_item(k)),
        needs=("W6", "W7"),
    ),
    TpcwStatement(
        "W9",
        "UPDATE item SET i_stock = ? WHERE i_id = ?",
        lambda k: (k.random.rng.randint(10, 30), _item(k)),
    ),
    TpcwStatement(
        "W10",
        """UPDATE item SET i_cost = ?, i_image = ?, i_thumbnail = ?, i_pub_date = ?
           WHERE i_id = ?""",
        lambda k: (
            k.random.rng.randint(100, 9_999) / 100,
            f"img/{k.random.rng.random()}.gif",
            f"img/{k.random.rng.random()}.gif",
            NOW.date(),
            _item(k),
        ),
    ),
    TpcwStatement(
        "W11",
        "UPDATE shopping_cart SET sc_time = ? WHERE sc_id = ?",
        lambda k: (NOW, k.newest_key),
        needs=("W6",),
    ),
    TpcwStatement(
        "W12",
        "UPDATE shopping_cart_line SET scl_qty = ? WHERE scl_sc_id = ? AND scl_i_id = ?",
        lambda k: (k.random.rng.randint(3, 9), k.newest_key, _last_item(k)),
        needs=("W6", "W7"),
    ),
    TpcwStatement(
        "W13",
        "UPDATE customer SET c_login = ?, c_expiration = ? WHERE c_id = ?",
        lambda k: (
            NOW + datetime.timedelta(seconds=k.random.rng.randrange(10_000)),
            NOW + datetime.timedelta(hours=2),
            _customer(k),
        ),
    ),
)

CLEAR_CART = TpcwStatement(
    "clear_cart",
    "DELETE FROM shopping_cart_line WHERE scl_sc_id = ?",
    lambda k: (k.newest_key,),
    needs=("W6", "W7"),
)

STATEMENTS = {one.name: one for one in (*QUERIES, *SEARCHES, *WRITES, CLEAR_CART)}
