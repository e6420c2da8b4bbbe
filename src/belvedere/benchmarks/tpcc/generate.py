"""Rows of TPC-C for one or more warehouses, by the rules of its clause 4.3, at any scale."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TableRows = tuple[str, list[tuple[Any, ...]]]

DISTRICTS = 10
SYLLABLES = ("BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
FIRST_PAYMENT = 1_000
START_US = 1_767_225_600_000_000
"""2026-01-01 00:00 in UTC."""


@dataclass(frozen=True, slots=True)
class TpccSize:
    """What the specification fixes for one warehouse, divided by a scale factor."""

    warehouses: int = 1
    items: int = 5_000
    customers: int = 150
    """Of a district; as many orders as customers, of which 30 % are not delivered."""

    @property
    def delivered_orders(self) -> int:
        return self.customers * 7 // 10


def scale_size(scale: float, warehouses: int = 1) -> TpccSize:
    """1: a twentieth of a full warehouse, the size at which public drivers are often compared."""
    return TpccSize(warehouses, max(100, round(5_000 * scale)), max(20, round(150 * scale)))


def last_name(number: int) -> str:
    return "".join(SYLLABLES[number // power % 10] for power in (100, 10, 1))


class NonUniform:
    """Clause 2.1.6: numbers of which some are drawn more often than others."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._constants = {span: rng.randint(0, span) for span in (255, 1023, 8191)}

    def draw(self, span: int, low: int, high: int) -> int:
        rng = self._rng
        mixed = rng.randint(0, span) | rng.randint(low, high)
        return (mixed + self._constants[span]) % (high - low + 1) + low

    def draw_customer(self, size: TpccSize) -> int:
        return self.draw(1023, 1, size.customers)

    def draw_item(self, size: TpccSize) -> int:
        return self.draw(8191, 1, size.items)

    def draw_last_name(self, size: TpccSize) -> str:
        return last_name(self.draw(255, 0, min(999, size.customers - 1)))


def generate_tables(size: TpccSize, rng: random.Random) -> Iterator[TableRows]:
    """The rows of every table, a district or so at a time, parents first."""
    yield "item", [_make_item(rng, number) for number in range(1, size.items + 1)]
    for warehouse in range(1, size.warehouses + 1):
        ytd = DISTRICTS * size.customers * FIRST_PAYMENT
        address = _make_address(rng)
        yield (
            "warehouse",
            [(warehouse, _make_text(rng, 6, 10), *address, rng.randint(0, 2000), ytd)],
        )
        yield "stock", [_make_stock(rng, warehouse, item) for item in range(1, size.items + 1)]
        for district in range(1, DISTRICTS + 1):
            yield from _generate_district(size, rng, warehouse, district)


def _generate_district(
    size: TpccSize, rng: random.Random, warehouse: int, district: int
) -> Iterator[TableRows]:
    ytd, next_order = size.customers * FIRST_PAYMENT, size.customers + 1
    head = (warehouse, district, _make_text(rng, 6, 10), *_make_address(rng))
    yield "district", [(*head, rng.randint(0, 2000), ytd, next_order)]
    numbers = range(1, size.customers + 1)
    yield "customer", [_make_customer(rng, warehouse, district, number) for number in numbers]
    first = ((warehouse - 1) * DISTRICTS + district - 1) * size.customers
    yield (
        "history",
        [
            (first + c, c, district, warehouse, district, warehouse, START_US, FIRST_PAYMENT, "")
            for c in numbers
        ],
    )
    yield from _generate_orders(size, rng, warehouse, district)


def _generate_orders(
    size: TpccSize, rng: random.Random, warehouse: int, district: int
) -> Iterator[TableRows]:
    customers = rng.sample(range(1, size.customers + 1), size.customers)
    orders, lines = [], []
    for order, customer in enumerate(customers, 1):
        delivered, count = order <= size.delivered_orders, rng.randint(5, 15)
        carrier = rng.randint(1, 10) if delivered else None
        orders.append((warehouse, district, order, customer, START_US, carrier, count, 1))
        for number in range(1, count + 1):
            amount = 0 if delivered else rng.randint(1, 999_999)
            date = START_US if delivered else None
            key = (warehouse, district, order, number)
            item = rng.randint(1, size.items)
            lines.append((*key, item, warehouse, date, 5, amount, _make_text(rng, 24, 24)))
    yield "orders", orders
    yield (
        "new_order",
        [
            (warehouse, district, order)
            for order in range(size.delivered_orders + 1, len(customers) + 1)
        ],
    )
    yield "order_line", lines


def _make_item(rng: random.Random, number: int) -> tuple[Any, ...]:
    price = rng.randint(100, 10_000)
    return number, rng.randint(1, 10_000), _make_text(rng, 14, 24), price, _make_text(rng, 26, 50)


def _make_stock(rng: random.Random, warehouse: int, item: int) -> tuple[Any, ...]:
    districts = [_make_text(rng, 24, 24) for _ in range(DISTRICTS)]
    quantity = rng.randint(10, 100)
    return (warehouse, item, quantity, *districts, 0, 0, 0, _make_text(rng, 26, 50))


def _make_customer(
    rng: random.Random, warehouse: int, district: int, number: int
) -> tuple[Any, ...]:
    name = last_name(number - 1 if number <= 1000 else rng.randint(0, 999))
    credit = "BC" if rng.random() < 0.1 else "GC"
    person = (_make_text(rng, 8, 16), "OE", name, *_make_address(rng), "0123456789012345")
    account = (START_US, credit, 5_000_000, rng.randint(0, 5000), -FIRST_PAYMENT, FIRST_PAYMENT)
    return (warehouse, district, number, *person, *account, 1, 0, _make_text(rng, 300, 500))


def _make_address(rng: random.Random) -> tuple[str, str, str, str, str]:
    street, other, city = (_make_text(rng, 10, 20) for _ in range(3))
    return street, other, city, _make_text(rng, 2, 2).upper(), f"{rng.randint(0, 9999):04}11111"


def _make_text(rng: random.Random, low: int, high: int) -> str:
    return "".join(rng.choices(LETTERS, k=rng.randint(low, high)))
