"""Every mutation of the engine, with the schedule that catches it.

A schedule does something small and returns what was wrong with the result. Without the bug it must
find nothing; with the bug it must find something: both are run, each in a process of its own.
SCHEDULES is the one list; a bug without an entry fails the tests.
"""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

from belvedere import failpoints
from belvedere.codec.keys import KeyCodec, KeyColumn
from belvedere.codec.keyspace import log_key
from belvedere.config import Config, Durability
from belvedere.database import Database
from belvedere.errors import Corruption, Error, InvalidInput, Unavailable
from belvedere.kv.rocksdb import RocksStore
from belvedere.txn.transaction import table_rows
from belvedere.types import DOUBLE, NUMERIC
from tests.simulation.crash.faults.damage import current_log, log_record_ends
from tests.simulation.crash.faults.power_cut import PEOPLE, Machine, write_and_cut
from tests.simulation.crash.planted import isolation, views
from tests.simulation.crash.processes import Child, call, killed

Schedule = Callable[[Path], list[str]]


def caught(name: str, directory: Path) -> bool:
    """Whether the schedule tells the bug from its absence."""
    schedule = SCHEDULES[name]
    clean, bad = directory / "clean", directory / "bad"
    for home in (clean, bad):
        home.mkdir(parents=True)
    without = call(lambda: schedule(clean), clean / "stderr")
    if without:
        raise AssertionError(f"{name}: the schedule fails without the bug: {without}")
    return bool(call(lambda: schedule(bad), bad / "stderr", mutation=name))


# -- durability -------------------------------------------------------------------------------


def power_cut(home: Path) -> list[str]:
    """Acknowledged commits survive a power cut, and a power cut alone is no damage."""
    return write_and_cut(Machine(home / "machine", random.Random(1)), 5, None)


def failed_sync(home: Path) -> list[str]:
    """A commit whose sync failed is not acknowledged."""
    machine = Machine(home / "machine", random.Random(1))
    failpoints.arm("sync.before", "raise", at=1)
    try:
        machine.insert(1)
    except Unavailable as error:
        return [] if error.sqlstate == "08007" else [str(error)]
    return ["acknowledged"]


def unknown_outcome(home: Path) -> list[str]:
    """A failed sync is told as what it is, and nobody tries again behind the client's back."""
    machine = Machine(home / "machine", random.Random(1))
    database, table = machine.database, machine.database.get_compiled_table("people")
    failpoints.arm("sync.before", "raise", at=1)
    try:
        database.run_transaction(lambda txn: table_rows.insert_row(txn, table, (1, "one")))
    except Unavailable as error:
        return [] if error.sqlstate == "08007" else [f"a lost reply was told as {error.sqlstate}"]
    return ["acknowledged"]


def token_of_commit(home: Path) -> list[str]:
    """A token stands for the commit it was given for."""
    machine = Machine(home / "machine", random.Random(1))
    machine.insert(1)
    position = machine.database.position
    token = machine.database.position_to_token(position)
    try:
        found = machine.database.token_to_position(token)
    except InvalidInput as error:
        return [str(error)]
    return [] if found == position else [f"{found} is not {position}"]


# -- recovery ---------------------------------------------------------------------------------


def _open(home: Path, durability: Durability = Durability.FULL) -> Database:
    database = Database.open(home / "store", Config(durability=durability))
    if not database.catalog.tables:
        database.change_schema(lambda edit: edit.create_table(PEOPLE))
    return database


def _insert(database: Database, *ids: int, name: str = "name") -> int:
    with database.begin() as transaction:
        for id_ in ids:
            table_rows.insert_row(
                transaction, database.get_compiled_table("people"), (id_, f"{name} {id_}")
            )
        return transaction.commit().position


def _ids(database: Database) -> list[int]:
    table = database.get_compiled_table("people")
    with database.open_newest_reader() as reader:
        pairs = [pair for batch in reader.scan(table.start, table.end) for pair in batch]
    return [table.decode(value)[0] for _, value in pairs]


def _die(home: Path, work: Callable[[], object], points: str = "") -> None:
    """Do `work` in a child that is killed, at a boundary or when it is done."""

    def live() -> None:
        work()
        if not points:
            failpoints.arm("commit.before_section", "kill")
            _insert(_opened[0], 999)

    status, _ = Child(live, home / "child", points=points).wait()
    if not killed(status):
        raise AssertionError((home / "child").read_text())


_opened: list[Database] = []


def _write_some(home: Path, count: int, durability: Durability = Durability.FULL) -> None:
    database = _open(home, durability)
    _opened[:] = [database]
    for id_ in range(count):
        _insert(database, id_)


def lost_log(home: Path) -> list[str]:
    """A log cut at a record boundary is refused."""
    _die(home, lambda: _write_some(home, 5))
    log = current_log(home / "store")
    ends = log_record_ends(log.read_bytes())
    with log.open("r+b") as file:
        file.truncate(ends[-3])
    try:
        with _open(home) as database:
            return [f"served with {_ids(database)}"]
    except Corruption:
        return []


def exchanged_log(home: Path) -> list[str]:
    """A store whose files went back and were written on differently is refused."""
    with _open(home) as database:
        _insert(database, 1)
    shutil.copytree(home / "store", home / "other")
    with _open(home) as database:
        _insert(database, 2)
    with Database.open(home / "other") as database:
        _insert(database, 3)
    shutil.rmtree(home / "store" / "data")
    shutil.copytree(home / "other" / "data", home / "store" / "data")
    try:
        with _open(home) as database:
            return [f"served with {_ids(database)}"]
    except Corruption:
        return []


def positions(home: Path) -> list[str]:
    """A position is never given to a second transaction."""
    with _open(home) as database:
        first = _insert(database, 1)
    with _open(home) as database:
        second = _insert(database, 2)
    return [] if second == first + 1 else [f"{second} after {first}"]


def incarnation(home: Path) -> list[str]:
    """After an unclean stop without durability, tokens of before are refused."""

    def work() -> None:
        _write_some(home, 3, Durability.OFF)
        (home / "token").write_text(_opened[0].position_to_token(_opened[0].position))

    _die(home, work)
    with _open(home) as database:
        try:
            database.token_to_position((home / "token").read_text())
        except InvalidInput:
            return []
    return ["a token of before the crash is taken"]


def torn(home: Path) -> list[str]:
    """A kill between two writes leaves rows and entries together."""

    def work() -> None:
        database = _open(home, Durability.OFF)
        _insert(database, 1)
        failpoints.arm("commit.after_write", "kill", at=1)
        _insert(database, 2, 3)

    _die(home, work, points="commit.after_write=kill@99")
    with _open(home) as database:
        table = database.get_compiled_table("people")
        index = database.catalog.table_indexes(table.table.id)[0].id
        prefix = b"\x10" + index.to_bytes(4)
        entries = sum(len(b) for b in database.store.scan(prefix, prefix + b"\xff"))
        ids = _ids(database)
    return [] if len(ids) == entries else [f"{ids}, but {entries} entries"]


def long_record(home: Path) -> list[str]:
    """A record whose length field does not fit is refused."""
    with _open(home) as database:
        position = _insert(database, 1)
    engine = RocksStore.open(home / "store" / "data", create=False)
    engine.write([(log_key(position), (engine.get(log_key(position)) or b"") + b"more")])
    engine.close()
    try:
        with _open(home) as database:
            return [f"served at {database.position}"]
    except (Corruption, struct.error):
        return []


# -- log and catalog --------------------------------------------------------------------------


def slow_consumer(home: Path) -> list[str]:
    """Trimming waits for the slowest consumer."""
    with Database.open(":memory:") as database:
        database.change_schema(lambda edit: edit.create_table(PEOPLE))
        database.log.advance_consumer("slow", 2)
        for id_ in range(8):
            _insert(database, id_)
        database.trim(7)
        first = database.log.first_position
    return [] if first <= 3 else [f"the log begins at {first}, the consumer is at 2"]


def failed_catalog_change(home: Path) -> list[str]:
    """A catalog change that failed is seen by nobody."""
    database = Database.open(":memory:")
    failpoints.arm("commit.before_write", "raise", at=1)
    try:
        database.change_schema(lambda edit: edit.create_table(PEOPLE))
    except Error:
        shown = database.catalog.find_relation("people")
    return [] if shown is None else ["a table that was never made is there"]


def equal_decimals(home: Path) -> list[str]:
    encode = KeyCodec((KeyColumn(NUMERIC),)).encode
    return [] if encode((Decimal("1.0"),)) == encode((Decimal("1.00"),)) else ["1.0 is not 1.00"]


def equal_zeros(home: Path) -> list[str]:
    encode = KeyCodec((KeyColumn(DOUBLE),)).encode
    return [] if encode((0.0,)) == encode((-0.0,)) else ["0.0 is not -0.0"]


SCHEDULES: dict[str, Schedule] = {
    "ack_before_sync": power_cut,
    "sync_skipped": power_cut,
    "sync_error_swallowed": failed_sync,
    "retry_unknown": unknown_outcome,
    "token_ahead": token_of_commit,
    "anchor_skipped": lost_log,
    "chain_unchecked": exchanged_log,
    "position_reused": positions,
    "incarnation_kept": incarnation,
    "torn_batch": torn,
    "length_unchecked": long_record,
    "trim_past_consumer": slow_consumer,
    "catalog_before_data": failed_catalog_change,
    "decimal_key_by_text": equal_decimals,
    "negative_zero_by_bits": equal_zeros,
    **isolation.SCHEDULES,
    **views.SCHEDULES,
}
