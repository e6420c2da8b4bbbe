"""YCSB through `con.execute`, compared with the same operations on raw rocksdict and on sqlite3.

One table of a key and ten fields of 100 bytes, durability off, one thread. Single operations first
(the goals are ratios of those), then the mixes A to F and the mix of the DQE paper (60 % reads, 20
% updates, 20 % scans of 1 to 10 rows), keys drawn from a zipfian distribution.

With the URL of a server (`postgresql://..`) the same operations go over the wire to it, compared
with PostgreSQL, both durable.
"""

from __future__ import annotations

import random
import sqlite3
import tempfile
import time
from collections.abc import Callable
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rich.progress import Progress
from rocksdict import Rdict, WriteBatch

from belvedere.benchmarks import overhead
from belvedere.benchmarks.report.measurements import BenchmarkReport, Figure, alternate_rounds
from belvedere.benchmarks.report.postgres_peer import connect_to_server, postgres_connection
from belvedere.interfaces.dbapi import Connection, connect
from belvedere.kv.rocksdb_settings import store_options

if TYPE_CHECKING:
    import psycopg

FIELDS = 10
FIELD_BYTES = 100
OPERATIONS = 1000
ZIPF = 0.99
COLUMNS = ", ".join(f"field{number} text" for number in range(FIELDS))
CREATE = f"CREATE TABLE usertable (ycsb_key text PRIMARY KEY, {COLUMNS})"
MARKS = ", ".join("?" * (FIELDS + 1))
INSERT = f"INSERT INTO usertable VALUES ({MARKS})"
READ = "SELECT * FROM usertable WHERE ycsb_key = ?"
UPDATE = "UPDATE usertable SET field0 = ? WHERE ycsb_key = ?"
SCAN = "SELECT * FROM usertable WHERE ycsb_key >= ? ORDER BY ycsb_key LIMIT ?"


class OperationMix(NamedTuple):
    """Shares of each operation, in percent."""

    name: str
    read: int = 0
    update: int = 0
    insert: int = 0
    scan: int = 0
    modify: int = 0
    scan_rows_max: int = 100


MIXES = (
    OperationMix("A update heavy", read=50, update=50),
    OperationMix("B read mostly", read=95, update=5),
    OperationMix("C read only", read=100),
    OperationMix("D read latest", read=95, insert=5),
    OperationMix("E short ranges", scan=95, insert=5),
    OperationMix("F read-modify-write", read=50, modify=50),
    OperationMix("DQE mix", read=60, update=20, scan=20, scan_rows_max=10),
)


class MeasuredSystem(Protocol):
    """A measured system: each method runs one operation and fetches its result."""

    def insert(self, key: str, fields: tuple[str, ...]) -> object: ...

    def read(self, key: str) -> object: ...

    def update(self, key: str, value: str) -> object: ...

    def scan(self, key: str, rows: int) -> object: ...

    def close(self) -> None: ...


GOALS = {
    ("read", "raw"): "<= 3.5 ratio",
    ("read", "sqlite3"): "<= 1.2 ratio",
    ("update", "raw"): "<= 3 ratio",
    ("scan of 100", "raw"): "<= 3 ratio",
}


def run(rows: int, seed: int, *, database: str | None = None) -> BenchmarkReport:
    report = BenchmarkReport("ycsb", seed)
    if database is not None:
        _measure_over_wire(report, database, rows, seed)
        return report
    with tempfile.TemporaryDirectory(prefix="belvedere-ycsb-") as name, Progress() as progress:
        systems: dict[str, MeasuredSystem] = {
            "belvedere": BelvedereSystem(Path(name) / "belvedere"),
            "raw": RocksdictSystem(Path(name) / "raw"),
            "sqlite3": SqliteSystem(Path(name) / "sqlite.db"),
        }
        _measure_systems(report, systems, rows, seed, progress)
    overhead.measure_overhead(report)
    return report


def _measure_over_wire(report: BenchmarkReport, url: str, rows: int, seed: int) -> None:
    with postgres_connection(durable=True) as peer, connect_to_server(url) as server:
        systems: dict[str, MeasuredSystem] = {"server": WireSystem(server)}
        if peer is None:
            report.absent.append("PostgreSQL: its wheel is not installed")
        else:
            systems["PostgreSQL"] = WireSystem(peer)
        with Progress() as progress:
            _measure_systems(report, systems, rows, seed, progress)


def _measure_systems(
    report: BenchmarkReport,
    systems: dict[str, MeasuredSystem],
    rows: int,
    seed: int,
    progress: Progress,
) -> None:
    """The first system is measured, the others are what it is compared with."""
    task = progress.add_task("ycsb", total=4 + len(MIXES))
    for system in systems.values():
        _load_rows(system, rows)
    progress.advance(task)
    _measure_operations(report, systems, rows, seed, lambda: progress.advance(task))
    for number, mix in enumerate(MIXES, 1):
        _measure_mix(report, systems, mix, rows, seed, first_new=rows * 10 * number)
        progress.advance(task)
    for system in systems.values():
        system.close()


# -- the work --------------------------------------------------------------------------------------


def row_key(number: int) -> str:
    """The key of a row: a hash, so that neighbours by number are not neighbours by key."""
    return f"user{number * 0x9E3779B97F4A7C15 % 2**64:020d}"


def row_fields(number: int) -> tuple[str, ...]:
    return tuple(f"{number:09}{field}".ljust(FIELD_BYTES, "x") for field in range(FIELDS))


def zipfian_rows(rng: random.Random, rows: int, count: int) -> list[int]:
    """Numbers of rows, the first ones most often."""
    weights = list(accumulate(1 / (place + 1) ** ZIPF for place in range(rows)))
    return rng.choices(range(rows), cum_weights=weights, k=count)


def _load_rows(system: MeasuredSystem, rows: int) -> None:
    for number in range(rows):
        system.insert(row_key(number), row_fields(number))


def _measure_operations(
    report: BenchmarkReport,
    systems: dict[str, MeasuredSystem],
    rows: int,
    seed: int,
    done: Callable[[], object],
) -> None:
    rng = random.Random(seed)
    keys = [row_key(number) for number in zipfian_rows(rng, rows, OPERATIONS)]
    value = "y" * FIELD_BYTES
    scans = keys[: OPERATIONS // 20]
    actions: dict[str, Callable[[MeasuredSystem], float]] = {
        "read": lambda system: _time_operations(keys, system.read),
        "update": lambda system: _time_operations(keys, lambda key: system.update(key, value)),
        "scan of 100": lambda system: _time_operations(scans, lambda key: system.scan(key, 100)),
    }
    for name, action in actions.items():
        found = alternate_rounds(
            10, *(lambda s=system, a=action: a(s) for system in systems.values())
        )
        _add_figures(report, name, "us", dict(zip(systems, found, strict=True)))
        done()


def _add_figures(report: BenchmarkReport, name: str, unit: str, found: dict[str, float]) -> None:
    (_, ours), *others = found.items()
    if not others:
        report.add(Figure(name, ours, unit))
    for baseline, other in others:
        goal = GOALS.get((name, baseline), "")
        report.add(Figure(f"{name}, to {baseline}", ours, unit, goal, other))


def _time_operations(keys: list[str], action: Callable[[str], object]) -> float:
    start = time.perf_counter()
    for key in keys:
        action(key)
    return (time.perf_counter() - start) / len(keys) * 1e6


def _measure_mix(
    report: BenchmarkReport,
    systems: dict[str, MeasuredSystem],
    mix: OperationMix,
    rows: int,
    seed: int,
    first_new: int,
) -> None:
    rates: dict[str, float] = {}
    for name, system in systems.items():
        work = _draw_operations(mix, rows, random.Random(seed), first_new)
        start = time.perf_counter()
        for operation, arguments in work:
            operation(system, *arguments)
        rates[name] = len(work) / (time.perf_counter() - start)
    _add_figures(report, mix.name, "1/s", rates)


Operation = Callable[..., object]


def _draw_operations(
    mix: OperationMix, rows: int, rng: random.Random, first_new: int
) -> list[tuple[Operation, tuple[Any, ...]]]:
    kinds = rng.choices(
        ("read", "update", "insert", "scan", "modify"),
        weights=(mix.read, mix.update, mix.insert, mix.scan, mix.modify),
        k=OPERATIONS,
    )
    work: list[tuple[Operation, tuple[Any, ...]]] = []
    new = first_new
    for kind, number in zip(kinds, zipfian_rows(rng, rows, OPERATIONS), strict=True):
        key = row_key(number)
        match kind:
            case "read":
                work.append((lambda s, k: s.read(k), (key,)))
            case "update":
                work.append((lambda s, k, v: s.update(k, v), (key, "z" * FIELD_BYTES)))
            case "insert":
                new += 1
                work.append((lambda s, k, f: s.insert(k, f), (row_key(new), row_fields(new))))
            case "scan":
                length = rng.randint(1, mix.scan_rows_max)
                work.append((lambda s, k, n: s.scan(k, n), (key, length)))
            case _:
                work.append((_read_and_update, (key, "w" * FIELD_BYTES)))
    return work


def _read_and_update(system: MeasuredSystem, key: str, value: str) -> None:
    system.read(key)
    system.update(key, value)


# -- the systems -----------------------------------------------------------------------------------


class _SqlSystem:
    """The operations as SQL statements, the same for every SQL system."""

    _connection: Connection | sqlite3.Connection | psycopg.Connection[Any]
    _execute: Callable[..., Any]

    def insert(self, key: str, fields: tuple[str, ...]) -> object:
        return self._execute(INSERT, (key, *fields))

    def read(self, key: str) -> object:
        return self._execute(READ, (key,)).fetchone()

    def update(self, key: str, value: str) -> object:
        return self._execute(UPDATE, (value, key))

    def scan(self, key: str, rows: int) -> object:
        return self._execute(SCAN, (key, rows)).fetchall()

    def close(self) -> None:
        self._connection.close()


class BelvedereSystem(_SqlSystem):
    def __init__(self, path: Path) -> None:
        self._connection = connect(str(path), durability="off")
        self._connection.autocommit = True
        self._execute = self._connection.execute
        self._execute(CREATE)


class RocksdictSystem:
    """Rocksdict with the options of a store: values of the same length, each write also logged."""

    def __init__(self, path: Path) -> None:
        options = store_options(create=True, salvage=False)
        self._database = Rdict(str(path), options)
        self._number = 0

    def insert(self, key: str, fields: tuple[str, ...]) -> None:
        self._write_logged(key.encode(), "".join(fields).encode())

    def read(self, key: str) -> object:
        return self._database.get(key.encode())

    def update(self, key: str, value: str) -> None:
        name = key.encode()
        old = self._database.get(name)
        assert old is not None
        self._write_logged(name, value.encode() + old[FIELD_BYTES:])

    def _write_logged(self, name: bytes, value: bytes) -> None:
        self._number += 1
        batch = WriteBatch(True)
        batch.put(name, value)
        batch.put(b"\0" + self._number.to_bytes(8), value)
        self._database.write(batch)

    def scan(self, key: str, rows: int) -> object:
        return list(islice(self._database.items(from_key=key.encode()), rows))

    def close(self) -> None:
        self._database.close()


class SqliteSystem(_SqlSystem):
    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._execute = self._connection.execute
        self._execute(CREATE)


class WireSystem(_SqlSystem):
    """A server of PostgreSQL's protocol, by psycopg, each statement prepared."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        def execute_prepared(sql: str, parameters: tuple[Any, ...] = ()) -> object:
            return connection.execute(sql.replace("?", "%s"), parameters, prepare=True)

        self._connection = connection
        self._execute = execute_prepared
        self._execute(CREATE)
