"""Transactions that lose a race and are run again."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from belvedere.database import Database
from belvedere.txn.transaction.transaction import Transaction
from tests.txn.deadline import until
from tests.txn.shop import get, put, update


def test_run_tries_again_until_it_wins(shop: Database) -> None:
    for number in range(4):
        put(shop, "product", (number, "0"))
    attempts: list[Any] = []

    def count(txn: Transaction) -> None:
        number = len(attempts)
        rows = [get(txn, "product", each) for each in range(4)]
        attempts.append(rows)
        if number < 3:
            shop.run_transaction(lambda other: update(other, "product", (number, f"{number}!")))
        for each, (_, name) in enumerate(rows):
            update(txn, "product", (each, name + "?"))

    shop.run_transaction(count)
    assert [[name for _, name in rows] for rows in attempts] == [
        ["0", "0", "0", "0"],
        ["0!", "0", "0", "0"],
        ["0!", "1!", "0", "0"],
        ["0!", "1!", "2!", "0"],
    ]
    with shop.begin() as later:
        assert get(later, "product", 2) == (2, "2!?")


def test_a_loser_holds_its_locks_before_it_reads_again(shop: Database) -> None:
    """So it cannot lose to the same rival twice, however busy the row is."""
    put(shop, "product", (1, "0"))
    shop.config = replace(shop.config, statement_retries_max=1)
    names: list[str] = []
    rivals: list[threading.Thread] = []

    def interfere() -> None:
        shop.run_transaction(lambda other: update(other, "product", (1, "rival")))

    def change(txn: Transaction) -> None:
        names.append(get(txn, "product", 1)[1])
        rivals.append(threading.Thread(target=interfere))
        rivals[-1].start()
        if len(rivals) == 1:
            rivals[-1].join()
        else:
            until(lambda: not rivals[-1].is_alive() or shop.locks.waited["root"] > 0)
        update(txn, "product", (1, "mine"))

    shop.run_transaction(change)
    rivals[-1].join()
    assert names == ["0", "rival"]
    with shop.begin() as later:
        assert get(later, "product", 1) == (1, "rival"), "it came after ours"
