"""The five transactions of TPC-C, as a terminal runs them one after the other."""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from belvedere.benchmarks.tpcc.generate import DISTRICTS, START_US, NonUniform, TpccSize
from belvedere.benchmarks.tpcc.peers import TransactionPeer

WEIGHTS = {"new_order": 45, "payment": 43, "order_status": 4, "delivery": 4, "stock_level": 4}
UNKNOWN_ITEM_SHARE = 0.01
REMOTE_ITEM_SHARE = 0.01
REMOTE_PAYMENT_SHARE = 0.15
BY_NAME_SHARE = 0.6

ITEM = "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?"
WAREHOUSE_TAX = "SELECT w_tax FROM warehouse WHERE w_id = ?"
DISTRICT = "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?"
NEXT_ORDER = "UPDATE district SET d_next_o_id = ? WHERE d_w_id = ? AND d_id = ?"
DISCOUNT = (
    "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
)
INSERT_ORDER = "INSERT INTO orders VALUES (?, ?, ?, ?, ?, NULL, ?, ?)"
INSERT_NEW_ORDER = "INSERT INTO new_order VALUES (?, ?, ?)"
STOCK = {
    district: f"SELECT s_quantity, s_data, s_ytd, s_order_cnt, s_remote_cnt, s_dist_{district:02} "
    "FROM stock WHERE s_w_id = ? AND s_i_id = ?"
    for district in range(1, DISTRICTS + 1)
}
UPDATE_STOCK = (
    "UPDATE stock SET s_quantity = ?, s_ytd = ?, s_order_cnt = ?, s_remote_cnt = ? "
    "WHERE s_w_id = ? AND s_i_id = ?"
)
INSERT_LINE = "INSERT INTO order_line VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, ?)"
WAREHOUSE = (
    "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?"
)
PAY_WAREHOUSE = "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?"
DISTRICT_ADDRESS = (
    "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district "
    "WHERE d_w_id = ? AND d_id = ?"
)
PAY_DISTRICT = "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?"
CUSTOMER = (
    "SELECT c_id, c_first, c_middle, c_last, c_credit, c_balance, c_ytd_payment, c_payment_cnt, "
    "c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
)
CUSTOMERS_BY_NAME = (
    "SELECT c_id, c_first, c_middle, c_last, c_credit, c_balance, c_ytd_payment, c_payment_cnt, "
    "c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first"
)
PAY_CUSTOMER = (
    "UPDATE customer SET c_balance = ?, c_ytd_payment = ?, c_payment_cnt = ? "
    "WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
)
PAY_BAD_CUSTOMER = (
    "UPDATE customer SET c_balance = ?, c_ytd_payment = ?, c_payment_cnt = ?, c_data = ? "
    "WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
)
INSERT_HISTORY = "INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
LATEST_ORDER = (
    "SELECT o_id, o_carrier_id, o_entry_d FROM orders "
    "WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1"
)
ORDER_LINES = (
    "SELECT ol_supply_w_id, ol_i_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line "
    "WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
)
OLDEST_NEW_ORDER = (
    "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1"
)
DELETE_NEW_ORDER = "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?"
ORDER_CUSTOMER = "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?"
SET_CARRIER = "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?"
DELIVER_LINES = (
    "UPDATE order_line SET ol_delivery_d = ? WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
)
SUM_LINES = (
    "SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
)
CREDIT_CUSTOMER = (
    "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 "
    "WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
)
NEXT_ORDER_ID = "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?"
LOW_STOCK = (
    "SELECT count(DISTINCT ol_i_id) FROM order_line JOIN stock "
    "ON s_w_id = ol_w_id AND s_i_id = ol_i_id "
    "WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? AND ol_o_id >= ? AND s_quantity < ?"
)


class NumberSource(Iterator[int]):
    """Numbers that several threads draw."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers
        self._lock = threading.Lock()

    def __next__(self) -> int:
        with self._lock:
            return next(self._numbers)


class Terminal:
    """A stream of transactions of one warehouse. The same seed draws the same ones on any peer."""

    def __init__(
        self,
        peer: TransactionPeer,
        size: TpccSize,
        seed: int,
        history: Iterator[int],
        warehouse: int | None = None,
    ) -> None:
        """At a warehouse, or at one that is drawn."""
        self._peer = peer
        self._size = size
        self._rng = random.Random(seed)
        self._skewed = NonUniform(self._rng)
        self._history = history
        self._warehouse = warehouse or self._rng.randint(1, size.warehouses)
        self._now = START_US
        self.done: Counter[str] = Counter()
        self.retries = 0

    def run_next(self) -> str:
        """Draw a transaction and run it until it commits or rolls back as it should; its name."""
        name = self._rng.choices(list(WEIGHTS), weights=list(WEIGHTS.values()))[0]
        self._now += 1_000_000
        self.run_named(name)
        self.done[name] += 1
        return name

    def run_named(self, name: str) -> None:
        work: Callable[[], bool] = getattr(self, f"_run_{name}")
        state = self._rng.getstate()
        while True:
            try:
                if work():
                    self._peer.commit()
                else:
                    self._peer.rollback()
                return
            except Exception as error:
                self._peer.rollback()
                if not self._peer.is_conflict(error):
                    raise
                self.retries += 1
                self._rng.setstate(state)

    def _run_new_order(self) -> bool:
        """False when an item is unknown, which one order in a hundred asks for: it is undone."""
        rng, fetch, change = self._rng, self._peer.fetch_rows, self._peer.change_rows
        warehouse, district = self._warehouse, rng.randint(1, DISTRICTS)
        customer = self._skewed.draw_customer(self._size)
        lines = self._draw_lines(warehouse)
        items = [fetch(ITEM, (item,)) for item, _, _ in lines]
        if not all(items):
            return False
        fetch(WAREHOUSE_TAX, (warehouse,))
        ((_, order),) = fetch(DISTRICT, (warehouse, district))
        fetch(DISCOUNT, (warehouse, district, customer))
        local = int(all(supply == warehouse for _, supply, _ in lines))
        change(NEXT_ORDER, (order + 1, warehouse, district))
        key = (warehouse, district, order)
        change(INSERT_ORDER, (*key, customer, self._now, len(lines), local))
        change(INSERT_NEW_ORDER, key)
        for number, ((item, supply, quantity), found) in enumerate(zip(lines, items), 1):
            info = self._take_stock(district, supply, item, quantity)
            amount = quantity * found[0][0]
            change(INSERT_LINE, (*key, number, item, supply, quantity, amount, info))
        return True

    def _draw_lines(self, warehouse: int) -> list[tuple[int, int, int]]:
        """Item, supplying warehouse and quantity of each line; each item once, in order."""
        rng, size = self._rng, self._size
        count = rng.randint(5, 15)
        items = set[int]()
        while len(items) < count:
            items.add(self._skewed.draw_item(size))
        chosen = sorted(items)
        if rng.random() < UNKNOWN_ITEM_SHARE:
            chosen[-1] = size.items + 1
        return [(item, self._draw_supplier(warehouse), rng.randint(1, 10)) for item in chosen]

    def _draw_supplier(self, warehouse: int) -> int:
        if self._size.warehouses == 1 or self._rng.random() >= REMOTE_ITEM_SHARE:
            return warehouse
        return self._draw_other_warehouse(warehouse)

    def _draw_other_warehouse(self, warehouse: int) -> int:
        drawn = self._rng.randint(1, self._size.warehouses - 1)
        return drawn + (drawn >= warehouse)

    def _take_stock(self, district: int, supply: int, item: int, quantity: int) -> str:
        ((left, _, ytd, count, remote, info),) = self._peer.fetch_rows(
            STOCK[district], (supply, item)
        )
        left = left - quantity if left >= quantity + 10 else left - quantity + 91
        changed = (left, ytd + quantity, count + 1, remote + (supply != self._warehouse))
        self._peer.change_rows(UPDATE_STOCK, (*changed, supply, item))
        return str(info)

    def _run_payment(self) -> bool:
        rng, fetch, change = self._rng, self._peer.fetch_rows, self._peer.change_rows
        warehouse, district = self._warehouse, rng.randint(1, DISTRICTS)
        home, home_district = warehouse, district
        if self._size.warehouses > 1 and rng.random() < REMOTE_PAYMENT_SHARE:
            home, home_district = self._draw_other_warehouse(warehouse), rng.randint(1, DISTRICTS)
        amount = rng.randint(100, 500_000)
        customer, *_, credit, balance, ytd, count, data = self._find_customer(home, home_district)
        fetch(WAREHOUSE, (warehouse,))
        change(PAY_WAREHOUSE, (amount, warehouse))
        fetch(DISTRICT_ADDRESS, (warehouse, district))
        change(PAY_DISTRICT, (amount, warehouse, district))
        paid = (balance - amount, ytd + amount, count + 1)
        key = (home, home_district, customer)
        if credit == "BC":
            told = f"{customer} {home_district} {home} {district} {warehouse} {amount}|{data}"
            change(PAY_BAD_CUSTOMER, (*paid, told[:500], *key))
        else:
            change(PAY_CUSTOMER, (*paid, *key))
        record = (next(self._history), customer, home_district, home, district, warehouse)
        change(INSERT_HISTORY, (*record, self._now, amount, "payment"))
        return True

    def _find_customer(self, warehouse: int, district: int) -> tuple[Any, ...]:
        """By number, or the middle one of a last name."""
        if self._rng.random() >= BY_NAME_SHARE:
            number = self._skewed.draw_customer(self._size)
            return self._peer.fetch_rows(CUSTOMER, (warehouse, district, number))[0]
        name = self._skewed.draw_last_name(self._size)
        found = self._peer.fetch_rows(CUSTOMERS_BY_NAME, (warehouse, district, name))
        return found[(len(found) - 1) // 2]

    def _run_order_status(self) -> bool:
        warehouse, district = self._warehouse, self._rng.randint(1, DISTRICTS)
        customer = self._find_customer(warehouse, district)[0]
        found = self._peer.fetch_rows(LATEST_ORDER, (warehouse, district, customer))
        for order, _, _ in found:
            self._peer.fetch_rows(ORDER_LINES, (warehouse, district, order))
        return True

    def _run_delivery(self) -> bool:
        carrier = self._rng.randint(1, 10)
        for district in range(1, DISTRICTS + 1):
            found = self._peer.fetch_rows(OLDEST_NEW_ORDER, (self._warehouse, district))
            for (order,) in found:
                self._deliver_order((self._warehouse, district, order), carrier)
        return True

    def _deliver_order(self, key: tuple[int, int, int], carrier: int) -> None:
        fetch, change = self._peer.fetch_rows, self._peer.change_rows
        change(DELETE_NEW_ORDER, key)
        ((customer,),) = fetch(ORDER_CUSTOMER, key)
        change(SET_CARRIER, (carrier, *key))
        change(DELIVER_LINES, (self._now, *key))
        ((total,),) = fetch(SUM_LINES, key)
        change(CREDIT_CUSTOMER, (int(total), key[0], key[1], customer))

    def _run_stock_level(self) -> bool:
        warehouse, district = self._warehouse, self._rng.randint(1, DISTRICTS)
        ((order,),) = self._peer.fetch_rows(NEXT_ORDER_ID, (warehouse, district))
        low = self._rng.randint(10, 20)
        self._peer.fetch_rows(LOW_STOCK, (warehouse, district, order, order - 20, low))
        return True


def number_history(size: TpccSize) -> Iterator[int]:
    """Keys for new rows of the history, behind those that were loaded."""
    return itertools.count(size.warehouses * DISTRICTS * size.customers + 1)
