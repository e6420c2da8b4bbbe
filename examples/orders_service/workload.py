"""Seeded customers who use the service: the same seed makes the same calls on every database."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from orders_service import service
from orders_service.database import Connection, open_database, run_transaction

CITIES = ("Vienna", "Graz", "Linz", "Salzburg", "Innsbruck")
NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gia", "Hal")
PRODUCTS = 40
CUSTOMERS = 60
START = datetime.datetime(2026, 1, 5, 8, 0)


def load_catalog(con: Connection) -> None:
    """Categories, products, warehouses with stock, coupons and customers."""
    run_transaction(con, _load_products)
    for customer in range(1, CUSTOMERS + 1):
        name, city = NAMES[customer % len(NAMES)], CITIES[customer % len(CITIES)]
        add = partial(service.add_customer, customer=customer, name=name, city=city)
        run_transaction(con, add)


def _load_products(con: Connection) -> None:
    con.execute("INSERT INTO categories VALUES (1, NULL, 'all'), (2, 1, 'books'), (3, 1, 'tools')")
    con.execute("INSERT INTO warehouses VALUES (1, 'Vienna'), (2, 'Graz')")
    con.execute("INSERT INTO coupons VALUES ('TEN', 10, 25), ('HALF', 50, 3)")
    for product in range(1, PRODUCTS + 1):
        con.execute(
            "INSERT INTO products (id, category, name, price) VALUES ($1, $2, $3, $4)",
            [product, 2 + product % 2, f"product {product}", 5 + product],
        )
        con.execute("INSERT INTO stock VALUES ($1, 1, 30), ($1, 2, 20)", [product])


class Shopper:
    """One stream of calls. `outcomes` counts what became of them."""

    def __init__(self, con: Connection, seed: int) -> None:
        self._con = con
        self._random = random.Random(seed)
        self._clock = START
        self.outcomes: Counter[str] = Counter()

    def take_steps(self, count: int) -> None:
        for _ in range(count):
            self._clock += datetime.timedelta(minutes=self._random.randint(1, 90))
            self._take_step()

    def _take_step(self) -> None:
        name = self._random.choices(
            ["order", "pay", "ship", "cancel", "review", "restock", "price", "leave"],
            weights=[30, 22, 15, 6, 15, 6, 5, 1],
        )[0]
        call = getattr(self, f"_{name}")
        drawn = self._random.random()  # a call that is run again draws the same
        try:
            run_transaction(self._con, lambda con: call(con, random.Random(drawn)))
            self.outcomes[name] += 1
        except service.Refusal:
            self.outcomes["refused"] += 1
        except Exception as error:
            if getattr(error, "sqlstate", None) != "23503":  # foreign key: the customer has orders
                raise
            self.outcomes["kept"] += 1

    def _order(self, con: Connection, draw: random.Random) -> None:
        products = sorted(draw.sample(range(1, PRODUCTS + 1), draw.randint(1, 4)))
        wanted = [service.Wanted(p, draw.randint(1, 2), draw.randint(1, 5)) for p in products]
        coupon = draw.choice([None, None, None, "TEN", "HALF"])
        service.place_order(con, draw.randint(1, CUSTOMERS), wanted, self._clock, coupon)

    def _pay(self, con: Connection, draw: random.Random) -> None:
        for order in self._pick_order(con, draw, "open"):
            service.pay_order(con, order, draw.choice(["card", "cash"]), self._clock)

    def _ship(self, con: Connection, draw: random.Random) -> None:
        for order in self._pick_order(con, draw, "paid"):
            service.ship_order(con, order, self._clock)

    def _cancel(self, con: Connection, draw: random.Random) -> None:
        for order in self._pick_order(con, draw, "open"):
            service.cancel_order(con, order)

    def _review(self, con: Connection, draw: random.Random) -> None:
        product, customer = draw.randint(1, PRODUCTS), draw.randint(1, CUSTOMERS)
        service.review_product(con, product, customer, draw.randint(1, 5))

    def _restock(self, con: Connection, draw: random.Random) -> None:
        service.restock(con, draw.randint(1, PRODUCTS), draw.randint(1, 2), draw.randint(1, 30))

    def _price(self, con: Connection, draw: random.Random) -> None:
        service.change_price(con, draw.randint(1, PRODUCTS), draw.randint(90, 115))

    def _leave(self, con: Connection, draw: random.Random) -> None:
        service.delete_customer(con, draw.randint(1, CUSTOMERS))

    def _pick_order(self, con: Connection, draw: random.Random, status: str) -> Iterator[int]:
        orders = con.execute(
            "SELECT id FROM orders WHERE status = $1 ORDER BY id LIMIT 10", [status]
        ).fetchall()
        if orders:
            yield draw.choice(orders)[0]


def run_threads(name: str, threads: int, steps: int, seed: int) -> Counter[str]:
    """So many shoppers at once, each with a connection of its own."""
    with ThreadPoolExecutor(threads) as pool:
        seeds = [seed * 1000 + number for number in range(threads)]
        return sum(pool.map(partial(run_shopper, name, steps), seeds), Counter())


def run_shopper(name: str, steps: int, seed: int) -> Counter[str]:
    con = open_database(name)
    try:
        shopper = Shopper(con, seed)
        shopper.take_steps(steps)
        return shopper.outcomes
    finally:
        con.close()
