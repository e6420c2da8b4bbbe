"""Numbers that are never handed out twice."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from belvedere import failpoints
from belvedere.catalog.definitions import SequenceDefinition
from belvedere.catalog.model import Sequence
from belvedere.config import Config
from belvedere.database import Database
from belvedere.errors import InvalidInput, Unavailable
from belvedere.kv.memory import MemoryStore
from belvedere.txn.batch_atomic.recovery import open_memory
from tests.txn.conftest import open_engine
from tests.txn.shop import insert


def create(database: Database, **wanted: object) -> Sequence:
    definition = SequenceDefinition("s", **wanted)  # type: ignore[arg-type]
    database.change_schema(lambda edit: edit.create_sequence(definition))
    return database.catalog.require_relation(Sequence, "s")


def take(database: Database, count: int) -> list[int]:
    sequence = database.catalog.require_relation(Sequence, "s")
    return [database.sequences.next_value(sequence) for _ in range(count)]


def test_numbers_rise_without_gaps_in_one_process(database: Database) -> None:
    create(database)
    before = database.position
    assert take(database, 100) == list(range(1, 101))
    assert database.position == before + 4, "one record for 32 numbers"
    assert database.sequences.last_value(database.catalog.require_relation(Sequence, "s")) == 100


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"start": 5, "increment": 3, "maximum": 12}, [5, 8, 11]),
        ({"start": -1, "increment": -2, "minimum": -6, "maximum": 0}, [-1, -3, -5]),
        ({"start": 2**63 - 2}, [2**63 - 2, 2**63 - 1]),
        ({"start": -(2**63) + 1, "increment": -1, "minimum": -(2**63)}, [-(2**63) + 1, -(2**63)]),
    ],
)
def test_a_sequence_ends_at_its_bounds(
    memory_shop: Database, wanted: dict[str, int], expected: list[int]
) -> None:
    create(memory_shop, **wanted)
    assert take(memory_shop, len(expected)) == expected
    for _ in range(2):
        with pytest.raises(InvalidInput) as ended:
            take(memory_shop, 1)
        assert ended.value.sqlstate == "2200H"


def test_a_cycle_begins_again_at_the_other_bound(memory_shop: Database) -> None:
    create(memory_shop, start=3, minimum=2, maximum=5, cycle=True)
    assert take(memory_shop, 9) == [3, 4, 5, 2, 3, 4, 5, 2, 3]
    down = SequenceDefinition("d", start=3, increment=-2, minimum=1, maximum=6, cycle=True)
    memory_shop.change_schema(lambda edit: edit.create_sequence(down))
    sequence = memory_shop.catalog.require_relation(Sequence, "d")
    numbers = [memory_shop.sequences.next_value(sequence) for _ in range(6)]
    assert numbers == [3, 1, 6, 4, 2, 6]


def test_a_set_value_is_gone_on_from(memory_shop: Database) -> None:
    sequence = create(memory_shop, maximum=1000)
    take(memory_shop, 5)
    memory_shop.sequences.set_value(sequence, 500)
    assert take(memory_shop, 2) == [501, 502]
    memory_shop.sequences.set_value(sequence, 10)
    assert take(memory_shop, 1) == [11]
    for value in (0, 1001):
        with pytest.raises(InvalidInput) as refused:
            memory_shop.sequences.set_value(sequence, value)
        assert refused.value.sqlstate == "22003"


@pytest.mark.parametrize("engine", ["rocksdb", "rocksdb-full"])
def test_numbers_are_never_repeated_over_restarts(tmp_path: Path, engine: str) -> None:
    seen: list[int] = []
    with open_engine(engine, tmp_path) as database:
        create(database)
    for _ in range(4):
        with open_engine(engine, tmp_path) as database:
            seen += take(database, 10)
    assert seen == list(range(seen[0], seen[0] + 40)), "a clean close leaves no gap"


def test_numbers_are_never_repeated_after_a_crash_at_any_moment() -> None:
    """The process dies in a reservation: before it is written, or written and never told."""
    store, seen = MemoryStore(), []
    create(Database(open_memory(store, bytes), Config()))
    for place in ("commit.before_write", "commit.after_write", "acknowledge.before") * 2:
        database = Database(open_memory(store, bytes), Config())
        failpoints.arm(place, "raise", at=3)
        with pytest.raises(Unavailable):
            seen += _take_until_failure(database, seen)
        failpoints.disarm_all()
    assert len(set(seen)) == len(seen) > 6 * 32
    assert seen == sorted(seen)


def _take_until_failure(database: Database, seen: list[int]) -> list[int]:
    while True:
        seen += take(database, 1)


def test_threads_get_numbers_of_their_own(memory_shop: Database) -> None:
    create(memory_shop)
    seen: list[list[int]] = [[] for _ in range(8)]
    threads = [
        threading.Thread(target=lambda mine=mine: mine.extend(take(memory_shop, 100)))
        for mine in seen
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for mine in seen for number in mine) == list(range(1, 801))


def test_a_rolled_back_transaction_keeps_its_numbers_to_itself(memory_shop: Database) -> None:
    create(memory_shop)
    txn = memory_shop.begin()
    [number] = take(memory_shop, 1)
    insert(txn, "product", (number, "x"))
    txn.rollback()
    assert take(memory_shop, 1) == [number + 1]


def test_row_ids_are_of_their_table(memory_shop: Database) -> None:
    ids = memory_shop.sequences
    assert [ids.next_row_id(100) for _ in range(3)] == [1, 2, 3]
    assert ids.next_row_id(101) == 1
    ids.discard_reserved()
    assert ids.next_row_id(100) == 1025
