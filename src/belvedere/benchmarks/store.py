"""The store benchmark: the overhead of transactions, snapshots, log and recovery over rocksdict.

Raw rocksdict runs in the same process, on the same engine, with keys and values of the same sizes.
Rows are 100 bytes: a bigint key, three numbers, and text.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from rich.progress import Progress
from rocksdict import WriteBatch

from belvedere import types
from belvedere.benchmarks.report.measurements import (
    BenchmarkReport,
    Figure,
    alternate_rounds,
    microseconds_each,
)
from belvedere.catalog.catalog import empty_catalog
from belvedere.catalog.definitions import ColumnDefinition, TableDefinition
from belvedere.catalog.relation_codecs import CompiledTable
from belvedere.codec.arrow.rows_to_arrow import rows_to_arrow
from belvedere.config import Config, Durability
from belvedere.database import Database
from belvedere.kv.rocksdb import RocksStore
from belvedere.txn.batch_atomic.replay import replay_records
from belvedere.txn.transaction import table_rows
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row

ROUND = 1000
OFF = Config(durability=Durability.OFF)


def run(rows_count: int, seed: int, *, big: bool = True) -> BenchmarkReport:
    """Measure all figures; with `big` also the open after a kill, with ten times the rows."""
    report = BenchmarkReport("store", seed)
    with tempfile.TemporaryDirectory(prefix="belvedere-bench-") as name, Progress() as progress:
        steps: list[Callable[[Path, int, int, BenchmarkReport], None]] = [
            _reads_and_commits,
            _arrow_and_replay,
            _group_commit,
            _idle_memory,
        ]
        if big:
            steps.append(_open_after_kill)
        task = progress.add_task("store", total=len(steps))
        for number, step in enumerate(steps):
            step(Path(name) / str(number), rows_count, seed, report)
            progress.advance(task)
    return report


def make_table(db: Database) -> CompiledTable:
    column = ColumnDefinition
    definition = TableDefinition(
        "items",
        (
            column("id", types.BIGINT),
            column("quantity", types.INTEGER),
            column("price", types.numeric_type(12, 2)),
            column("weight", types.DOUBLE),
            column("note", types.TEXT),
        ),
        primary_key=("id",),
    )
    db.change_schema(lambda edit: edit.create_table(definition))
    return db.get_compiled_table("items")


def make_row(number: int) -> Row:
    return (number, number % 1000, None, number / 7, f"item {number:>8} ".ljust(58, "x"))


def load_rows(db: Database, table: CompiledTable, count: int) -> None:
    for start in range(0, count, ROUND):

        def insert_block(txn: Transaction, start: int = start) -> None:
            for number in range(start, min(start + ROUND, count)):
                table_rows.insert_row(txn, table, make_row(number))

        db.run_transaction(insert_block)


def _reads_and_commits(directory: Path, count: int, seed: int, report: BenchmarkReport) -> None:
    rng = random.Random(seed)
    with Database.open(directory, OFF) as db:
        table = make_table(db)
        load_rows(db, table, count)
        numbers = [rng.randrange(count) for _ in range(ROUND)]
        engine = _raw_engine(db)
        raw, ours = alternate_rounds(
            40,
            lambda: microseconds_each(ROUND, lambda: _raw_gets(engine, table, numbers)),
            lambda: microseconds_each(ROUND, lambda: _snapshot_gets(db, table, numbers)),
        )
        report.add(Figure("point read at a snapshot", ours, "us", "<= 2 ratio", raw))
        raw, ours = alternate_rounds(
            40,
            lambda: microseconds_each(ROUND, lambda: _raw_updates(engine, table, numbers)),
            lambda: microseconds_each(ROUND, lambda: _single_row_commits(db, table, numbers)),
        )
        report.add(Figure("single-row commit, durability off", ours, "us", "<= 3 ratio", raw))


def _raw_engine(db: Database) -> object:
    assert isinstance(db.store, RocksStore)
    return db.store._database  # the raw engine is what we compare with


def _raw_gets(engine: object, table: CompiledTable, numbers: list[int]) -> None:
    get, encode = engine.get, table.key.encode_first  # type: ignore[attr-defined]
    for number in numbers:
        get(encode(number))


def _snapshot_gets(db: Database, table: CompiledTable, numbers: list[int]) -> None:
    encode, decode = table.key.encode_first, table.decode
    with db.begin() as txn:
        get = txn.get
        for number in numbers:
            value = get(encode(number))
            assert value is not None
            decode(value)


def _raw_updates(engine: object, table: CompiledTable, numbers: list[int]) -> None:
    """A get and a batch of two keys: the row, and a record as long as a log record."""
    encode = table.key.encode_first
    for place, number in enumerate(numbers):
        key = encode(number)
        old = engine.get(key)  # type: ignore[attr-defined]
        batch = WriteBatch(True)
        batch.put(key, old)
        batch.put(b"\xfa" + place.to_bytes(8), old + old + bytes(92))
        engine.write(batch)  # type: ignore[attr-defined]


def _single_row_commits(db: Database, table: CompiledTable, numbers: list[int]) -> None:
    encode, decode = table.key.encode_first, table.decode
    for number in numbers:
        txn = db.begin()
        key = encode(number)
        value = txn.get(key)
        assert value is not None
        old = decode(value)
        table_rows.update_row(txn, table, old, (old[0], old[1] + 1, *old[2:]), value, key)
        txn.commit()


def _arrow_and_replay(directory: Path, count: int, seed: int, report: BenchmarkReport) -> None:
    with Database.open(directory, OFF) as db:
        table = make_table(db)
        load_rows(db, table, count)
        for number in range(min(count, 20_000)):
            _single_row_commits(db, table, [number])
        values = [v for batch in db.store.scan_values(table.start, table.end) for v in batch]
        columns, names = tuple(range(5)), [c.name for c in table.live_columns]
        (arrow,) = alternate_rounds(
            10,
            lambda: microseconds_each(
                len(values), lambda: rows_to_arrow(table.layout, values, columns, names)
            ),
        )
        report.add(Figure("rows to Arrow, each", arrow, "us", "<= 0.5 value"))
        after = db.position - min(count, 20_000)
        (log,) = alternate_rounds(
            10,
            lambda: microseconds_each(db.position - after, lambda: list(db.log.read_arrow(after))),
        )
        report.add(Figure("log to Arrow, each record", log, "us", "<= 1 value"))
        _measure_replay(db, directory.with_name("replayed"), report)


def _measure_replay(db: Database, directory: Path, report: BenchmarkReport) -> None:
    store = RocksStore.open(directory, create=True)
    records = [data for batch in db.log.read_bytes(0) for data in batch]
    start = time.perf_counter()
    changes = replay_records(records, store, empty_catalog(), db.participants_for)
    rate = changes / (time.perf_counter() - start)
    store.close()
    report.add(Figure("restore from the log", rate, "changes/s", ">= 200000 value"))


def _group_commit(directory: Path, count: int, seed: int, report: BenchmarkReport) -> None:
    with Database.open(directory) as db:
        table = make_table(db)
        load_rows(db, table, 10_000)
        one, eight = alternate_rounds(
            12, lambda: -_commits_a_second(db, table, 1), lambda: -_commits_a_second(db, table, 8)
        )
    report.add(Figure("commits/s, durability full, 8 threads", -eight, "1/s", ">= 3 ratio", -one))


def _commits_a_second(db: Database, table: CompiledTable, threads: int) -> float:
    each = 500
    blocks = [list(range(n * each, (n + 1) * each)) for n in range(threads)]
    workers = [
        threading.Thread(target=_single_row_commits, args=(db, table, block)) for block in blocks
    ]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return threads * each / (time.perf_counter() - start)


def _idle_memory(directory: Path, count: int, seed: int, report: BenchmarkReport) -> None:
    with Database.open(directory, OFF) as db:
        load_rows(db, make_table(db), count)
    code = (
        "import sys, pathlib, belvedere; from belvedere.database import Database;"
        "db = Database.open(sys.argv[1]);"
        "print(pathlib.Path('/proc/self/status').read_text().split('VmRSS:')[1].split()[0])"
    )
    command = [sys.executable, "-c", code, str(directory)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    megabytes = int(found.stdout) / 1024
    report.add(Figure("an open idle store", megabytes, "MB", "<= 150 value"))


def _open_after_kill(directory: Path, count: int, seed: int, report: BenchmarkReport) -> None:
    command = [sys.executable, "-m", __name__, str(directory), str(10 * count), str(count)]
    died = subprocess.run(command, check=False)
    assert died.returncode == -signal.SIGKILL, died
    start = time.perf_counter()
    with Database.open(directory, OFF) as db:
        seconds = time.perf_counter() - start
        assert db.position >= count
    report.add(Figure("open after kill -9", seconds, "s", "<= 10 value"))


def _write_and_die(directory: Path, loaded: int, commits: int) -> None:
    db = Database.open(directory, OFF)
    table = make_table(db)
    load_rows(db, table, loaded)
    _single_row_commits(db, table, list(range(commits)))
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    _write_and_die(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
