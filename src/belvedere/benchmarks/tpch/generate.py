"""Generator of TPC-H data at any scale, from a seed: Arrow tables without a loop over rows.

Keys, dates, prices and their dependencies are the specification's (an order's key is sparse, a
third of the customers have no order, a price follows from the part, a status from the dates).
Two departures: comments come from a pool of made-up sentences, and a few rows are put in so that
every query finds something at a scale of some thousand lines: every eighth part is one that a query
asks for, every two hundredth order is large, every thirtieth stock in Germany is worth a lot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from belvedere.benchmarks.tpch import words

Ints = NDArray[np.int64]
Generator = np.random.Generator

LINES_AN_ORDER = 4
LINES_MAX = 7
START, END, TODAY = (
    int(np.datetime64(day, "D").astype(np.int64))
    for day in ("1992-01-01", "1998-08-02", "1995-06-17")
)
PLANT_PART_EVERY = 8
PLANT_ORDER_EVERY = 200
PLANT_STOCK_EVERY = 30


@dataclass(frozen=True, slots=True)
class TableSizes:
    """Rows of each table; at very small scales the dimensions have a minimum size."""

    orders: int
    customers: int
    parts: int
    suppliers: int

    @property
    def fraction(self) -> str:
        """Query 11's share: 0.0001 / scale factor, computed from the number of parts."""
        return f"{0.0001 * 200_000 / self.parts:.10f}"


def compute_sizes(lines: int) -> TableSizes:
    orders = max(lines // LINES_AN_ORDER, 1)
    return TableSizes(
        orders=orders,
        customers=max(orders // 10, 150),
        parts=max(orders * 2 // 15, 200),
        suppliers=max(orders // 150, 50),
    )


def generate_tables(size: TableSizes, seed: int) -> dict[str, pa.Table]:
    """All eight tables, in the order of their foreign keys."""
    rng = np.random.default_rng(seed)
    made = {"region": _region_table(rng), "nation": _nation_table(rng)}
    made["supplier"] = _supplier_table(size, rng)
    made["part"] = _part_table(size, rng)
    made["partsupp"] = _partsupp_table(size, rng)
    made["customer"] = _customer_table(size, rng)
    made["orders"], made["lineitem"] = _orders_and_lines(size, rng)
    return made


# -- the dimensions --------------------------------------------------------------------------------


def _region_table(rng: Generator) -> pa.Table:
    count = len(words.REGIONS)
    keys = pa.array(np.arange(count), pa.int32())
    comments = _comment_array(rng, count, 152)
    return pa.table({"r_regionkey": keys, "r_name": words.REGIONS, "r_comment": comments})


def _nation_table(rng: Generator) -> pa.Table:
    names, regions = zip(*words.NATIONS, strict=True)
    return pa.table(
        {
            "n_nationkey": _integer_array(np.arange(len(names))),
            "n_name": pa.array(names),
            "n_regionkey": _integer_array(np.array(regions)),
            "n_comment": _comment_array(rng, len(names), 152),
        }
    )


def _supplier_table(size: TableSizes, rng: Generator) -> pa.Table:
    keys = np.arange(1, size.suppliers + 1)
    nations = _nation_of(keys)
    comments = _comment_array(rng, len(keys), 101).to_pylist()
    for place in range(3, len(keys), 200):
        comments[place] = "blithely Customer furiously Complaints"
    return pa.table(
        {
            "s_suppkey": _integer_array(keys),
            "s_name": _number_names("Supplier#", keys),
            "s_address": _comment_array(rng, len(keys), 40),
            "s_nationkey": _integer_array(nations),
            "s_phone": _phone_array(rng, nations),
            "s_acctbal": _decimal_array(rng.integers(-99_999, 1_000_000, len(keys))),
            "s_comment": pa.array(comments),
        }
    )


def _part_table(size: TableSizes, rng: Generator) -> pa.Table:
    keys = np.arange(1, size.parts + 1)
    maker, brand = rng.integers(1, 6, len(keys)), rng.integers(1, 6, len(keys))
    columns: dict[str, list[Any]] = {
        "p_name": _part_names(rng, len(keys)),
        "p_brand": [f"Brand#{number}" for number in (maker * 10 + brand).tolist()],
        "p_type": _pick_values(rng, words.TYPES, len(keys)).to_pylist(),
        "p_size": rng.integers(1, 51, len(keys)).tolist(),
        "p_container": _pick_values(rng, words.CONTAINERS, len(keys)).to_pylist(),
    }
    for number, place in enumerate(range(0, len(keys), PLANT_PART_EVERY)):
        for column, value in words.PLANTED_PARTS[number % len(words.PLANTED_PARTS)].items():
            columns[column][place] = value
    makers = [f"Manufacturer#{brand[6]}" for brand in columns["p_brand"]]
    return pa.table(
        {
            "p_partkey": _integer_array(keys),
            "p_name": pa.array(columns["p_name"]),
            "p_mfgr": pa.array(makers),
            "p_brand": pa.array(columns["p_brand"]),
            "p_type": pa.array(columns["p_type"]),
            "p_size": pa.array(columns["p_size"], pa.int32()),
            "p_container": pa.array(columns["p_container"]),
            "p_retailprice": _decimal_array(_retail_price(keys)),
            "p_comment": _comment_array(rng, len(keys), 22),
        }
    )


def _partsupp_table(size: TableSizes, rng: Generator) -> pa.Table:
    parts = np.repeat(np.arange(1, size.parts + 1), 4)
    suppliers = _supplier_of(size, parts, np.tile(np.arange(4), size.parts))
    available = rng.integers(1, 10_000, len(parts))
    cost = rng.integers(100, 100_001, len(parts))
    german = np.flatnonzero(_nation_of(suppliers) == words.GERMANY)[::PLANT_STOCK_EVERY]
    available[german], cost[german] = 9_999, 100_000
    return pa.table(
        {
            "ps_partkey": _integer_array(parts),
            "ps_suppkey": _integer_array(suppliers),
            "ps_availqty": _integer_array(available),
            "ps_supplycost": _decimal_array(cost),
            "ps_comment": _comment_array(rng, len(parts), 199),
        }
    )


def _customer_table(size: TableSizes, rng: Generator) -> pa.Table:
    keys = np.arange(1, size.customers + 1)
    nations = rng.integers(0, len(words.NATIONS), len(keys))
    return pa.table(
        {
            "c_custkey": _integer_array(keys),
            "c_name": _number_names("Customer#", keys),
            "c_address": _comment_array(rng, len(keys), 40),
            "c_nationkey": _integer_array(nations),
            "c_phone": _phone_array(rng, nations),
            "c_acctbal": _decimal_array(rng.integers(-99_999, 1_000_000, len(keys))),
            "c_mktsegment": _pick_values(rng, words.SEGMENTS, len(keys)),
            "c_comment": _comment_array(rng, len(keys), 117),
        }
    )


# -- orders and their lines ------------------------------------------------------------------------


def _orders_and_lines(size: TableSizes, rng: Generator) -> tuple[pa.Table, pa.Table]:
    places = np.arange(size.orders)
    keys = places // 8 * 32 + places % 8 + 1
    dates = rng.integers(START, END + 1, size.orders)
    lines = rng.integers(1, LINES_MAX + 1, size.orders)
    large = places % PLANT_ORDER_EVERY == 7
    lines[large] = LINES_MAX
    order = np.repeat(places, lines)
    numbers = np.arange(len(order)) - np.repeat(np.cumsum(lines) - lines, lines) + 1
    lineitem, charged, shipped = _lineitem_table(
        size, rng, keys[order], dates[order], numbers, large[order]
    )
    total = np.bincount(order, charged, size.orders).round().astype(np.int64)
    open_lines = np.bincount(order, shipped > TODAY, size.orders)
    status = np.where(open_lines == 0, "F", np.where(open_lines == lines, "O", "P"))
    return _orders_table(size, rng, keys, dates, total, status), lineitem


def _orders_table(
    size: TableSizes, rng: Generator, keys: Ints, dates: Ints, total: Ints, status: NDArray[np.str_]
) -> pa.Table:
    with_orders = np.arange(1, size.customers + 1)
    customers = rng.choice(with_orders[with_orders % 3 != 0], size.orders)
    return pa.table(
        {
            "o_orderkey": _integer_array(keys),
            "o_custkey": _integer_array(customers),
            "o_orderstatus": pa.array(status),
            "o_totalprice": _decimal_array(total),
            "o_orderdate": _date_array(dates),
            "o_orderpriority": _pick_values(rng, words.PRIORITIES, size.orders),
            "o_clerk": _number_names("Clerk#", rng.integers(1, 1001, size.orders)),
            "o_shippriority": _integer_array(np.zeros(size.orders, np.int64)),
            "o_comment": _comment_array(rng, size.orders, 79),
        }
    )


def _lineitem_table(
    size: TableSizes,
    rng: Generator,
    keys: Ints,
    ordered: Ints,
    numbers: Ints,
    large: NDArray[np.bool_],
) -> tuple[pa.Table, NDArray[np.float64], Ints]:
    """The lines, the cents that each adds to its order's price, and the ship dates."""
    count = len(keys)
    parts = rng.integers(1, size.parts + 1, count)
    quantity = np.where(large, 45, 1) + rng.integers(0, np.where(large, 6, 50))
    price = quantity * _retail_price(parts)
    discount, tax = rng.integers(0, 11, count), rng.integers(0, 9, count)
    shipped = ordered + rng.integers(1, 122, count)
    received = shipped + rng.integers(1, 31, count)
    returned = np.where(rng.integers(0, 2, count) == 0, "R", "A")
    table = pa.table(
        {
            "l_orderkey": _integer_array(keys),
            "l_partkey": _integer_array(parts),
            "l_suppkey": _integer_array(_supplier_of(size, parts, rng.integers(0, 4, count))),
            "l_linenumber": _integer_array(numbers),
            "l_quantity": _decimal_array(quantity * 100),
            "l_extendedprice": _decimal_array(price),
            "l_discount": _decimal_array(discount),
            "l_tax": _decimal_array(tax),
            "l_returnflag": pa.array(np.where(received <= TODAY, returned, "N")),
            "l_linestatus": pa.array(np.where(shipped > TODAY, "O", "F")),
            "l_shipdate": _date_array(shipped),
            "l_commitdate": _date_array(ordered + rng.integers(30, 91, count)),
            "l_receiptdate": _date_array(received),
            "l_shipinstruct": _pick_values(rng, words.INSTRUCTIONS, count),
            "l_shipmode": _pick_values(rng, words.MODES, count),
            "l_comment": _comment_array(rng, count, 44),
        }
    )
    return table, price * (1 - discount / 100) * (1 + tax / 100), shipped


def _supplier_of(size: TableSizes, parts: Ints, which: Ints) -> Ints:
    """The `which`-th of a part's four suppliers, spread as the specification says.

    With few suppliers the step is kept below a third of them, so that the four stay four.
    """
    count = size.suppliers
    steps = (count - 1) // 3 - count // 4 + 1
    return (parts + which * (count // 4 + (parts - 1) // count % steps)) % count + 1


def _nation_of(suppliers: Ints) -> Ints:
    """Nations in turn, so that each has suppliers at any scale."""
    return suppliers % len(words.NATIONS)


def _retail_price(parts: Ints) -> Ints:
    """The price in cents."""
    return 90_000 + parts // 10 % 20_001 + 100 * (parts % 1000)


# -- columns ---------------------------------------------------------------------------------------


def _integer_array(values: NDArray[Any]) -> pa.Array:
    return pa.array(values.astype(np.int32))


def _date_array(days: Ints) -> pa.Array:
    return pa.array(days.astype(np.int32)).cast(pa.date32())


def _decimal_array(cents: Ints) -> pa.Array:
    """Cents as decimal(15, 2): each value is its low 64 bits and its sign."""
    wide = np.empty((len(cents), 2), np.int64)
    wide[:, 0] = cents
    wide[:, 1] = cents >> 63
    return pa.Array.from_buffers(pa.decimal128(15, 2), len(cents), [None, pa.py_buffer(wide)])


def _pick_values(rng: Generator, choices: tuple[str, ...], count: int) -> pa.Array:
    return pa.array(choices).take(pa.array(rng.integers(0, len(choices), count)))


def _number_names(prefix: str, numbers: Ints) -> pa.Array:
    return pa.array([f"{prefix}{number:09}" for number in numbers.tolist()])


def _phone_array(rng: Generator, nations: Ints) -> pa.Array:
    parts = zip(
        (nations + 10).tolist(),
        rng.integers(100, 1000, len(nations)).tolist(),
        rng.integers(100, 1000, len(nations)).tolist(),
        rng.integers(1000, 10_000, len(nations)).tolist(),
        strict=True,
    )
    return pa.array([f"{code}-{a}-{b}-{c}" for code, a, b, c in parts])


def _part_names(rng: Generator, count: int) -> list[str]:
    """Names of five colours each."""
    picked = rng.integers(0, len(words.COLOURS), (count, 5)).tolist()
    return [" ".join(words.COLOURS[number] for number in row) for row in picked]


def _comment_array(rng: Generator, count: int, length_max: int) -> pa.Array:
    """Sentences from a pool of a thousand, cut to at most `length_max` characters."""
    picked = rng.integers(0, len(words.SENTENCE), (1000, 25)).tolist()
    lengths = rng.integers(length_max // 3, length_max + 1, 1000).tolist()
    sentences = [" ".join(words.SENTENCE[number] for number in row) for row in picked]
    pool = [text[:length].strip() for text, length in zip(sentences, lengths, strict=True)]
    return pa.array(pool).take(pa.array(rng.integers(0, len(pool), count)))
