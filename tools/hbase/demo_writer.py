"""A shop of the demo: writes orders one by one, and notes each that was acknowledged.

python -m tools.hbase.demo_writer URL NOTES FIRST_ID ORDERS
"""

from __future__ import annotations

import sys
from pathlib import Path

import belvedere

CUSTOMERS = 4


def write_orders(url: str, notes: Path, first: int, orders: int) -> None:
    with belvedere.connect(url) as shop, notes.open("a") as acknowledged:
        for id_ in range(first, first + orders):
            _write_order(shop, id_)
            print(id_, file=acknowledged, flush=True)


def _write_order(shop: belvedere.Connection, id_: int) -> None:
    """Insert it; what was told not to have happened is tried again."""
    while True:
        try:
            shop.execute("INSERT INTO orders VALUES (?, ?, ?)", (id_, id_ % CUSTOMERS, id_ % 97))
            shop.commit()
            return
        except belvedere.OperationalError as error:
            shop.rollback()
            if error.sqlstate == "08007":
                raise  # whether it happened is not known: not noted, not repeated


if __name__ == "__main__":
    write_orders(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
