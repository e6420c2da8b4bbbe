"""Runs the law over many seeds, and stores what breaks it.

python -m tests.properties.views.hunt --cases 50 --views 6 --steps 50 --seed 1 --store rocksdb
python -m tests.properties.views.hunt --replay tests/properties/views/regressions/x.json
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests.exact import make_callers_context_useless
from tests.oracle.postgres import server
from tests.properties.views.generate.cases import REGRESSIONS, load, random_case, save, shrunk
from tests.properties.views.generate.histories import Case
from tests.properties.views.law import MEMORY, STORES, Broken, Counts, Law


@contextmanager
def fresh_schema(name: str) -> Iterator[psycopg.Connection[Any]]:
    """A PostgreSQL connection in an empty schema of its own."""
    with server().connect(autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
        connection.execute(f"CREATE SCHEMA {name}")
        connection.execute(f"SET search_path = {name}")
        connection.execute("SET client_min_messages = error")
        try:
            yield connection
        finally:
            connection.execute(f"DROP SCHEMA {name} CASCADE")


def check(case: Case, counts: Counts, *, postgres: bool = True, store: str = MEMORY) -> None:
    if not postgres:
        Law(case, counts, store=store).run()
        return
    with fresh_schema(f"law_{os.getpid()}") as connection:
        Law(case, counts, connection, store).run()


def breaks(case: Case, *, postgres: bool, how: str | None = None, store: str = MEMORY) -> bool:
    """Whether the law does not hold, in this way if one is given."""
    try:
        check(case, Counts(), postgres=postgres, store=store)
    except Broken as error:
        return how is None or how == manner(error)
    return False


def manner(error: Broken) -> str:
    """What kind of failure it is: who differs, or which error there is."""
    lines = str(error).splitlines()
    return lines[1].partition(" for view")[0][:40] if len(lines) > 1 else ""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--views", type=int, default=6)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay", type=Path)
    parser.add_argument("--shrink", type=float, default=60.0, help="seconds")
    parser.add_argument("--keep-going", action="store_true")
    parser.add_argument("--no-postgres", action="store_true")
    parser.add_argument("--store", choices=STORES, default=MEMORY)
    parser.add_argument("--narrow", action="store_true", help="shapes of a single block only")
    options = parser.parse_args()
    make_callers_context_useless()
    counts, failures = Counts(), 0
    if options.replay is not None:
        with_postgres = not options.no_postgres
        check(load(options.replay), counts, postgres=with_postgres, store=options.store)
        return 0
    for seed in range(options.seed, options.seed + options.cases):
        started = time.monotonic()
        case = random_case(seed, options.views, options.steps, wide=not options.narrow)
        try:
            check(case, counts, postgres=not options.no_postgres, store=options.store)
        except Broken as error:
            failures += 1
            print(f"FAILED {error}", flush=True)
            _store(case, options, manner(error))
            if not options.keep_going:
                break
        else:
            print(f"seed {seed}: {time.monotonic() - started:.1f} s", flush=True)
    print(counts, f"{failures} failures")
    return 1 if failures else 0


def _store(case: Case, options: argparse.Namespace, how: str) -> None:
    postgres, store = not options.no_postgres, options.store
    small = shrunk(
        case, lambda one: breaks(one, postgres=postgres, how=how, store=store), options.shrink
    )
    path = REGRESSIONS / f"seed_{case.seed}.json"
    save(small, path)
    print(f"stored as {path}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
