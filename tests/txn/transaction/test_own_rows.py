"""Scans of a transaction: its own rows are put in, also below a limit and backwards."""

from __future__ import annotations

import random

from belvedere.database import Database
from tests.txn.shop import column, delete, insert, put, table, table_of, update


def test_a_limited_scan_is_the_beginning_of_the_whole_one(memory_shop: Database, seed: int) -> None:
    rng = random.Random(seed)
    memory_shop.change_schema(
        lambda edit: edit.create_table(table_of("n", column("id"), column("v")))
    )
    put(memory_shop, "n", *[(number, 0) for number in range(0, 60, 2)])
    codec = table(memory_shop, "n").key
    for _ in range(40):
        txn = memory_shop.begin()
        rows = dict.fromkeys(range(0, 60, 2), 0)
        for number in rng.sample(range(60), rng.randrange(25)):
            if number not in rows:
                insert(txn, "n", (number, 1))
                rows[number] = 1
            elif rng.random() < 0.5:
                delete(txn, "n", number)
                del rows[number]
            else:
                update(txn, "n", (number, 2))
                rows[number] = 2
        for _ in range(10):
            low, high = sorted(rng.sample(range(70), 2))
            limit, reverse = rng.choice([None, 1, 2, 5, 30]), rng.random() < 0.5
            start, end = codec.encode((low,)), codec.encode((high,))
            scanned = txn.scan(start, end, reverse=reverse, limit=limit, batch_rows=7)
            found = [codec.decode(key)[0] for batch in scanned for key, _ in batch]
            wanted = sorted([n for n in rows if low <= n < high], reverse=reverse)
            assert found == wanted[:limit]
        txn.rollback()
