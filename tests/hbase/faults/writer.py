"""A process that transfers money and places orders until it is stopped or dies.

A transfer is one transaction: two balances, one shared counter, and one row that says so, with the
number that the counter then had. Every third transaction is an order with its lines instead. Before
and after each the process writes a line to its notes: `try`, then `ack`, `no` (told that it did not
happen) or `unknown`, with the id and the time, which all processes of a machine share. `--die-at N`
kills the process, like kill -9, at the N-th request of a commit that changes something, before it
is sent or after it was carried out.

    python -m tests.hbase.faults.writer URL NOTES FIRST_ID [--die-at N [--after]]
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import time
from pathlib import Path
from typing import Any, TextIO

import belvedere
from belvedere.kv.cell import is_mutation
from belvedere.kv.hbase.store import HBaseCells

ACCOUNTS = 20
PRODUCTS = 5
LINES = 3
TRANSFERS_BEFORE_DEATH = 3
RETRY_SECONDS = 0.2


def plan_death(step: int, *, after: bool) -> None:
    """Let this process die at a request of the commit after a few transfers."""
    left = itertools.count(step - 1, -1)
    carry_out = HBaseCells.execute_many

    def die_when_due(store: HBaseCells, operations: Any) -> Any:
        if not any(is_mutation(each) for each in operations) or not transfers_done.is_due():
            return carry_out(store, operations)
        due = next(left) <= 0
        if due and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = carry_out(store, operations)
        if due:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    HBaseCells.execute_many = die_when_due  # type: ignore[method-assign]


class TransferCount:
    def __init__(self) -> None:
        self.number = 0

    def is_due(self) -> bool:
        return self.number >= TRANSFERS_BEFORE_DEATH


transfers_done = TransferCount()


def transfer_until_stopped(url: str, notes: TextIO, first: int) -> None:
    choose = random.Random(first)
    for id_ in itertools.count(first):
        connection = connect_when_possible(url)
        pair = choose.sample(range(ACCOUNTS), 2)
        attempt = attempt_order if id_ % 3 == 0 else attempt_transfer
        _write_note(notes, "try", id_)
        _write_note(notes, attempt(connection, id_, *pair), id_)
        transfers_done.number += 1


def _write_note(notes: TextIO, kind: str, id_: int) -> None:
    print(kind, id_, time.monotonic(), file=notes, flush=True)


def connect_when_possible(url: str) -> belvedere.Connection:
    global _connection
    while _connection is None:
        try:
            _connection = belvedere.connect(url)
        except belvedere.OperationalError:
            time.sleep(RETRY_SECONDS)
    return _connection


_connection: belvedere.Connection | None = None


def attempt_transfer(con: belvedere.Connection, id_: int, source: int, target: int) -> str:
    """One try. What a caller may conclude: `ack`, `no` or `unknown`."""
    changes: list[tuple[str, tuple[int, ...]]] = [
        ("UPDATE account SET balance = balance - 1 WHERE id = ?", (source,)),
        ("UPDATE account SET balance = balance + 1 WHERE id = ?", (target,)),
        ("UPDATE counter SET n = n + 1 WHERE id = 0", ()),
        (
            "INSERT INTO transfer SELECT ?, ?, ?, n FROM counter WHERE id = 0",
            (id_, source, target),
        ),
    ]
    return _attempt_changes(con, changes)


def attempt_order(con: belvedere.Connection, id_: int, customer: int, other: int) -> str:
    """One try of an order with its lines."""
    changes: list[tuple[str, tuple[int, ...]]] = [
        ("INSERT INTO purchase VALUES (?, ?)", (id_, customer))
    ]
    changes += [
        ("INSERT INTO line VALUES (?, ?, ?)", (id_, number, (other + number) % PRODUCTS))
        for number in range(LINES)
    ]
    return _attempt_changes(con, changes)


def _attempt_changes(con: belvedere.Connection, changes: list[tuple[str, tuple[int, ...]]]) -> str:
    try:
        for statement, parameters in changes:
            con.execute(statement, parameters)
        con.commit()
    except belvedere.OperationalError as error:
        con.rollback()
        return "unknown" if error.sqlstate == "08007" else "no"
    return "ack"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("notes", type=Path)
    parser.add_argument("first", type=int)
    parser.add_argument("--die-at", type=int, default=0)
    parser.add_argument("--after", action="store_true")
    options = parser.parse_args()
    if options.die_at:
        plan_death(options.die_at, after=options.after)
    with options.notes.open("a") as notes:
        transfer_until_stopped(options.url, notes, options.first)


if __name__ == "__main__":
    main()
