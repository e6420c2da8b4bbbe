"""The checker against an engine that others have proved: PostgreSQL.

What PostgreSQL allows at a level must be found when the history is held against the next one, and
nothing must be found at the level itself. A checker that passes both is neither blind nor paranoid.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import psycopg
import pytest

from tests.oracle.postgres import Postgres, server
from tests.simulation.history.checker import check
from tests.simulation.history.events import (
    ABORTED,
    COMMITTED,
    READ_COMMITTED,
    SERIALIZABLE,
    SNAPSHOT,
    Op,
    Txn,
)
from tests.simulation.history.exhaustive import WORDS

APPEND = """
INSERT INTO list VALUES (%s, ARRAY[%s]) ON CONFLICT (id)
DO UPDATE SET elements = list.elements || EXCLUDED.elements RETURNING elements
"""


@pytest.fixture(scope="module")
def postgres() -> Postgres:
    return server()


@dataclass(slots=True)
class Client:
    """One connection with the transaction that is open on it."""

    connection: psycopg.Connection[tuple[object, ...]]
    record: Txn | None = None
    word: list[str] | None = None


def run(postgres: Postgres, level: str, seed: int, transactions: int = 120) -> list[Txn]:
    """Small transactions on three connections, their statements in an order the seed decides. A
    statement that has to wait is given up, with its transaction."""
    postgres.run("DROP TABLE IF EXISTS list")
    postgres.run("CREATE TABLE list (id integer PRIMARY KEY, elements integer[])")
    rng = random.Random(f"postgres/{level}/{seed}")
    clients = [Client(postgres.connect(autocommit=True)) for _ in range(3)]
    for client in clients:
        client.connection.execute("SET lock_timeout = '5ms'")
        client.connection.execute(f"SET default_transaction_isolation = '{level}'")
    history: list[Txn] = []
    numbers, clock = count(1), count(1)
    while len(history) < transactions or any(client.record for client in clients):
        client = rng.choice(clients)
        if client.record is None:
            if len(history) < transactions:
                _begin(client, f"t{len(history)}", level, clock, rng, history)
            continue
        _step(client, numbers, clock, rng)
    for client in clients:
        client.connection.close()
    rows = postgres.run("SELECT id, elements FROM list").rows
    last = Txn("last look", "last look", level, next(clock), next(clock), COMMITTED)
    last.ops.append(Op("scan", None, dict(rows)))
    return [*history, last]


def _begin(
    client: Client,
    name: str,
    level: str,
    clock: Iterator[int],
    rng: random.Random,
    history: list[Txn],
) -> None:
    client.record = Txn(name, name, level, next(clock))
    history.append(client.record)
    client.word = rng.choice(WORDS).replace("i", "r").split()
    client.connection.execute("BEGIN")


def _step(client: Client, numbers: Iterator[int], clock: Iterator[int], rng: random.Random) -> None:
    record = client.record
    assert record is not None
    assert client.word is not None
    try:
        if client.word:
            _act(client, client.word.pop(0), next(numbers))
            return
        client.connection.execute("COMMIT")
        record.outcome = COMMITTED
    except psycopg.errors.OperationalError:
        client.connection.execute("ROLLBACK")
        record.outcome = ABORTED
    record.ended = next(clock)
    client.record = client.word = None


def _act(client: Client, step: str, element: int) -> None:
    assert client.record is not None
    ops, ask = client.record.ops, client.connection.execute
    if step == "s":
        ops.append(Op("scan", None, dict(ask("SELECT id, elements FROM list").fetchall())))
        return
    id_ = "xyz".index(step[1])
    if step[0] == "a":
        [(elements,)] = ask(APPEND, (id_, element)).fetchall()
        ops.append(Op("read", id_, list(elements)[:-1]))  # type: ignore[call-overload]
        ops.append(Op("append", id_, element))
    else:
        found = ask("SELECT elements FROM list WHERE id = %s", (id_,)).fetchall()
        ops.append(Op("read", id_, found[0][0] if found else []))


@pytest.mark.parametrize(
    ("level", "stricter", "kinds"),
    [
        (READ_COMMITTED, SNAPSHOT, {"read skew", "non-repeatable read"}),
        (SNAPSHOT, SERIALIZABLE, {"write skew"}),
        (SERIALIZABLE, SERIALIZABLE, set()),
    ],
)
def test_the_checker_tells_the_levels_of_postgresql_apart(
    postgres: Postgres, seed: int, level: str, stricter: str, kinds: set[str]
) -> None:
    history = run(postgres, level, seed)
    assert check(history, level) == []
    found = {anomaly.kind for anomaly in check(history, stricter)}
    if kinds:
        assert found & kinds
    else:
        assert not found
