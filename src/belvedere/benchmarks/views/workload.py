"""Shared parts of the view benchmarks: stores, keys, mixes of changes, paced writers, percentiles.

Every random choice comes from a `random.Random` that is passed in, so that a seed repeats a run.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from belvedere.catalog.model import View
from belvedere.database import Database
from belvedere.interfaces.dbapi import Connection, connect
from belvedere.interfaces.exceptions import NotSupportedError, ProgrammingError
from belvedere.session.session import Session

BULK_ROWS = 5_000
"""Rows of one loading statement, so that a transaction's log record stays small."""

FOLLOW_SECONDS_MAX = 600.0
UNSUPPORTED, UNKNOWN_SETTING = "0A000", "42704"


@contextmanager
def open_connection(path: Path) -> Iterator[Connection]:
    """A connection to a store without syncs; every statement is a transaction."""
    with connect(str(path), durability="off", autocommit=True) as connection:
        yield connection


def get_database(connection: Connection) -> Database:
    """The database of a connection, for watermarks and sizes."""
    session = connection.session
    assert isinstance(session, Session)
    host = session.host
    assert isinstance(host, Database)
    return host


def split_spans(count: int, size: int = BULK_ROWS) -> Iterator[tuple[int, int]]:
    """First and last of consecutive blocks of 0 .. count - 1."""
    for start in range(0, count, size):
        yield start, min(start + size, count) - 1


def load_rows(connection: Connection, table: str, columns: str, count: int) -> None:
    """Insert rows computed by expressions over `i`, which counts from 0."""
    for first, last in split_spans(count):
        connection.execute(
            f"INSERT INTO {table} SELECT {columns} FROM generate_series({first}, {last}) AS s (i)"
        )


# -- keys ------------------------------------------------------------------------------------------


def uniform_keys(rng: random.Random, rows: int, count: int) -> list[int]:
    return [rng.randrange(rows) for _ in range(count)]


def zipfian_keys(rng: random.Random, rows: int, count: int, exponent: float = 0.99) -> list[int]:
    """Numbers of rows, the first ones most often."""
    weights = list(accumulate(1 / (place + 1) ** exponent for place in range(rows)))
    return rng.choices(range(rows), cum_weights=weights, k=count)


class Statement(NamedTuple):
    text: str
    parameters: tuple[Any, ...]


def mix_changes(
    rng: random.Random, table: str, rows: int, count: int, groups: int, keys: Sequence[int] = ()
) -> list[Statement]:
    """Inserts, updates and deletes, a third each, of a table (id, g, v) with ids below `rows`;
    updates are of the rows of `keys`, or of any. Each row is deleted at most once, in any order."""
    doomed = iter(rng.sample(range(rows), min(count, rows)))
    made = []
    for number in range(count):
        kind = rng.randrange(3)
        if kind == 0:
            row = (rows + number, rng.randrange(groups), rng.randrange(1000))
            made.append(Statement(f"INSERT INTO {table} VALUES (?, ?, ?)", row))
        elif kind == 1:
            key = keys[number % len(keys)] if keys else rng.randrange(rows)
            change = (rng.randrange(groups), rng.randrange(1000), key)
            made.append(Statement(f"UPDATE {table} SET g = ?, v = ? WHERE id = ?", change))
        else:
            made.append(Statement(f"DELETE FROM {table} WHERE id = ?", (next(doomed),)))
    return made


def run_all(connection: Connection, statements: Sequence[Statement]) -> None:
    execute = connection.execute
    for text, parameters in statements:
        execute(text, parameters)


# -- time ------------------------------------------------------------------------------------------


def time_call(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def run_paced(rate: float, works: Sequence[Callable[[], object]]) -> list[float]:
    """Call the works at their due times, `rate` a second; return the seconds of each. Overdue calls
    start at once, without another wait."""
    taken, due = [], time.perf_counter()
    for work in works:
        due += 1 / rate
        wait = due - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return taken


class ThreadGroup:
    """Runs functions in threads; what one of them raises is raised by `join`."""

    def __init__(self, *functions: Callable[[], object]) -> None:
        self._failures: list[Exception] = []
        self._threads = [threading.Thread(target=self._run_function, args=(f,)) for f in functions]
        for thread in self._threads:
            thread.start()

    def _run_function(self, function: Callable[[], object]) -> None:
        try:
            function()
        except Exception as error:  # noqa: BLE001 (raised again by `join`)
            self._failures.append(error)

    @property
    def is_running(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()
        if self._failures:
            raise self._failures[0]


# -- views -----------------------------------------------------------------------------------------


def find_view(connection: Connection, name: str) -> View:
    return get_database(connection).catalog.require_relation(View, name)


def wait_for_views(connection: Connection, *names: str) -> None:
    """Wait until the worker has brought these views to the newest position."""
    db = get_database(connection)
    goal, end = db.position, time.monotonic() + FOLLOW_SECONDS_MAX
    for name in names:
        while db.views.read_view_watermark(find_view(connection, name)) < goal:
            if time.monotonic() > end:
                raise TimeoutError(f"view {name} does not follow")
            time.sleep(0.001)


def try_statement(connection: Connection, statement: str) -> str | None:
    """Run a statement; return the reason if it is not supported, for the report."""
    try:
        connection.execute(statement)
    except (NotSupportedError, ProgrammingError) as error:
        if error.sqlstate not in (UNSUPPORTED, UNKNOWN_SETTING):
            raise
        return str(error).partition("\n")[0]
    return None


def create_view(connection: Connection, name: str, query: str, **options: str) -> None:
    """Create a materialized view with these options."""
    listed = ", ".join(f"{option} = '{value}'" for option, value in options.items())
    settings = f" WITH ({listed})" if listed else ""
    connection.execute(f"CREATE MATERIALIZED VIEW {name}{settings} AS {query}")


ON_DEMAND = {"maintenance": "deferred", "refresh_every": "3600 s"}
"""Options of a deferred view that only REFRESH maintains during a benchmark."""
