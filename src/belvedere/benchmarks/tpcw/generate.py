"""Rows of TPC-W by the rules of its specification, for any number of customers.

Cardinalities: 92 countries, two addresses a customer, 0.9 orders a customer with 1 to 5 lines, one
payment an order, a quarter as many authors as items. The specification leaves the number of items
to the tester, as a power of ten; without a word it is the one nearest to the number of customers,
and 1,000 at least. Carts start empty.
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TableRows = tuple[str, list[tuple[Any, ...]]]

COUNTRIES = 92
SUBJECTS = (
    "ARTS BIOGRAPHIES BUSINESS CHILDREN COMPUTERS COOKING HEALTH HISTORY HOME HUMOR LITERATURE"
    " MYSTERY NON-FICTION PARENTING POLITICS REFERENCE RELIGION ROMANCE SELF-HELP SCIENCE-NATURE"
    " SCIENCE-FICTION SPORTS YOUTH TRAVEL"
).split()
SHIP_TYPES = ("AIR", "UPS", "FEDEX", "SHIP", "COURIER", "MAIL")
STATUSES = ("PROCESSING", "SHIPPED", "PENDING", "DENIED")
CARDS = ("VISA", "MASTERCARD", "DISCOVER", "AMEX", "DINERS")
BACKINGS = ("HARDBACK", "PAPERBACK", "USED", "AUDIO", "LIMITED-EDITION")
SYLLABLES = ("BA", "OG", "AL", "RI", "RE", "SE", "AT", "UL", "IN", "NG")
TODAY = datetime.date(2026, 1, 1)
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!@#$^&*()_-=+{}[]|:;,.?~ /"
_CHUNK = 5_000


@dataclass(frozen=True, slots=True)
class TpcwSize:
    customers: int
    items: int

    @property
    def authors(self) -> int:
        return max(1, self.items // 4)

    @property
    def addresses(self) -> int:
        return 2 * self.customers

    @property
    def orders(self) -> int:
        return self.customers * 9 // 10


def choose_size(customers: int, items: int | None = None) -> TpcwSize:
    power = 10 ** round(math.log10(max(customers, 1)))
    return TpcwSize(customers, items or max(1_000, power))


def user_name(number: int) -> str:
    return "".join(SYLLABLES[int(digit)] for digit in str(number))


class TpcwRandom:
    """Random texts and the keys that interactions ask for."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self._pool = "".join(self.rng.choices(_LETTERS, k=200_000))

    def text(self, low: int, high: int) -> str:
        length = self.rng.randint(low, high)
        start = self.rng.randrange(len(self._pool) - length)
        return self._pool[start : start + length]

    def day(self, first: int, last: int) -> datetime.date:
        return datetime.date(first, 1, 1) + datetime.timedelta(
            self.rng.randrange((last - first) * 365)
        )

    def days_ago(self, low: int, high: int) -> datetime.date:
        return TODAY - datetime.timedelta(self.rng.randint(low, high))

    def draw_non_uniform(self, span: int, low: int, high: int) -> int:
        """The specification's NURand."""
        mixed = self.rng.randint(0, span) | self.rng.randint(low, high)
        return mixed % (high - low + 1) + low

    def draw_customer(self, size: TpcwSize) -> int:
        for limit, span in ((10_000, 1023), (40_000, 4095), (160_000, 16_383), (640_000, 65_535)):
            if size.customers < limit:
                return self.draw_non_uniform(span, 1, size.customers)
        return self.draw_non_uniform(262_143, 1, size.customers)

    def draw_item(self, size: TpcwSize) -> int:
        for limit, span in ((1_000, 63), (10_000, 511), (100_000, 4095), (1_000_000, 32_767)):
            if size.items <= limit:
                return self.draw_non_uniform(span, 1, size.items)
        return self.draw_non_uniform(524_287, 1, size.items)


def generate_tables(size: TpcwSize, seed: int) -> Iterator[TableRows]:
    """The rows of every table, some thousands at a time, parents first."""
    random_ = TpcwRandom(seed)
    makers = (
        ("country", COUNTRIES, _make_country),
        ("author", size.authors, _make_author),
        ("address", size.addresses, _make_address),
        ("customer", size.customers, _make_customer),
        ("item", size.items, _make_item),
    )
    for table, count, make in makers:
        for start in range(1, count + 1, _CHUNK):
            numbers = range(start, min(start + _CHUNK, count + 1))
            yield table, [make(random_, size, number) for number in numbers]
    for start in range(1, size.orders + 1, _CHUNK):
        yield from _generate_orders(
            random_, size, range(start, min(start + _CHUNK, size.orders + 1))
        )


def _make_country(r: TpcwRandom, size: TpcwSize, number: int) -> tuple[Any, ...]:
    return number, f"Country {number}", round(r.rng.uniform(0.1, 100), 4), r.text(5, 18)


def _make_author(r: TpcwRandom, size: TpcwSize, number: int) -> tuple[Any, ...]:
    names = (r.text(3, 20), r.text(1, 20), r.text(1, 20))
    return (number, *names, r.day(1800, 1990), r.text(125, 500))


def _make_address(r: TpcwRandom, size: TpcwSize, number: int) -> tuple[Any, ...]:
    place = (r.text(15, 40), r.text(15, 40), r.text(4, 30), r.text(2, 20), r.text(5, 10))
    return (number, *place, r.rng.randint(1, COUNTRIES))


def _make_customer(r: TpcwRandom, size: TpcwSize, number: int) -> tuple[Any, ...]:
    name, since = user_name(number), r.days_ago(1, 730)
    last = min(since + datetime.timedelta(r.rng.randint(0, 60)), TODAY)
    login = datetime.datetime(2026, 1, 1, 12)
    return (
        number,
        name,
        name.lower(),
        r.text(8, 15),
        r.text(8, 15),
        r.rng.randint(1, size.addresses),
        r.text(9, 16),
        f"{name}@{r.text(2, 9)}.com",
        since,
        last,
        login,
        login + datetime.timedelta(hours=2),
        r.rng.randint(0, 50) / 100,
        0.0,
        r.rng.randint(0, 99_999) / 100,
        r.day(1880, 2000),
        r.text(100, 400),
    )


def _make_item(r: TpcwRandom, size: TpcwSize, number: int) -> tuple[Any, ...]:
    author = number if number <= size.authors else r.rng.randint(1, size.authors)
    published, price = r.day(1930, 2000), r.rng.randint(100, 99_999) / 100
    return (
        number,
        r.text(14, 60),
        author,
        published,
        r.text(14, 60),
        r.rng.choice(SUBJECTS),
        r.text(100, 500),
        *r.rng.sample(range(1, size.items + 1), 5),
        f"img{number % 100}/thumb_{number}.gif",
        f"img{number % 100}/image_{number}.gif",
        price,
        round(price * (1 - r.rng.random() / 2), 2),
        published + datetime.timedelta(r.rng.randint(1, 30)),
        r.rng.randint(10, 30),
        "".join(r.rng.choices("0123456789", k=13)),
        r.rng.randint(20, 9_999),
        r.rng.choice(BACKINGS),
        f"{r.rng.randint(1, 99)}x{r.rng.randint(1, 99)}x{r.rng.randint(1, 99)}",
    )


def _generate_orders(r: TpcwRandom, size: TpcwSize, numbers: range) -> Iterator[TableRows]:
    orders, lines, payments = [], [], []
    for number in numbers:
        count = r.rng.randint(1, 5)
        order = make_order(r, size, number, count)
        orders.append(order)
        lines += [make_line(r, size, number, line) for line in range(1, count + 1)]
        payments.append(make_payment(r, number, order[5], order[7]))
    yield "orders", orders
    yield "order_line", lines
    yield "cc_xacts", payments


def make_order(r: TpcwRandom, size: TpcwSize, number: int, lines: int) -> tuple[Any, ...]:
    date, subtotal = r.days_ago(1, 60), r.rng.randint(1_000, 999_999) / 100
    tax = round(subtotal * 0.0825, 2)
    addresses = (r.rng.randint(1, size.addresses), r.rng.randint(1, size.addresses))
    ship = date + datetime.timedelta(r.rng.randint(0, 7))
    total = round(subtotal + tax + 3 + lines, 2)
    customer = r.rng.randint(1, size.customers)
    head = (number, customer, date, subtotal, tax, total, r.rng.choice(SHIP_TYPES), ship)
    return (*head, *addresses, r.rng.choice(STATUSES))


def make_line(r: TpcwRandom, size: TpcwSize, order: int, line: int) -> tuple[Any, ...]:
    item, quantity = r.rng.randint(1, size.items), r.rng.randint(1, 300)
    return line, order, item, quantity, r.rng.randint(0, 30) / 100, r.text(20, 100)


def make_payment(r: TpcwRandom, order: int, amount: float, date: datetime.date) -> tuple[Any, ...]:
    number = "".join(r.rng.choices("0123456789", k=16))
    expire = TODAY + datetime.timedelta(r.rng.randint(10, 730))
    country = r.rng.randint(1, COUNTRIES)
    head = (order, r.rng.choice(CARDS), number, r.text(14, 30), expire, r.text(15, 15))
    return (*head, amount, date, country)
